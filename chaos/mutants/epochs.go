package main

// epochs are the mutants of the rules of config epochs, E1 to E6.
func epochs() []Mutant {
	return []Mutant{
		{
			Name:      "epoch acked while out > base",
			Rule:      "E2, trap 17",
			Breaks:    "bases are redistributed while borrowers still use the old one",
			Adversary: Adversary{Kind: schedule, Mode: "all", Seeds: 500},
			Patches: []Patch{{
				ledgerEpochs,
				"if b.outstanding(now) > b.ceiling {",
				"if b.outstanding(now) > b.ceiling && b.index < 0 {",
			}},
		},
		{
			Name:      "acked in quarantine",
			Rule:      "E2, L8, trap 18",
			Breaks:    "the former life's loans are unknown, and the epoch that gives them away is acknowledged",
			Adversary: Adversary{Kind: schedule, Mode: "plain", Profile: "plots", Seeds: 3000},
			Patches: []Patch{{
				ledgerEpochs,
				"if l.acked || l.quarantine || now < l.ackFrom {",
				"if l.acked || now < l.ackFrom {",
			}},
		},
		{
			Name:      "wait set only as known locally",
			Rule:      "E3, trap 23",
			Breaks:    "of two concurrent edits, the loser's joiner is not waited for by who never saw that edit",
			Adversary: Adversary{Kind: schedule, Mode: "plain", Profile: "plots", Seeds: 1000},
			Patches: []Patch{{
				ledgerEpochs,
				"if !w.has(id) {\n",
				"if !w.has(id) && id == l.cfg.Self {\n",
			}},
		},
		{
			Name:      "edit on an inactive parent",
			Rule:      "E4, trap 23",
			Breaks:    "two edits force out more than half of the roster that is in force",
			Adversary: Adversary{Kind: schedule, Mode: "plain", Profile: "chained-edits", Seeds: 500},
			Patches: []Patch{
				{ledgerLedger, "return l.usable() && l.act == l.cur.ID", "return l.usable()"},
				// The simulator's operator means the second removal to leave the first in force.
				{scheduleEpochs, "r.forced = w.force(p, parent)\n", "r.forced = w.force(p, parent)\n\t\tif r.forced == nil {\n\t\t\tr.forced = map[ledger.NodeID]uint64{}\n\t\t}\n\t\tfor k, inc := range parent.Forced {\n\t\t\tr.forced[k] = inc\n\t\t}\n"},
			},
		},
		{
			Name:      "no incarnation closure",
			Rule:      "E3, trap 20",
			Breaks:    "the acknowledgement of a life that is over counts, and the new life is at an older epoch",
			Adversary: Adversary{Kind: schedule, Mode: "plain", Profile: "stale-ack", Seeds: 500},
			Patches: []Patch{{
				ledgerEpochs,
				"if !l.incarnationsClosed(w) {",
				"if !l.incarnationsClosed(nil) {",
			}},
		},
		{
			Name:      "raise on learning",
			Rule:      "E1, E3",
			Breaks:    "a higher base is used while others still use the old ones",
			Adversary: Adversary{Kind: schedule, Mode: "all", Seeds: 500},
			Patches: []Patch{{
				ledgerEpochs,
				"b.ceiling = min(b.ceiling, l.base(b))",
				"b.ceiling = l.base(b)",
			}},
		},
		{
			Name:      "later epoch's ack counted for an earlier",
			Rule:      "E3, trap 24",
			Breaks:    "a node that skipped an epoch holds more than its base there",
			Adversary: Adversary{Kind: schedule, Mode: "plain", Profile: "trial", Seeds: 500},
			Patches: []Patch{{
				ledgerEpochs,
				"r.Inc >= p.floor && r.Epoch == l.cur.ID && r.Acked",
				"r.Inc >= p.floor && !r.Epoch.Less(l.cur.ID) && r.Acked",
			}},
		},
		{
			Name:      "version-only comparison",
			Rule:      "E3, trap 24",
			Breaks:    "the acknowledgement of a sibling edit counts",
			Adversary: Adversary{Kind: schedule, Mode: "all", Seeds: 500},
			Patches: []Patch{{
				ledgerEpochs,
				"r.Inc >= p.floor && r.Epoch == l.cur.ID && r.Acked",
				"r.Inc >= p.floor && r.Epoch.Version == l.cur.ID.Version && r.Acked",
			}},
		},
		{
			Name:      "force without the wait",
			Rule:      "E6, trap 26",
			Breaks:    "the dead lender's base is redistributed while its borrowers still use it",
			Adversary: Adversary{Kind: schedule, Mode: "plain", Profile: "plots", Seeds: 500},
			Patches: []Patch{{
				ledgerEpochs,
				"return now >= l.forceEnd()\n",
				"return true\n",
			}},
		},
		{
			Name:      "force by name",
			Rule:      "E6, trap 26",
			Breaks:    "the node was restarted meanwhile, and its new life uses its base",
			Adversary: Adversary{Kind: schedule, Mode: "plain", Profile: "plots", Seeds: 1000},
			Patches: []Patch{
				{ledgerEpochs, "if m, forced := l.cur.Forced[k]; forced && p.floor <= m {", "if _, forced := l.cur.Forced[k]; forced {"},
				{ledgerEpochs, "life := l.cur.Forced[x]\n", "life := l.cur.Forced[x]\n\tif life > 0 {\n\t\treturn MaxIncarnation\n\t}\n"},
			},
		},
	}
}

// restarts are the mutants of quarantine and proof.
func restarts() []Mutant {
	return []Mutant{
		{
			Name:      "no quarantine",
			Rule:      "L8, trap 14",
			Breaks:    "a restarted lender uses its base while its former life's loans run",
			Adversary: Adversary{Kind: schedule, Mode: "all", Seeds: 500},
			Patches: []Patch{{
				ledgerProof,
				"\tl.quarantine = true\n",
				"\tl.quarantine = false\n",
			}},
		},
		{
			Name:      "restart on the configured epoch",
			Rule:      "proof, trap 19",
			Breaks:    "the bases of an old file are used beside those of a newer epoch",
			Adversary: Adversary{Kind: schedule, Mode: "all", Seeds: 500},
			Patches: []Patch{{
				ledgerLedger,
				"\t\tl.recovering, l.strayed = true, true\n\t\tl.beginQuarantine(now)\n",
				"\t\tl.bootstrap()\n\t\tl.beginQuarantine(now)\n",
			}},
		},
		{
			Name:      "no witness",
			Rule:      "proof, trap 25",
			Breaks:    "a node that was forced out comes back with its memory and uses the base that was given away",
			Adversary: Adversary{Kind: schedule, Mode: "plain", Profile: "plots", Seeds: 1000},
			Patches: []Patch{{
				ledgerProof,
				"if !l.enoughWitnesses(witnesses) {",
				"if l.recovering && !l.enoughWitnesses(witnesses) {",
			}},
		},
		{
			Name:      "memoryless vouching",
			Rule:      "proof, trap 21",
			Breaks:    "nodes that forgot the epoch in force confirm one another in an old one",
			Adversary: Adversary{Kind: schedule, Mode: "plain", Profile: "oblivion", Seeds: 500},
			Patches: []Patch{{
				ledgerProof,
				"r.Epoch == l.cur.ID && !r.Recovering && r.heardOf",
				"r.Epoch == l.cur.ID && r.heardOf",
			}},
		},
		{
			Name:      "foreign witness",
			Rule:      "proof, trap 22",
			Breaks:    "a node outside the rosters vouches, which nobody had to ask before going on to another epoch",
			Adversary: Adversary{Kind: schedule, Mode: "plain", Profile: "plots", Seeds: 3000},
			Patches: []Patch{{
				ledgerProof,
				"\tif !l.enoughWitnesses(witnesses) {\n",
				"\tforeign := false\n\tfor k := range l.peers {\n\t\tforeign = foreign || NodeID(k) != l.cfg.Self && l.witnesses(NodeID(k))\n\t}\n\tif !foreign && !l.enoughWitnesses(witnesses) {\n",
			}},
		},
		{
			Name:      "bootstrap by amnesia",
			Rule:      "proof, trap 21, A6",
			Breaks:    "nodes that meet nobody with memory take it for the cluster's first start",
			Adversary: Adversary{Kind: schedule, Mode: "all", Seeds: 500},
			Patches: []Patch{{
				ledgerProof,
				"\tif !l.enoughWitnesses(witnesses) {\n",
				"\tif l.recovering && !l.quarantine && witnesses.count() == 0 && l.noneRemembers() {\n\t\tl.bootstrap()\n\t\tl.recovering = false\n\t\treturn\n\t}\n\tif !l.enoughWitnesses(witnesses) {\n",
			}, {
				ledgerProof,
				"// witnesses reports whether",
				"func (l *Ledger) noneRemembers() bool {\n\tmet := false\n\tfor k := range l.peers {\n\t\tif r := l.peers[k].row; r != nil {\n\t\t\tif !r.Recovering {\n\t\t\t\treturn false\n\t\t\t}\n\t\t\tmet = true\n\t\t}\n\t}\n\treturn met\n}\n\n// witnesses reports whether",
			}},
		},
		{
			Name:      "unproved ceiling carried over",
			Rule:      "E1, trap 25",
			Breaks:    "a node that was forced out learns a later epoch first and uses the lesser of two bases that are both gone",
			Adversary: Adversary{Kind: schedule, Mode: "plain", Profile: "plots", Seeds: 1000},
			Patches: []Patch{{
				ledgerEpochs,
				"b.ceiling = 0 // trap 25",
				"b.ceiling = min(b.ceiling, l.base(b)) // trap 25",
			}},
		},
		{
			Name:      "fast quarantine over the roster only",
			Rule:      "L8, trap 27",
			Breaks:    "a member that left still uses a loan of the former life",
			Adversary: Adversary{Kind: schedule, Mode: "plain", Profile: "moved-out", Seeds: 500},
			Patches: []Patch{{
				ledgerProof,
				"\tfor _, id := range l.formerLent {\n\t\tr := l.peers[id].row\n",
				"\tfor _, m := range l.cur.Roster {\n\t\tid := m.ID\n\t\tif id == l.cfg.Self {\n\t\t\tcontinue\n\t\t}\n\t\tr := l.peers[id].row\n",
			}},
		},
	}
}
