package main

// loans are the mutants of the rules of lending, L1 to L9.
func loans() []Mutant {
	return []Mutant{
		{
			Name:      "heard without incarnation",
			Rule:      "L2, trap 1",
			Breaks:    "a lender's old row revives a dead life's loan in the next life, which has published a row of that number itself",
			Adversary: Adversary{Kind: schedule, Mode: "all", Seeds: 2000},
			Patches: []Patch{{
				ledgerMerge,
				"mine := h.Inc == l.inc\n",
				"mine := h.Inc != 0\n",
			}},
		},
		{
			Name:      "incarnation reused",
			Rule:      "A3, trap 2",
			Breaks:    "the same, and two different rows go by one (incarnation, seq)",
			Adversary: Adversary{Kind: schedule, Mode: "all", Seeds: 4000},
			Patches: []Patch{{
				ledgerLedger,
				"l := &Ledger{cfg: cfg, inc: cfg.Inc, ownHigh: cfg.Inc,",
				"l := &Ledger{cfg: cfg, inc: 1, ownHigh: 1,",
			}},
		},
		{
			Name:      "rows in arrival order",
			Rule:      "L1, trap 3",
			Breaks:    "a recalled loan comes back after its end was acknowledged",
			Adversary: Adversary{Kind: schedule, Mode: "all", Seeds: 500},
			Patches: []Patch{{
				ledgerMerge,
				"if p.row != nil && !r.newerThan(p.row) {",
				"if r == p.row {",
			}},
		},
		{
			Name:      "lease counted from receipt",
			Rule:      "L2, trap 6",
			Breaks:    "a row that was long under way gives a lease that outlives the lender's wait",
			Adversary: Adversary{Kind: schedule, Mode: "all", Seeds: 500},
			Patches: []Patch{{
				ledgerMerge,
				"s.end = at + int64(",
				"s.end = max(at, l.peers[r.Node].at) + int64(",
			}},
		},
		{
			Name:      "publish clock read after the send",
			Rule:      "L4, trap 6",
			Breaks:    "a pause between sending a row and noting when prolongs every lease that starts with it",
			Adversary: Adversary{Kind: schedule, Mode: "all", Seeds: 500},
			Patches: []Patch{{
				ledgerProof,
				"\tl.tryProve()\n\tl.tryEndQuarantine(now)\n",
				"\tif n := len(l.log.entries); n > 0 {\n\t\tl.log.entries[n-1].at = now\n\t}\n\tl.tryProve()\n\tl.tryEndQuarantine(now)\n",
			}},
		},
		{
			Name:      "release applied to in-flight rows",
			Rule:      "L7, trap 5",
			Breaks:    "rows that had heard the release lend anew and are under way, and the lender counts them as given back",
			Adversary: Adversary{Kind: schedule, Mode: "all", Seeds: 500},
			Patches: []Patch{{
				ledgerBook,
				"if e.hSeq < c.seq {",
				"if c.seq != 0 {",
			}},
		},
		{
			Name:      "ack resets to current",
			Rule:      "L5, L6, trap 4",
			Breaks:    "an acknowledged smaller loan frees what a larger one, published later and still under way, will lend",
			Adversary: Adversary{Kind: schedule, Mode: "all", Seeds: 500},
			Patches: []Patch{{
				ledgerBook,
				"if e.seq < seq {",
				"if e.seq < seq || e.seq != b.out[j][len(b.out[j])-1].seq {",
			}},
		},
		{
			Name:      "only the newest grant kept",
			Rule:      "L5, trap 4",
			Breaks:    "a row that lends less frees at once what the borrower is still using",
			Adversary: Adversary{Kind: schedule, Mode: "all", Seeds: 500},
			Patches: []Patch{{
				ledgerBook,
				"if old.hInc != e.hInc || old.amount > e.amount || old.end > e.end || old.hSeq > e.hSeq {",
				"if old.hInc != e.hInc {",
			}},
		},
		{
			Name:      "expiry from the first grant",
			Rule:      "L4, trap 7",
			Breaks:    "renewals outlive the expiry that the lender counts with",
			Adversary: Adversary{Kind: schedule, Mode: "all", Seeds: 500},
			Patches: []Patch{{
				ledgerBook,
				"\t\tlist = list[:n-1]\n",
				"\t\te.end = min(e.end, old.end)\n\t\tlist = list[:n-1]\n",
			}},
		},
		{
			Name:      "eps 0 under drift",
			Rule:      "A2, trap 13",
			Breaks:    "a slow borrower's lease outlives a fast lender's wait",
			Adversary: Adversary{Kind: schedule, Mode: "all", Seeds: 500},
			Patches: []Patch{{
				ledgerLedger,
				"return t + (t*l.cfg.EpsPPM+999_999)/1_000_000 + int64(l.cfg.Guard)",
				"return t + int64(l.cfg.Guard)",
			}},
		},
		{
			Name:      "terms that differ",
			Rule:      "L2, trap 12",
			Breaks:    "a borrower with a longer term than its lender's uses the loan after the lender took it back",
			Adversary: Adversary{Kind: schedule, Mode: "all", Seeds: 500},
			Patches: []Patch{{
				ledgerMerge,
				"int64(min(l.cfg.Term, r.Term))",
				"int64(l.cfg.Term)",
			}},
		},
		{
			Name:      "sub-lending",
			Rule:      "L4, trap 14",
			Breaks:    "what is lent on outlives the loan it came from",
			Adversary: Adversary{Kind: schedule, Mode: "all", Seeds: 500},
			Patches: []Patch{
				{ledgerPublish, "room := b.ceiling\n", "room := b.ceiling + b.held(now)\n"},
				{ledgerPublish, "free := min(b.ceiling-b.outstanding(now)-b.keep, room)", "free := min(b.ceiling+b.held(now)-b.outstanding(now)-b.keep, room)"},
				{ledgerSteps, "return max(0, l.ceiling(b)-b.outstanding(now))", "return l.ceiling(b) - b.outstanding(now)"},
				{ledgerSteps, "total := l.ownPart(now, bk)\n\tdst = append(dst, Step{math.MaxInt64, total})", "total := l.ownPart(now, bk)\n\tdst = append(dst, Step{math.MaxInt64, max(0, total)})"},
				{ledgerSteps, "\t\ttotal = addSat(total, dst[i].Rate)\n\t\tdst[i].Rate = total\n", "\t\ttotal += dst[i].Rate\n\t\tdst[i].Rate = max(0, total)\n"},
				// What is held is passed on, to whoever needs most, instead of given back.
				{ledgerSettle, "ceiling = l.offered(b)\n", "ceiling = l.offered(b) + b.held(now)\n"},
				{ledgerSettle, "if over <= 0 ||", "if over <= 0 || l.usable() ||"},
			},
		},
		{
			Name:      "out as max over incarnations",
			Rule:      "L5, trap 16",
			Breaks:    "two live processes of a borrower both hold a loan that is counted once",
			Adversary: Adversary{Kind: schedule, Mode: "plain", Profile: "ghosts", Seeds: 1000},
			Patches: []Patch{{
				ledgerBook,
				"if e.hInc != inc {\n\t\t\ttotal += most\n\t\t\tinc, most = e.hInc, 0\n",
				"if e.hInc != inc {\n\t\t\tinc = e.hInc\n",
			}},
		},
		{
			Name:      "ack by a new life frees old loans",
			Rule:      "L6, trap 15",
			Breaks:    "the old process of a borrower, alive, uses the loan that its successor is believed to have dropped",
			Adversary: Adversary{Kind: schedule, Mode: "plain", Profile: "ghosts", Seeds: 1000},
			Patches: []Patch{{
				ledgerBook,
				"if e.hInc == inc {\n\t\t\tif e.seq < seq {",
				"if e.hInc <= inc {\n\t\t\tif e.seq < seq {",
			}},
		},
	}
}
