package core

import (
	"slices"

	"subak/allocator/ledger"
)

// A pass between two ticks works on the budgets about which there is news, so
// that its cost does not hang on how many there are. A tick, and whatever
// concerns all budgets, works on all: time alone moves leases and windows, and a
// renewed lease need not reach the data plane before the next tick. A quiet node
// has no leases: its ticks work on all once in quietSettle. Before a row
// leaves that lends or borrows, all budgets are put in force, since any of them may
// lend more by it.

// stale says which budgets have news since they were settled last.
type stale struct {
	all   bool
	which []bool // by budget
}

func (s *stale) mark(b int) {
	for b >= len(s.which) {
		s.which = append(s.which, false)
	}
	s.which[b] = true
}

func (s *stale) has(b int) bool { return s.all || b < len(s.which) && s.which[b] }

func (s *stale) clear() {
	s.all = false
	clear(s.which)
}

// markRow notes which budgets the row brings news of, compared with the one it
// replaced. A section that names releases is news each time: whether one
// still counts hangs on what the row has heard.
func (c *Core) markRow(before, row *ledger.Row) {
	if before == nil || before.Inc != row.Inc || before.Epoch != row.Epoch || row.Epoch != c.epoch.ID || len(before.Sections) != len(row.Sections) {
		c.stale.all = true
		return
	}
	if alike(before.Sections, row.Sections) {
		return
	}
	for i := range row.Sections {
		if !sameSection(&before.Sections[i], &row.Sections[i]) {
			c.stale.mark(i)
		}
	}
}

// alike reports whether two rows say the same in the same memory, as the decoder
// lets them as long as they lend and release nothing.
func alike(a, b []ledger.Section) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

func sameSection(a, b *ledger.Section) bool {
	return len(a.Caps) == 0 && len(b.Caps) == 0 && a.Ceiling == b.Ceiling && same(a.Demand, b.Demand) && same(a.Loans, b.Loans)
}

// same compares two slices, at once if a delta let them share their memory.
func same[T comparable](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || slices.Equal(a, b))
}

// settleNews settles the budgets that have news, and all if the set of live nodes
// has changed.
func (c *Core) settleNews(now int64) {
	for i, b := range c.budgets {
		if c.led.News(i) || b.Limiter.Carving() {
			c.stale.mark(i)
		}
		if i == 0 {
			c.settleOne(now, b)
			c.stale.mark(0)
			c.stale.all = c.stale.all || !slices.Equal(b.former.Live, b.View.Live)
		} else if c.stale.has(i) {
			c.settleOne(now, b)
		}
	}
}

// installNews puts the budgets that were settled in force.
func (c *Core) installNews(now int64) {
	for i, b := range c.budgets {
		if c.stale.has(i) {
			c.installOne(now, b)
		}
	}
	c.stale.clear()
}
