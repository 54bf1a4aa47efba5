//go:build !baseline

package core

import (
	"fmt"

	"subak/allocator"
	"subak/allocator/ledger"
)

// Baselines says whether this build can run the nodes that the protocol is
// compared with: see the file of the build tag baseline.
const Baselines = false

// checkBaseline refuses every baseline, so that nobody starts a node by mistake
// that does not keep the budget.
func checkBaseline(name string) error {
	if name != "" {
		return fmt.Errorf("core: baseline %q: this build has none", name)
	}
	return nil
}

// believed is what the allocation of b is computed from.
func (c *Core) believed(b *Budget) (ceilings, demand []allocator.Rate) {
	return b.View.Ceilings, b.View.Demand
}

// trade lets the ledger settle towards the targets of b, and returns by how much
// the own row would change.
func (c *Core) trade(now int64, b *Budget) allocator.Rate {
	change, _ := c.led.Settle(now, b.Index, b.Total)
	return change
}

// allowed appends to dst[:0] what may be enforced of b from now on.
func (c *Core) allowed(now int64, b *Budget, dst []ledger.Step) []ledger.Step {
	return c.led.Steps(now, b.Index, dst)
}
