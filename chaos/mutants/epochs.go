package main

// epochs are the mutants of the rules of config epochs, E1 to E6.
func epochs() []Mutant {
	return []Mutant{
		{
			Name:   "epoch acked while out > base",
			Rule:   "E2, trap 17",
			Breaks: "bases are redistributed while borrowers still use the old one",
			Patches: []Patch{{
				ledgerEpochs,
				"if b.outstanding(now) > b.ceiling {",
				"if b.outstanding(now) > b.ceiling && b.index < 0 {",
			}},
		},
		{
			Name:   "acked in quarantine",
			Rule:   "E2, L8, trap 18",
			Breaks: "the former life's loans are unknown, and the epoch that gives them away is acknowledged",
			Patches: []Patch{{
				ledgerEpochs,
				"if l.acked || l.quarantine {",
				"if l.acked {",
			}},
		},
		{
			Name:   "wait set only as known locally",
			Rule:   "E3, trap 23",
			Breaks: "of two concurrent edits, the loser's joiner is not waited for by who never saw that edit",
			Patches: []Patch{{
				ledgerEpochs,
				"if !w.has(id) {\n",
				"if !w.has(id) && id == l.cfg.Self {\n",
			}},
		},
		{
			Name:   "edit on an inactive parent",
			Rule:   "E4, trap 23",
			Breaks: "two edits force out more than half of the roster that is in force",
			Patches: []Patch{{
				ledgerLedger,
				"return l.usable() && l.act == l.cur.ID",
				"return l.usable()",
			}},
		},
		{
			Name:   "no incarnation closure",
			Rule:   "E3, trap 20",
			Breaks: "the acknowledgement of a life that is over counts, and the new life is at an older epoch",
			Patches: []Patch{{
				ledgerEpochs,
				"if !l.incarnationsClosed(w) {",
				"if !l.incarnationsClosed(nil) {",
			}},
		},
		{
			Name:   "raise on learning",
			Rule:   "E1, E3",
			Breaks: "a higher base is used while others still use the old ones",
			Patches: []Patch{{
				ledgerEpochs,
				"b.ceiling = min(b.ceiling, l.base(b))",
				"b.ceiling = l.base(b)",
			}},
		},
		{
			Name:   "later epoch's ack counted for an earlier",
			Rule:   "E3, trap 24",
			Breaks: "a node that skipped an epoch holds more than its base there",
			Patches: []Patch{{
				ledgerEpochs,
				"r.Inc >= p.floor && r.Epoch == l.cur.ID && r.Acked",
				"r.Inc >= p.floor && !r.Epoch.Less(l.cur.ID) && r.Acked",
			}},
		},
		{
			Name:   "version-only comparison",
			Rule:   "E3, trap 24",
			Breaks: "the acknowledgement of a sibling edit counts",
			Patches: []Patch{{
				ledgerEpochs,
				"r.Inc >= p.floor && r.Epoch == l.cur.ID && r.Acked",
				"r.Inc >= p.floor && r.Epoch.Version == l.cur.ID.Version && r.Acked",
			}},
		},
		{
			Name:   "force without the wait",
			Rule:   "E6, trap 26",
			Breaks: "the dead lender's base is redistributed while its borrowers still use it",
			Patches: []Patch{{
				ledgerEpochs,
				"return now >= l.forceEnd(k)\n",
				"return true\n",
			}},
		},
		{
			Name:   "force by name",
			Rule:   "E6, trap 26",
			Breaks: "the node was restarted meanwhile, and its new life uses its base",
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
			Name:   "no quarantine",
			Rule:   "L8, trap 14",
			Breaks: "a restarted lender uses its base while its former life's loans run",
			Patches: []Patch{{
				ledgerProof,
				"\tl.quarantine = true\n",
				"\tl.quarantine = false\n",
			}},
		},
		{
			Name:   "restart on the configured epoch",
			Rule:   "proof, trap 19",
			Breaks: "the bases of an old file are used beside those of a newer epoch",
			Patches: []Patch{{
				ledgerLedger,
				"\t\tl.recovering = true\n\t\tl.beginQuarantine(now)\n",
				"\t\tl.bootstrap()\n\t\tl.beginQuarantine(now)\n",
			}},
		},
		{
			Name:   "no witness",
			Rule:   "proof, trap 25",
			Breaks: "a node that was forced out comes back with its memory and uses the base that was given away",
			Patches: []Patch{{
				ledgerProof,
				"if have < l.witnessesNeeded(candidates) {",
				"if l.recovering && have < l.witnessesNeeded(candidates) {",
			}},
		},
		{
			Name:   "memoryless vouching",
			Rule:   "proof, trap 21",
			Breaks: "nodes that forgot the epoch in force confirm one another in an old one",
			Patches: []Patch{{
				ledgerProof,
				"r.Epoch == l.cur.ID && !r.Recovering && r.heardOf",
				"r.Epoch == l.cur.ID && r.heardOf",
			}},
		},
		{
			Name:   "foreign witness",
			Rule:   "proof, trap 22",
			Breaks: "a node outside the rosters vouches, which nobody had to ask before going on to another epoch",
			Patches: []Patch{{
				ledgerProof,
				"\tcandidates := l.witnessCandidates()\n",
				"\tcandidates := l.witnessCandidates()\n\tfor k := range l.peers {\n\t\tif NodeID(k) != l.cfg.Self && l.witnesses(NodeID(k)) {\n\t\t\tcandidates = nodeSet{}\n\t\t\tcandidates.add(NodeID(k))\n\t\t\tbreak\n\t\t}\n\t}\n",
			}},
		},
		{
			Name:   "bootstrap by amnesia",
			Rule:   "proof, trap 21, A6",
			Breaks: "nodes that meet nobody with memory take it for the cluster's first start",
			Patches: []Patch{{
				ledgerProof,
				"\tif have < l.witnessesNeeded(candidates) {\n",
				"\tif l.recovering && !l.quarantine && have == 0 && l.noneRemembers() {\n\t\tl.bootstrap()\n\t\tl.recovering = false\n\t\treturn\n\t}\n\tif have < l.witnessesNeeded(candidates) {\n",
			}, {
				ledgerProof,
				"// witnesses reports whether",
				"func (l *Ledger) noneRemembers() bool {\n\tmet := false\n\tfor k := range l.peers {\n\t\tif r := l.peers[k].row; r != nil {\n\t\t\tif !r.Recovering {\n\t\t\t\treturn false\n\t\t\t}\n\t\t\tmet = true\n\t\t}\n\t}\n\treturn met\n}\n\n// witnesses reports whether",
			}},
		},
		{
			Name:   "unproved ceiling carried over",
			Rule:   "E1, trap 25",
			Breaks: "a node that was forced out learns a later epoch first and uses the lesser of two bases that are both gone",
			Patches: []Patch{{
				ledgerEpochs,
				"b.ceiling = 0 // trap 25",
				"b.ceiling = min(b.ceiling, l.base(b)) // trap 25",
			}},
		},
		{
			Name:   "fast quarantine over the roster only",
			Rule:   "L8, trap 27",
			Breaks: "a member that left still uses a loan of the former life",
			Patches: []Patch{{
				ledgerProof,
				"\tfor _, id := range l.formerLent {\n\t\tr := l.peers[id].row\n",
				"\tfor _, m := range l.cur.Roster {\n\t\tid := m.ID\n\t\tif id == l.cfg.Self {\n\t\t\tcontinue\n\t\t}\n\t\tr := l.peers[id].row\n",
			}},
		},
	}
}
