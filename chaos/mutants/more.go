package main

// more are mutants beyond the list: rules that the product added to the
// design, or that the list leaves out.
func more() []Mutant {
	return []Mutant{
		{
			Name:      "release forgotten at once",
			Rule:      "L7",
			Breaks:    "a row that had not heard the release is applied in full, and the lender counts the rest as free",
			Adversary: Adversary{Kind: schedule, Mode: "all", Seeds: 500},
			Patches:   []Patch{{ledgerBook, "if s.heard >= c.seq {\n", "if s.heard >= c.seq || c.seq > 0 {\n"}},
		},
		{
			Name:      "one witness is enough",
			Rule:      "proof",
			Breaks:    "the only witness of a new life dies, and both its former life and the witness are forced out",
			Adversary: Adversary{Kind: schedule, Mode: "plain", Profile: "lone-witness", Seeds: 500},
			Patches:   []Patch{{ledgerProof, "return have >= min(l.quorum(total), others)", "return have >= min(l.quorum(total), others, 1)"}},
		},
		{
			Name:      "ceiling of an epoch that was not activated",
			Rule:      "E1, proof",
			Breaks:    "a life that was forced out by a lesser sibling of its epoch comes back with the base that the sibling gave away",
			Adversary: Adversary{Kind: schedule, Mode: "plain", Profile: "outside-word", Seeds: 500},
			Patches:   []Patch{{ledgerProof, "carried := s.Active == s.Epoch || ", "carried := true || "}},
		},
		{
			Name:      "the dead forced out by who strayed",
			Rule:      "E6",
			Breaks:    "an epoch that is in force, and that only the dead know, is overruled",
			Adversary: Adversary{Kind: schedule, Mode: "plain", Profile: "sole-heir", Seeds: 500},
			Patches:   []Patch{{ledgerLearn, "return l.usable() && !l.strayed", "return l.usable()"}},
		},
		{
			Name:      "watchdog before the loans ended",
			Rule:      "L3, lesson O13",
			Breaks:    "the static share of a stalled node is used beside what it has lent",
			Adversary: Adversary{Kind: schedule, Mode: "all", Seeds: 500},
			Patches:   []Patch{{ledgerFallback, "from = max(from, rows[i].end)", "from = max(from, rows[i].end-int64(l.cfg.Term))"}},
		},
		{
			Name:      "quarantine by the own term only",
			Rule:      "L8, trap 12",
			Breaks:    "loans of a former life with a longer term outlast the quarantine",
			Adversary: Adversary{Kind: schedule, Mode: "plain", Profile: "bounces", Seeds: 4000},
			Patches:   []Patch{{ledgerProof, "\tl.quarTerm = s.Term\n", ""}, {ledgerProof, "l.quarTerm = max(l.quarTerm, term)", "l.quarTerm = max(l.quarTerm, l.cfg.Term)"}},
		},
		{
			Name:      "state written late",
			Rule:      "E1, L8",
			Breaks:    "a node that crashed forgets an epoch that it acknowledged, or whom it lent to",
			Adversary: Adversary{Kind: schedule, Mode: "fast-quarantine", Profile: "plots", Seeds: 1000},
			Patches:   []Patch{{scheduleShell, "if w.broken != forgetsState || w.disks[p.name] == nil {", "if w.disks[p.name] == nil || p.l.StoredVersion()%4 > 0 {"}},
		},
	}
}
