package core

import "subak/allocator/ledger"

// Ledger returns the state that the core works on, for those who check it from
// outside, as the simulators do. It must only be read, and by the owner of the
// core; Restart and a change of epoch keep it the same.
func (c *Core) Ledger() *ledger.Ledger { return c.led }
