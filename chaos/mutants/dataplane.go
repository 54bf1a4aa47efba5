package main

// dataPlane are the mutants of enforcement, of the order in which a node does
// things, and of the allocation.
func dataPlane() []Mutant {
	return []Mutant{
		{
			Name:      "share lowered a tick late",
			Rule:      "L4, trap 8",
			Breaks:    "lender and borrower both use the loan until the lender's next cycle",
			Adversary: Adversary{Kind: timed, Mode: "plain", Faults: 40, Seeds: 40},
			Patches: []Patch{
				{corePass, "\tc.published = now\n\tquiet := c.led.Quiet()\n\tif !quiet {\n\t\tc.stale.all = true // any budget may lend more by this row\n\t}\n\tc.installNews(now)\n", "\tc.published = now\n\tquiet := c.led.Quiet()\n"},
				{corePass, "\trow := c.led.Publish(now,", "\tc.install(now)\n\trow := c.led.Publish(now,"},
			},
		},
		{
			Name:      "frozen number in the data plane",
			Rule:      "A5, trap 9",
			Breaks:    "while control is paused, a borrower keeps what it borrowed",
			Adversary: Adversary{Kind: timed, Mode: "plain", Faults: 40, Seeds: 40},
			Patches: []Patch{
				{enforceLimiter, "if now < s.until || s.until == math.MaxInt64 {", "if now < s.until || s.t0 < s.until {"},
			},
		},
		{
			Name:      "expiry checked only on ticks",
			Rule:      "A5, trap 9",
			Breaks:    "a loan is used until the borrower's next cycle",
			Adversary: Adversary{Kind: timed, Mode: "plain", Faults: 40, Seeds: 40},
			Patches: []Patch{
				{coreInstall, "\tc.schedule(now, b)\n", "\tc.schedule(now, b)\n\tb.plan = b.plan[:1]\n\tb.plan[0].Until = math.MaxInt64\n"},
			},
		},
		{
			Name:      "clock that stops in suspend",
			Rule:      "A2, trap 10",
			Breaks:    "a suspended borrower wakes with its loans, which ended long ago",
			Adversary: Adversary{Kind: schedule, Mode: "all", Seeds: 500},
			Patches: []Patch{
				{scheduleApply, "\t\tp.paused = true\n\t\tif w.broken == jumpsClock {", "\t\tp.paused = true\n\t\tif !w.calm {"},
				{scheduleApply, "\t\tp.paused = false\n\t\tif w.broken == jumpsClock {", "\t\tp.paused = false\n\t\tif !w.calm {"},
			},
		},
		{
			Name:      "tokens refilled on a share change",
			Rule:      "A5, lesson O3",
			Breaks:    "each change of the share grants a fresh burst",
			Adversary: Adversary{Kind: timed, Mode: "plain", Faults: 40, Seeds: 40},
			Patches: []Patch{
				{enforceLimiter, "\t\tif l.seg.CompareAndSwap(s, n) {\n", "\t\tif l.seg.CompareAndSwap(s, n) {\n\t\t\tfor b := range l.cells {\n\t\t\t\tl.cells[b].used.Store(n.lines[b].c0 - n.lines[b].cap)\n\t\t\t}\n"},
			},
		},
		{
			Name:      "burst not scaled with share",
			Rule:      "A5, trap 11",
			Breaks:    "a node that gave its share away keeps its whole burst, and so do all others",
			Adversary: Adversary{Kind: timed, Mode: "plain", Faults: 40, Seeds: 40},
			Patches: []Patch{
				// Every node's bucket holds the budget's burst.
				{enforceLimiter, "\tClasses int\n", "\tClasses int\n\tLimit   allocator.Rate\n"},
				{enforceLimiter, "lending: cfg.Revocable, cores:", "lending: cfg.Revocable, limit: cfg.Limit, cores:"},
				{enforceSegment, "\tlending bool  // classes lend tokens to one another\n", "\tlending bool\n\tlimit   allocator.Rate\n"},
				{enforceSegment, "cap: sh.capOf(r, sh.least(&st, b)), rate: r,", "cap: sh.capOf(max(r, sh.limit), sh.least(&st, b)), rate: r,"},
				{coreInstall, "\t\tClasses: k, Burst: doc.Burst,", "\t\tLimit: doc.Spec.Budget, Classes: k, Burst: doc.Burst,"},
			},
		},
		{
			Name:      "float targets",
			Rule:      "law 8",
			Breaks:    "CPUs that fuse multiply and add compute other targets from the same view",
			Adversary: Adversary{Kind: timed, Mode: "plain", Faults: 40, Seeds: 40},
			Patches: []Patch{
				{allocatorShare, "\t\"math/bits\"\n)\n", "\t\"math/bits\"\n)\n\n// fused says that the CPU fuses multiply and add.\nvar fused bool\n\nfunc (*Allocator) SetFused(is bool) { fused = is }\n"},
				{allocatorShare, "// scratch is the memory", "func floatShare(out, v []Rate, total, sum Rate) {\n\tratio := float64(total) / float64(sum)\n\tfor i, x := range v {\n\t\tif fused {\n\t\t\tout[i] = Rate(math.FMA(float64(x), ratio, float64(out[i])))\n\t\t} else {\n\t\t\tproduct := float64(x) * ratio\n\t\t\tout[i] = Rate(product + float64(out[i]))\n\t\t}\n\t}\n}\n\n// scratch is the memory"},
				{allocatorPlace, "\t\ta.s.addShare(out, weight, spare, sum)\n\t\treturn 0\n", "\t\tfloatShare(out, weight, spare, sum)\n\t\treturn 0\n"},
				{corePass, "err = b.alloc.Allocate(b.Target, demand)", "b.alloc.SetFused(c.pos%2 == 1)\n\t\terr = b.alloc.Allocate(b.Target, demand)"},
			},
		},
		{
			Name:      "map-order settlement",
			Rule:      "style, law 8",
			Breaks:    "nodes with the same view match lenders and borrowers in other ways, and no run can be replayed",
			Adversary: Adversary{Kind: schedule, Mode: "plain", Seeds: 300, Twice: true},
			Patches: []Patch{
				{ledgerSettle, "\tj := 0\n\tfor i := 0; i <= self; i++ {", "\tvar order []int\n\tset := map[int]bool{}\n\tfor j := range m.need {\n\t\tset[j] = true\n\t}\n\tfor j := range set {\n\t\torder = append(order, j)\n\t}\n\tj := 0\n\tfor i := 0; i <= self; i++ {"},
				{ledgerSettle, "j < len(m.need); {\n\t\t\tt := min(left, m.need[j]-m.in[j])", "j < len(m.need); {\n\t\t\tt := min(left, m.need[order[j]]-m.in[order[j]])"},
				{ledgerSettle, "\t\t\tm.add(i, j, t)\n", "\t\t\tm.add(i, order[j], t)\n"},
			},
		},
	}
}
