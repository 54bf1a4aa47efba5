package ledger

import (
	"encoding/json"
	"testing"
	"time"

	"subak/allocator"
)

const (
	unit  = allocator.Unit
	term  = 2 * time.Second
	guard = 10 * time.Millisecond
	ms    = int64(time.Millisecond)
	incA  = 1000 // incarnation of a, the node under test
	incB  = 2000
	incC  = 3000
)

// Ids of the fixture's names, in the order of the directory.
const (
	a NodeID = iota
	b
	c
	d
	e
)

// fixture is one ledger, of node a, and rows of the others written by hand.
type fixture struct {
	*testing.T
	l     *Ledger
	dir   *Directory
	epoch *Epoch
	now   int64
}

func directory() *Directory {
	dir := NewDirectory()
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		dir.Intern(name)
	}
	return dir
}

// epochOf gives each of the members a base in units; version also is the hash.
func epochOf(version uint64, parent *Epoch, bases map[NodeID]allocator.Rate) *Epoch {
	ep := &Epoch{ID: EpochID{version, version}, Root: 1}
	budget := BudgetBase{Name: "origin", Classes: 1}
	for id := a; id <= e; id++ {
		if base, ok := bases[id]; ok {
			ep.Roster = append(ep.Roster, Member{id, 1})
			budget.Base = append(budget.Base, base*unit)
		}
	}
	ep.Budgets = []BudgetBase{budget}
	if parent != nil {
		ep.Parent = parent.ID
		for _, m := range parent.Roster {
			ep.ParentRoster = append(ep.ParentRoster, m.ID)
		}
	}
	return ep
}

func config(dir *Directory) Config {
	return Config{Self: a, Inc: incA, Term: term, Live: term, EpsPPM: 10_000, Guard: guard, Directory: dir}
}

func newFixture(t *testing.T, mod func(*Config), bases map[NodeID]allocator.Rate) *fixture {
	t.Helper()
	dir := directory()
	return startFixture(t, mod, dir, epochOf(1, nil, bases))
}

func startFixture(t *testing.T, mod func(*Config), dir *Directory, ep *Epoch) *fixture {
	t.Helper()
	cfg := config(dir)
	mod(&cfg)
	l, err := New(cfg, ep, 0)
	if err != nil {
		t.Fatal(err)
	}
	return &fixture{T: t, l: l, dir: dir, epoch: ep}
}

func bootstrapped(cfg *Config) { cfg.Bootstrap = true }
func memoryless(*Config)       {}

// three members with 10 units each, a bootstrapped.
func three(t *testing.T) *fixture {
	t.Helper()
	return newFixture(t, bootstrapped, map[NodeID]allocator.Rate{a: 10, b: 10, c: 10})
}

// row makes an acknowledged row of another node under epoch ep that heard a's
// rows up to seq heard of this life, 0 for nothing.
func (f *fixture) row(from NodeID, inc, seq, heard uint64, ep *Epoch, loans ...Loan) *Row {
	r := &Row{Node: from, Inc: inc, Seq: seq, Term: term, Epoch: ep.ID, Acked: true,
		Heard: make([]Heard, f.dir.Len())}
	if heard > 0 {
		r.Heard[a] = Heard{f.l.inc, heard}
	}
	for _, m := range ep.Roster {
		r.Extra = append(r.Extra, m.ID)
	}
	for i, bb := range ep.Budgets {
		s := Section{Demand: make([]allocator.Rate, bb.Classes)}
		if i == 0 {
			s.Loans = loans
			if p := ep.Position(from); p >= 0 {
				s.Ceiling = bb.Base[p]
			}
		}
		r.Sections = append(r.Sections, s)
	}
	return r
}

func (f *fixture) merge(r *Row) {
	f.Helper()
	if got := f.l.Merge(f.now, r); got != Applied {
		f.Fatalf("merge of node %d row %d.%d: %v", r.Node, r.Inc, r.Seq, got)
	}
	f.l.Control(f.now)
}

func (f *fixture) adopt(ep *Epoch) {
	f.Helper()
	if err := f.l.Adopt(f.now, ep); err != nil {
		f.Fatal(err)
	}
	f.l.Control(f.now)
}

// settle sets own demand and all targets, in units, and settles.
func (f *fixture) settle(targets ...allocator.Rate) allocator.Rate {
	f.Helper()
	scaled := make([]allocator.Rate, len(targets))
	for i := range targets {
		scaled[i] = targets[i] * unit
	}
	change, _ := f.l.Settle(f.now, 0, scaled)
	return change
}

func (f *fixture) publish() *Row {
	f.Helper()
	r := f.l.Publish(f.now, 0)
	if r == nil {
		f.Fatal("nothing published")
	}
	return r
}

// enforced is what may be enforced now, in micro-units.
func (f *fixture) enforced() allocator.Rate { return f.l.Steps(f.now, 0, nil)[0].Rate }

func (f *fixture) wantEnforced(units allocator.Rate) {
	f.Helper()
	if got := f.enforced(); got != units*unit {
		f.Errorf("enforced %d, want %d units", got, units)
	}
}

func (f *fixture) wantOut(units allocator.Rate) {
	f.Helper()
	if got := f.l.books[0].outstanding(f.now); got != units*unit {
		f.Errorf("outstanding %d, want %d units", got, units)
	}
}

// meet lets a and the others hear one another: afterwards all are live.
func (f *fixture) meet() {
	f.Helper()
	seq := f.publish().Seq
	f.merge(f.row(b, incB, 1, seq, f.epoch))
	f.merge(f.row(c, incC, 1, seq, f.epoch))
}

// lendToB makes a lend units to b in a row, which it returns.
func (f *fixture) lendToB(units allocator.Rate) *Row {
	f.Helper()
	f.settle(10-units, 10+units, 10)
	r := f.publish()
	if got := loanTo(r.Sections[0].Loans, b); got != units*unit {
		f.Fatalf("row lends %d to b, want %d units", got, units)
	}
	return r
}

// store passes Stored through JSON, as a disk does.
func store(t *testing.T, l *Ledger) *Stored {
	t.Helper()
	raw, err := json.Marshal(l.Stored())
	if err != nil {
		t.Fatal(err)
	}
	var s Stored
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatal(err)
	}
	return &s
}

// witnessed makes n of b, c, d, e vouch for a under ep.
func (f *fixture) witnessed(ep *Epoch, n int) {
	f.Helper()
	seq := f.publish().Seq
	for i := range n {
		id := b + NodeID(i)
		f.merge(f.row(id, incB+uint64(i)*1000, 900+seq, seq, ep))
	}
}

// fair targets: demand first, then max-min; enough to make loans move.
func targets(v *View) []allocator.Rate {
	out := make([]allocator.Rate, v.N)
	var total, ceilings allocator.Rate
	for i := range out {
		total += v.Demand[i]
		ceilings += v.Ceilings[i]
	}
	if total <= ceilings {
		spare := ceilings - total
		live := 0
		for i := range out {
			if v.Live[i] {
				out[i] = v.Demand[i]
				live++
			}
		}
		for i := range out {
			if v.Live[i] {
				out[i] += spare / allocator.Rate(live)
			}
		}
		return out
	}
	left := ceilings
	for i := range out {
		out[i] = min(v.Demand[i], v.Ceilings[i])
		left -= out[i]
	}
	for i := range out {
		more := min(left, v.Demand[i]-out[i])
		out[i] += more
		left -= more
	}
	return out
}

// limitOf is the budget that the bases of e add up to.
func limitOf(e *Epoch, b int) (sum allocator.Rate) {
	for _, x := range e.Budgets[b].Base {
		sum += x
	}
	return sum
}
