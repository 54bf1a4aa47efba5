package ledger

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"
)

// explorer visits every state that a small world can reach in a given number of
// moves, breadth first, so that the first violation found is a shortest one.
type explorer struct {
	w       *smallWorld
	workers int
	// most bounds the states visited; the layer that reaches it is the last.
	most int
	// sample is of how many new states one is tried for healing; 0 is none.
	sample int
	each   func(*instant) // looks at every new state; nil is nobody

	seen  [64]seenPart
	known []memory    // by worker
	trail []footprint // by state number, of states that were expanded
	worst *violation
	tally
}

// seenPart is one part of the set of states seen, so that two workers rarely wait
// for each other.
type seenPart struct {
	sync.Mutex
	keys map[key]struct{}
}

// tally counts what was done.
type tally struct {
	depth               int
	states, transitions int64
	healed              int64
	full                int64 // states in which the whole budget is enforced
	lapsed              int64 // ticks at which a loan ran out
	activations, proofs int64
}

// footprint says how a state was reached.
type footprint struct {
	from int32 // state number, -1 for the root
	by   move
}

// waiting is a state to be expanded.
type waiting struct {
	s      instant
	number int32
}

// fresh is a new state of the next layer.
type fresh struct {
	s   instant
	how footprint
}

type violation struct {
	law  string
	from int32
	by   move
	heal bool // found in the state itself, after healing
}

// run explores to the given depth, or until a law is broken or the bound on states
// is reached. It reports whether every state within depth was visited.
func (x *explorer) run(depth int) (complete bool) {
	for i := range x.seen {
		x.seen[i].keys = map[key]struct{}{}
	}
	root := x.w.root()
	var enc encoder
	x.add(enc.key(x.w, &root))
	x.states = 1
	x.trail = append(x.trail[:0], footprint{from: -1})
	layer := []waiting{{root, 0}}
	x.known = make([]memory, x.workers)
	for x.depth = 0; x.depth < depth && len(layer) > 0; x.depth++ {
		found := x.expand(layer, x.depth+1 < depth)
		if x.worst != nil || x.states > int64(x.most) {
			x.depth++
			return false
		}
		layer = layer[:0]
		for k, list := range found {
			for i := range list {
				layer = append(layer, waiting{list[i].s, int32(len(x.trail))})
				x.trail = append(x.trail, list[i].how)
			}
			found[k] = nil
		}
	}
	return true
}

func (x *explorer) add(k key) bool {
	part := &x.seen[k[0]%64]
	part.Lock()
	defer part.Unlock()
	if _, ok := part.keys[k]; ok {
		return false
	}
	part.keys[k] = struct{}{}
	return true
}

// expand plays every move in every state of a layer and returns the new states,
// by worker.
func (x *explorer) expand(layer []waiting, keep bool) [][]fresh {
	found := make([][]fresh, x.workers)
	tallies := make([]tally, x.workers)
	worst := make([]*violation, x.workers)
	room := (int64(x.most) - x.states) / int64(x.workers)
	var all sync.WaitGroup
	for k := range x.workers {
		all.Go(func() {
			part := layer[len(layer)*k/x.workers : len(layer)*(k+1)/x.workers]
			h := hand{x: x, keep: keep, known: &x.known[k]}
			h.known.turnPage()
			for i := range part {
				if h.worst != nil || h.states > room {
					break
				}
				h.expand(&part[i])
			}
			found[k], tallies[k], worst[k] = h.found, h.tally, h.worst
		})
	}
	all.Wait()
	for k := range tallies {
		x.tally.add(tallies[k])
		if x.worst == nil {
			x.worst = worst[k]
		}
	}
	return found
}

func (t *tally) add(o tally) {
	t.states += o.states
	t.transitions += o.transitions
	t.healed += o.healed
	t.full += o.full
	t.lapsed += o.lapsed
	t.activations += o.activations
	t.proofs += o.proofs
}

// hand is one worker's part of expanding a layer.
type hand struct {
	x     *explorer
	keep  bool
	enc   encoder
	known *memory
	moves []move
	found []fresh
	worst *violation
	tally
}

func (h *hand) expand(at *waiting) {
	w := h.x.w
	h.moves = w.moves(&at.s, h.moves[:0])
	for _, m := range h.moves {
		n, possible, broken := w.play(&at.s, m, h.known)
		if !possible {
			continue
		}
		h.transitions++
		if broken == "" {
			broken = w.laws(&n)
		}
		if broken != "" {
			h.worst = &violation{law: broken, from: at.number, by: m}
			return
		}
		if !h.x.add(h.enc.key(w, &n)) {
			continue
		}
		h.states++
		h.note(&at.s, &n, m)
		if h.x.each != nil {
			h.x.each(&n)
		}
		if h.x.sample > 0 && h.states%int64(h.x.sample) == 0 {
			h.healed++
			if text := w.heals(n); text != "" {
				h.worst = &violation{law: text, from: at.number, by: m, heal: true}
				return
			}
		}
		if h.keep {
			h.found = append(h.found, fresh{n, footprint{at.number, m}})
		}
	}
}

// note counts what shows that the world does what it is for.
func (h *hand) note(s, n *instant, m move) {
	w := h.x.w
	sum := w.sum(n)
	if sum == w.limit(n) {
		h.full++
	}
	if m.kind == tick && sum < w.sum(s) {
		h.lapsed++
	}
	if n.greatest != s.greatest {
		h.activations++
	}
	for i := range w.nodes {
		if p, q := s.actors[i], n.actors[i]; p != nil && q != nil && !p.l.proved && q.l.proved {
			h.proofs++
		}
	}
}

// path is the list of moves that leads to the violation.
func (x *explorer) path() []move {
	moves := []move{x.worst.by}
	for k := x.worst.from; x.trail[k].from >= 0; k = x.trail[k].from {
		moves = append(moves, x.trail[k].by)
	}
	for i, j := 0, len(moves)-1; i < j; i, j = i+1, j-1 {
		moves[i], moves[j] = moves[j], moves[i]
	}
	return moves
}

// explore runs one world and prints one verdict line, and the story of a violation.
func explore(t *testing.T, w *smallWorld, depth int, x *explorer) {
	t.Helper()
	x.w = w
	start := time.Now()
	complete := x.run(depth)
	took := time.Since(start).Seconds()
	verdict := "no law broken"
	switch {
	case x.worst != nil:
		verdict = "BROKEN: " + x.worst.law
	case !complete:
		verdict += ", stopped at the bound on states"
	}
	t.Logf("world %-9s depth %2d: %8d states, %9d transitions, %9d deduplicated, %5.1f s, %6.0f states/s; %d healed, %d with the whole budget in use, %d lapses, %d activations, %d proofs: %s",
		w.name, x.depth, x.states, x.transitions, x.transitions-x.states+1, took, float64(x.states)/took,
		x.healed, x.full, x.lapsed, x.activations, x.proofs, verdict)
	if x.worst != nil {
		t.Errorf("%s after %d states\n%s", x.worst.law, x.states, w.story(x.path()))
	}
}

// TestExploreSmallWorlds visits every state within a few moves of every small
// world. It is the slice that runs each time; TestExploreLong goes further. Under
// the race detector it is a move shorter, and shared by two workers.
func TestExploreSmallWorlds(t *testing.T) {
	for _, w := range smallWorlds() {
		x := &explorer{workers: 1, most: 1 << 30, sample: 200}
		if underRace {
			x.workers, w.slice = 2, w.slice-2
		}
		explore(t, w, w.slice, x)
		if x.depth == w.slice && !underRace {
			x.mustHaveSeen(t)
		}
	}
}

// mustHaveSeen fails where a world did not get to do what it is for.
func (x *explorer) mustHaveSeen(t *testing.T) {
	t.Helper()
	for _, s := range []struct {
		what string
		n    int64
		need bool
	}{
		{"the whole budget in use", x.full, true},
		{"a loan that ran out", x.lapsed, true},
		{"a healed state", x.healed, true},
		{"an activation", x.activations, x.w.activates},
	} {
		if s.need && s.n == 0 {
			t.Errorf("world %s at depth %d never saw %s", x.w.name, x.depth, s.what)
		}
	}
}

// TestExploreLong is the long form. EXPLORE_WORLD names a world or all of them,
// EXPLORE_DEPTH overrides its depth, EXPLORE_STATES the bound on states (2 million
// take about 4 GB), EXPLORE_WORKERS the number of workers.
func TestExploreLong(t *testing.T) {
	name := os.Getenv("EXPLORE_WORLD")
	if name == "" {
		name = "loans" // without being asked, a token run of the same code on two workers
	}
	most := envNumber(t, "EXPLORE_STATES", 2_000_000)
	found := false
	for _, w := range smallWorlds() {
		if name != w.name && name != "all" {
			continue
		}
		found = true
		depth := envNumber(t, "EXPLORE_DEPTH", w.depth)
		if os.Getenv("EXPLORE_WORLD") == "" {
			depth = w.slice - 2
		}
		explore(t, w, depth, &explorer{workers: envNumber(t, "EXPLORE_WORKERS", 2), most: most, sample: 1000})
	}
	if !found {
		t.Errorf("EXPLORE_WORLD=%s is no small world", name)
	}
}

func envNumber(t *testing.T, name string, otherwise int) int {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		return otherwise
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		t.Fatal(fmt.Errorf("%s=%s is not a positive number", name, v))
	}
	return n
}
