//go:build baseline

package core

import (
	"fmt"
	"math"
	"math/bits"

	"subak/allocator"
	"subak/allocator/ledger"
)

// The baselines are what the protocol is compared with in the testbed: the same
// node, but for what decides its shares. They are in builds with the tag baseline
// only, for one of them does not keep the budget.
//
//   - static: every node enforces its base, whatever is asked of it. The sum is
//     the budget; what one node does not need is of no use to another.
//   - naive: every node enforces the target that its own view gives, at once. It
//     takes the nodes that it does not see for gone and shares their bases out
//     among those it sees. Two nodes whose views differ, for a moment or for an
//     hour, enforce more than the budget together.
//
// Neither lends, borrows or waits: not after a start, and not for anybody's
// acknowledgement of a change. Rows go on being published, with the demand in
// them and no loans, so that meters, gossip and views are those of the product.

// Baselines says that this build can run the nodes that the protocol is
// compared with.
const Baselines = true

// Names of the baselines, as in Config.Baseline.
const (
	BaselineStatic = "static"
	BaselineNaive  = "naive"
)

func checkBaseline(name string) error {
	switch name {
	case "", BaselineStatic, BaselineNaive:
		return nil
	}
	return fmt.Errorf("core: baseline %q: want %s or %s", name, BaselineStatic, BaselineNaive)
}

// believed is what the allocation of b is computed from: for a static node itself
// alone, for a naive one the whole budget over the nodes it sees.
func (c *Core) believed(b *Budget) (ceilings, demand []allocator.Rate) {
	if c.cfg.Baseline == "" || c.pos < 0 {
		return b.View.Ceilings, b.View.Demand
	}
	base := c.epoch.Budgets[b.Index].Base
	sees := func(i int) bool { return i == c.pos || c.cfg.Baseline == BaselineNaive && b.View.Live[i] }
	var all, seen allocator.Rate
	for i, x := range base {
		all += x
		if sees(i) {
			seen += x
		}
	}
	if c.cfg.Baseline == BaselineStatic {
		all = seen // what the others have is theirs
	}
	ceilings, demand = make([]allocator.Rate, len(base)), make([]allocator.Rate, len(b.View.Demand))
	for i, x := range base {
		if !sees(i) {
			continue
		}
		ceilings[i] = scaled(x, all, seen)
		for k := range b.meters {
			demand[k*len(base)+i] = b.View.Demand[k*len(base)+i]
		}
	}
	return ceilings, demand
}

// scaled is x * up / down, rounded down, for 0 <= x <= down <= up.
func scaled(x, up, down allocator.Rate) allocator.Rate {
	if down == 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(x), uint64(up))
	q, _ := bits.Div64(hi, lo, uint64(down))
	return allocator.Rate(q)
}

// trade does nothing for a baseline: it has no loans. A change of its demand is
// published at once all the same, when the meters see it jump.
func (c *Core) trade(now int64, b *Budget) allocator.Rate {
	if c.cfg.Baseline != "" {
		return 0
	}
	change, _ := c.led.Settle(now, b.Index, b.Total)
	return change
}

// allowed appends to dst[:0] what may be enforced of b from now on: for a
// baseline its base or its target, for ever.
func (c *Core) allowed(now int64, b *Budget, dst []ledger.Step) []ledger.Step {
	switch c.cfg.Baseline {
	case BaselineStatic:
		return append(dst[:0], ledger.Step{Until: math.MaxInt64, Rate: c.epoch.Budgets[b.Index].Base[c.pos]})
	case BaselineNaive:
		return append(dst[:0], ledger.Step{Until: math.MaxInt64, Rate: b.Total[c.pos]})
	}
	return c.led.Steps(now, b.Index, dst)
}
