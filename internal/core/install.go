package core

import (
	"fmt"
	"math"
	"slices"

	"subak/allocator"
	"subak/allocator/ledger"
	"subak/enforce"
	"subak/internal/epoch"
)

// A change of epoch replaces the list of budgets. What lives on keeps its
// limiter with its tokens, or gets one that succeeds it; nobody is granted
// a fresh burst (lesson O3).

// draft builds the budgets of an epoch out of the present ones. It puts nothing
// in force and changes nothing of what is, so that it may fail.
func (c *Core) draft(rec *epoch.Record, now int64) ([]*Budget, error) {
	budgets := make([]*Budget, len(rec.Doc.Budgets))
	for i := range budgets {
		b, err := c.draftBudget(&rec.Doc.Budgets[i], i, rec.Epoch.Position(c.self))
		if err != nil {
			return nil, err
		}
		if old := c.budgetNamed(b.Name); old != nil {
			b.follow(old, now)
		}
		for k := range b.meters {
			if b.meters[k] == nil {
				b.meters[k] = enforce.NewEstimator(enforce.EstimatorConfig{Tick: c.cfg.Tick})
			}
		}
		budgets[i] = b
	}
	return budgets, nil
}

func (c *Core) budgetNamed(name string) *Budget {
	for _, b := range c.budgets {
		if b.Name == name {
			return b
		}
	}
	return nil
}

func (c *Core) draftBudget(doc *epoch.Budget, at, pos int) (*Budget, error) {
	alloc, err := allocator.New(doc.Spec)
	if err != nil {
		return nil, fmt.Errorf("core: budget %q: %w", doc.Name, err)
	}
	k, n := alloc.Classes(), alloc.Nodes()
	b := &Budget{
		Name: doc.Name, Index: at, Doc: doc, alloc: alloc,
		Target: make([]allocator.Rate, k*n), Total: make([]allocator.Rate, n), Demand: make([]allocator.Rate, k),
		counts: make([]enforce.Counts, k), before: make([]enforce.Counts, k), meters: make([]*enforce.Estimator, k),
		static: make([]allocator.Rate, k), zero: make([]allocator.Rate, k*n),
	}
	lends, borrows := make([]bool, k), make([]bool, k)
	for i, cl := range doc.Spec.Classes {
		lends[i], borrows[i] = cl.Lend != 0, cl.Borrow != 0
	}
	b.shape = enforce.LimiterConfig{
		Classes: k, Burst: doc.Burst, LargestCost: max(c.cfg.LargestCost[doc.Name], 1), Revocable: doc.Revocable,
		Lends: lends, Borrows: borrows, Shadow: doc.Shadow, Tenants: tenants(doc, alloc, pos),
	}
	if err := b.shape.Validate(); err != nil {
		return nil, fmt.Errorf("core: budget %q: %w", doc.Name, err)
	}
	return b, nil
}

// tenants is how a budget's classes bound their tenants at the node of a position,
// negative for one that is no member; nil where none does.
func tenants(doc *epoch.Budget, alloc *allocator.Allocator, pos int) []enforce.TenantConfig {
	if len(doc.Tenants) == 0 {
		return nil
	}
	out := make([]enforce.TenantConfig, len(doc.Spec.Classes))
	for k, class := range doc.Spec.Classes {
		if t := doc.TenantsOf(class.Name); t != nil {
			out[k] = enforce.TenantConfig{Share: t.SharePPM, Rate: t.Rate, Burst: t.Burst, Keys: t.Keys}
			if t.SharePPM > 0 && pos >= 0 {
				out[k].Base = alloc.Base(k, pos)
			}
		}
	}
	return out
}

// begin gives a budget that is new here its limiter, which is empty.
func (b *Budget) begin(now int64) {
	b.recent = newRecent(len(b.meters), now)
	b.Limiter = enforce.NewLimiter(b.shape, now)
	b.Plane = &Plane{limiter: b.Limiter}
}

// follow takes over from the budget of the same name: the limiter if it may
// stay, and what is known of the demand of classes that stay.
func (b *Budget) follow(old *Budget, now int64) {
	from := origins(b.Doc, old.Doc)
	b.Plane, b.Limiter = old.Plane, old.Limiter
	inPlace := sameShape(&b.shape, &old.shape)
	for k, was := range from {
		inPlace = inPlace && k == was
		if was < 0 {
			continue
		}
		b.meters[k] = old.meters[was]
		b.counts[k], b.before[k] = old.counts[was], old.before[was]
		b.Demand[k] = old.Demand[was]
	}
	if inPlace {
		b.recent = old.recent
		return
	}
	b.heir = from
	b.recent = newRecent(len(b.meters), now)
	for k, was := range from {
		if was >= 0 {
			b.recent.older.refused[k], b.recent.newer.refused[k] = old.counts[was].Refused, old.counts[was].Refused
		}
	}
}

// origins says which class of the old budget each class of the new one is, by
// name; -1 for none.
func origins(fresh, old *epoch.Budget) []int {
	from := make([]int, len(fresh.Spec.Classes))
	for k := range from {
		from[k] = slices.IndexFunc(old.Spec.Classes, func(c allocator.ClassSpec) bool { return c.Name == fresh.Spec.Classes[k].Name })
	}
	return from
}

func sameShape(a, b *enforce.LimiterConfig) bool {
	return a.Classes == b.Classes && a.Burst == b.Burst && a.LargestCost == b.LargestCost && a.Revocable == b.Revocable &&
		a.Shadow == b.Shadow && slices.Equal(a.Lends, b.Lends) && slices.Equal(a.Borrows, b.Borrows) &&
		slices.Equal(a.Tenants, b.Tenants)
}

// replace puts a drafted list of budgets in the place of the present one and in
// force, under the epoch that the ledger has just adopted: what is lowered is
// lowered when it returns (A5, E1).
func (c *Core) replace(now int64, budgets []*Budget) {
	gone := c.budgets
	c.budgets = budgets
	c.awaitCarved(now, gone)
	for _, old := range gone {
		if c.budgetNamed(old.Name) == nil {
			old.Plane.retire(now)
		}
	}
	for _, b := range budgets {
		if b.Limiter == nil {
			b.begin(now)
			c.reserveFormer(now, b)
		}
		c.led.SetDemand(b.Index, b.Demand)
	}
	c.settle(now)
	c.install(now)
}

// SetLargestCosts changes [Config].LargestCost, as when the rules that name
// costs change: limiters of budgets whose largest cost differs are succeeded,
// as by a change of epoch, Installed included. An error changes nothing.
func (c *Core) SetLargestCosts(now int64, costs map[string]int64) error {
	before := c.cfg.LargestCost
	c.cfg.LargestCost = costs
	if !slices.ContainsFunc(c.budgets, func(b *Budget) bool { return b.shape.LargestCost != max(costs[b.Name], 1) }) {
		return nil
	}
	budgets, err := c.draft(c.lineage.cur, now)
	if err != nil {
		c.cfg.LargestCost = before
		return err
	}
	c.replace(now, budgets)
	if c.cfg.Installed != nil {
		c.cfg.Installed(budgets)
	}
	return nil
}

// install puts the shares in force, where they differ from what is in force.
func (c *Core) install(now int64) {
	for _, b := range c.budgets {
		c.installOne(now, b)
	}
}

func (c *Core) installOne(now int64, b *Budget) {
	c.schedule(now, b)
	succeeds := b.heir != nil
	if succeeds {
		b.Limiter = b.Plane.renew(now, b.shape, b.heir, b.plan)
		b.heir = nil
	}
	c.fallBack(now, b)
	changed := !slices.EqualFunc(b.plan, b.applied, sameStep) || b.Plane.overridden() || b.Limiter.Lapsed(now)
	if changed && !succeeds {
		b.Plane.set(now, b.plan)
	} else {
		b.Limiter.Unpin()
	}
	if changed {
		b.plan, b.applied = b.applied, b.plan
	}
}

// fallBack notes the share for the case that the owner stalls.
func (c *Core) fallBack(now int64, b *Budget) {
	if c.pos < 0 {
		clear(b.static)
		b.Plane.fallBack(0, b.static, now)
		return
	}
	ceiling, from := c.led.Fallback(b.Index)
	b.alloc.Split(b.static, ceiling, c.pos, b.zero)
	b.Plane.fallBack(ceiling, b.static, from)
}

// schedule computes b.plan: the steps that may be enforced from now on. A node
// outside the roster enforces nothing: it has no base, gives back what it
// borrowed, and has no place in the split over classes.
func (c *Core) schedule(now int64, b *Budget) {
	b.plan = b.plan[:0]
	if c.pos < 0 {
		b.plan = append(b.plan, enforce.Step{Until: math.MaxInt64, Classes: make([]allocator.Rate, len(b.meters))})
		return
	}
	b.steps = c.allowed(now, b, b.steps)
	for _, s := range b.steps {
		b.plan = appendStep(b.plan, s, len(b.meters))
		classes := b.plan[len(b.plan)-1].Classes
		if b.Doc.Revocable {
			b.alloc.SplitRevocable(classes, s.Rate, c.pos, b.Target)
		} else {
			b.alloc.Split(classes, s.Rate, c.pos, b.Target)
		}
	}
	c.entitle(now, b)
}

// appendStep grows plan by one step, reusing the class slice that lies behind
// its end, if there is one.
func appendStep(plan []enforce.Step, s ledger.Step, classes int) []enforce.Step {
	if len(plan) < cap(plan) {
		plan = plan[:len(plan)+1]
	} else {
		plan = append(plan, enforce.Step{})
	}
	last := &plan[len(plan)-1]
	last.Until, last.Total = s.Until, s.Rate
	if len(last.Classes) != classes {
		last.Classes = make([]allocator.Rate, classes)
	}
	return plan
}

func sameStep(a, b enforce.Step) bool {
	return a.Until == b.Until && a.Total == b.Total && slices.Equal(a.Classes, b.Classes) && slices.Equal(a.Carvable, b.Carvable)
}
