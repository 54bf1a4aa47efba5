package ledger

import (
	"time"

	"subak/allocator"
)

// smallWorld is the setting of one exploration: who is there, what may go wrong,
// and how long a lease is. Time is counted in steps of a few nanoseconds of lease
// clock, so that every instant at which anything ends is visited.
type smallWorld struct {
	name  string
	shows string // what can happen here
	nodes int
	disks [mostNodes]bool
	terms [mostNodes]time.Duration
	// rates is what each lease clock adds per step of real time.
	rates  [mostNodes]int64
	epsPPM int64
	// wants are the demands that a node may have.
	wants [mostNodes][]allocator.Rate
	// mail is how many rows may be on their way from one node to another, 1 or 2.
	mail int
	// epochs[0] is in force at the start; the others come by edits, by learning
	// and by rows.
	epochs  []*Epoch
	edits   []smallEdit
	crashes int8
	// pauses: a process may also stop between merging a row and acting on it, and
	// may settle without publishing.
	pauses bool
	// copies: a row may come as the copy made for its receiver alone.
	copies bool
	// trials: an epoch may be learned for reading rows before it is adopted.
	trials bool
	// replays: rows that were overtaken stay on their way even where no receiver
	// may lose its memory. Elsewhere they are taken out, on the strength of L1.
	replays bool
	// start is played before the exploration begins.
	start []move
	// slice is the depth of the short form, depth that of the long one.
	slice, depth int
	// activates: some epoch is activated within the slice.
	activates bool
	dir       *Directory
	longest   int64 // beyond this age no reading matters
}

// smallEdit lets an operator at node by make epochs[epoch].
type smallEdit struct {
	by    NodeID
	epoch int
}

const share = 6 * DemandGrain // what each of two nodes has of its budget

// newSmallWorld fills in what most worlds have in common: bases of one share each,
// a lease of two steps for which a lender waits three, and demands of nothing or of
// everything.
func newSmallWorld(name string, nodes int, shows string) *smallWorld {
	w := &smallWorld{name: name, shows: shows, nodes: nodes, epsPPM: MinEpsPPM, dir: NewDirectory()}
	for i := range nodes {
		w.dir.Intern(string(rune('a' + i)))
		w.terms[i], w.rates[i] = 2, 1
	}
	for i := range nodes {
		w.wants[i] = []allocator.Rate{0, allocator.Rate(nodes) * share}
	}
	w.mail = mailKept
	return w
}

// steady fixes who wants everything, and lets only one row be on its way between
// two nodes: for worlds whose point lies deeper.
func (w *smallWorld) steady(hungry NodeID) {
	w.mail = 1
	for i := range NodeID(w.nodes) {
		w.wants[i] = w.wants[i][:1]
		if i == hungry {
			w.wants[i] = []allocator.Rate{allocator.Rate(w.nodes) * share}
		}
	}
}

// epoch adds an epoch with the given bases in shares, by node; -1 is no member.
func (w *smallWorld) epoch(version, hash uint64, parent int, shares ...allocator.Rate) *Epoch {
	e := &Epoch{ID: EpochID{version, hash}, Root: 1}
	if parent >= 0 {
		p := w.epochs[parent]
		e.Parent = p.ID
		for _, m := range p.Roster {
			e.ParentRoster = append(e.ParentRoster, m.ID)
		}
	}
	bb := BudgetBase{Name: "x", Classes: 1}
	for i, s := range shares {
		if s >= 0 {
			e.Roster = append(e.Roster, Member{NodeID(i), 1})
			bb.Base = append(bb.Base, s*share)
		}
	}
	e.Budgets = []BudgetBase{bb}
	w.epochs = append(w.epochs, e)
	return e
}

// edit lets node by make the newest epoch of the world.
func (w *smallWorld) edit(by NodeID) {
	w.edits = append(w.edits, smallEdit{by, len(w.epochs) - 1})
}

func (w *smallWorld) depths(slice, long int) *smallWorld {
	w.slice, w.depth = slice, long
	for i := range w.nodes {
		l := Ledger{cfg: w.config(NodeID(i))}
		for _, t := range w.terms {
			w.longest = max(w.longest, l.leaseWait(t), int64(l.cfg.Live)+1)
		}
	}
	return w
}

func (w *smallWorld) config(i NodeID) Config {
	return Config{Self: i, Term: w.terms[i], Live: w.terms[i], EpsPPM: w.epsPPM, Durable: w.disks[i], Directory: w.dir}
}

// clock is the lease clock of node i at real time t.
func (w *smallWorld) clock(i int, t int64) int64 { return 100 + t*w.rates[i] }

// index is the position of an epoch in the world's list, 255 for none.
func (w *smallWorld) index(id EpochID) byte {
	for i, e := range w.epochs {
		if e.ID == id {
			return byte(i)
		}
	}
	return 255
}

// meet is a start in which everybody hears everybody, and node hungry wants all,
// round after round; after two rounds the others lend to it.
func (w *smallWorld) meet(rounds int, hungry NodeID) {
	for range rounds {
		for i := range NodeID(w.nodes) {
			want := uint8(0)
			if i == hungry {
				want = uint8(len(w.wants[i]) - 1) // everything
			}
			w.start = append(w.start, move{kind: publish, node: i, arg: want})
			for j := range NodeID(w.nodes) {
				if j != i {
					w.start = append(w.start, move{kind: hear, node: i, to: j, arg: newestMail})
				}
			}
		}
	}
}

// smallWorlds are the worlds explored, each with its own mix of faults. Depths of
// the slice keep it within seconds; those of the long form within minutes.
func smallWorlds() []*smallWorld {
	return []*smallWorld{
		worldOfLoans(), worldOfReplays(), worldOfPauses(), worldOfDrift(), worldOfTerms(), worldOfThree(),
		worldOfCrashes(), worldOfTrio(), worldOfForgetting(), worldOfAnEdit(), worldOfRivals(), worldOfJoining(), worldOfForce(),
	}
}

func worldOfLoans() *smallWorld {
	w := newSmallWorld("loans", 2, "two nodes lend, release and recall; rows are lost, late, doubled and reordered")
	w.epoch(1, 1, -1, 1, 1)
	w.wants[b] = []allocator.Rate{0, share / 2, 2 * share}
	w.meet(2, a)
	return w.depths(6, 20)
}

func worldOfReplays() *smallWorld {
	w := newSmallWorld("replays", 2, "the same, and rows that were overtaken may come again")
	w.epoch(1, 1, -1, 1, 1)
	w.replays = true
	w.meet(2, a)
	return w.depths(5, 18)
}

func worldOfPauses() *smallWorld {
	w := newSmallWorld("pauses", 2, "the same, and a process may stop between hearing a row and acting on it")
	w.epoch(1, 1, -1, 1, 1)
	w.pauses = true
	w.meet(2, a)
	return w.depths(5, 18)
}

func worldOfDrift() *smallWorld {
	w := newSmallWorld("drift", 2, "a's lease clock runs half as fast again as b's, as much as eps allows for")
	w.epoch(1, 1, -1, 1, 1)
	w.rates = [mostNodes]int64{3, 2}
	w.terms = [mostNodes]time.Duration{6, 6} // two of a's steps, three of b's
	w.epsPPM = 500_000
	w.meet(2, b)
	return w.depths(6, 20)
}

func worldOfTerms() *smallWorld {
	w := newSmallWorld("terms", 2, "a lends for two steps, b for four")
	w.epoch(1, 1, -1, 1, 1)
	w.terms = [mostNodes]time.Duration{2, 4}
	w.meet(2, b)
	return w.depths(6, 20)
}

func worldOfThree() *smallWorld {
	w := newSmallWorld("three", 3, "three nodes lend, release and recall")
	w.epoch(1, 1, -1, 1, 1, 1)
	w.mail = 1
	w.meet(2, a)
	return w.depths(5, 14)
}

func worldOfCrashes() *smallWorld {
	w := newSmallWorld("crashes", 2, "two nodes with disks, two crashes")
	w.epoch(1, 1, -1, 1, 1)
	w.disks = [mostNodes]bool{true, true}
	w.crashes = 2
	w.meet(2, a)
	return w.depths(5, 16)
}

func worldOfTrio() *smallWorld {
	w := newSmallWorld("trio", 3, "three nodes with disks, one crash; a and b lend to c; an edit gives b's base to a")
	w.epoch(1, 1, -1, 1, 1, 1)
	w.epoch(2, 7, 0, 2, 0, 1)
	w.edit(a)
	w.copies = true
	w.disks = [mostNodes]bool{true, true, true}
	w.crashes = 1
	w.steady(c)
	w.meet(2, c)
	return w.depths(5, 14)
}

func worldOfForgetting() *smallWorld {
	w := newSmallWorld("forgetful", 3, "three nodes without disks, one crash, an edit that gives b's base to a")
	w.epoch(1, 1, -1, 1, 1, 1)
	w.epoch(2, 7, 0, 2, 0, 1)
	w.edit(a)
	w.crashes = 1
	w.steady(c)
	w.meet(2, c)
	return w.depths(5, 14)
}

func worldOfAnEdit() *smallWorld {
	w := newSmallWorld("edit", 2, "two nodes with disks; a cut that gives b's base to a, then a raise that gives all to b; one crash")
	w.epoch(1, 1, -1, 1, 1)
	w.epoch(2, 7, 0, 1, 0)
	w.edit(b)
	w.epoch(3, 7, 1, 0, 2)
	w.edit(a)
	w.disks = [mostNodes]bool{true, true}
	w.crashes = 1
	w.activates = true
	w.meet(2, b)
	return w.depths(5, 16)
}

func worldOfRivals() *smallWorld {
	w := newSmallWorld("rivals", 3, "a and b edit at the same time: a takes all, b gives a's base to c, which is new; then a shares again")
	w.epoch(1, 1, -1, 1, 1, -1)
	w.epoch(2, 3, 0, 2, 0, -1)
	w.edit(a)
	w.epoch(2, 5, 0, 0, 1, 1)
	w.edit(b)
	w.epoch(3, 5, 1, 1, 1, -1)
	w.edit(a)
	w.trials = true
	w.steady(b)
	w.activates = true
	w.meet(2, b)
	return w.depths(6, 14)
}

func worldOfJoining() *smallWorld {
	w := newSmallWorld("joining", 3, "c takes over b's base and b leaves; one crash, disks")
	w.epoch(1, 1, -1, 1, 1, -1)
	w.epoch(2, 7, 0, 1, -1, 1)
	w.edit(a)
	w.disks = [mostNodes]bool{true, true, true}
	w.crashes = 1
	w.steady(a)
	w.meet(2, a)
	return w.depths(5, 14)
}

func worldOfForce() *smallWorld {
	w := newSmallWorld("force", 3, "c has died with loans of its own out; the operator says so at a, which gets its base; c may come back")
	w.epoch(1, 1, -1, 1, 1, 1)
	w.epoch(2, 7, 0, 2, 1, 0).Forced = map[NodeID]uint64{c: 1}
	w.edit(a)
	w.disks = [mostNodes]bool{true, true, true}
	w.steady(b)
	w.crashes = 1
	w.activates = true
	w.meet(2, b)
	w.start = append(w.start, move{kind: crash, node: c}, move{kind: operate, node: a})
	return w.depths(6, 14)
}
