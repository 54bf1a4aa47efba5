package core

import (
	"fmt"
	"testing"
	"time"

	"subak/internal/epoch"
)

// oneMembership makes a random change of who is a member, at a random node, as
// far as it is allowed there: nodes are added, removed, and forgotten if they do
// not run. It reports which.
func (w *world) oneMembership() string {
	h := w.hosts[w.rng.IntN(len(w.hosts))]
	if !h.up {
		return ""
	}
	name := fmt.Sprintf("n%d", w.rng.IntN(len(w.hosts)))
	ch := Change{Revert: true, Replace: w.rng.IntN(2) == 0}
	what := "added"
	switch listed := h.core.epoch.Position(h.core.dir.Intern(name)) >= 0; {
	case w.rng.IntN(2) == 0:
		what = "forgotten"
		ch.Forget = map[string]uint64{}
		for _, x := range w.hosts {
			if !x.up && (len(ch.Forget) == 0 || w.rng.IntN(2) == 0) {
				ch.Forget[x.name] = 0
			}
		}
		if len(ch.Forget) == 0 {
			return "" // all run: the statement would be false
		}
	case listed:
		what = "removed"
		ch.Document = h.core.Document().Without(func(n string) bool { return n == name })
	default:
		ch.Document = h.edit(with(name, 1+w.rng.Int64N(80)))
	}
	if len(ch.Forget) == 0 && w.rng.IntN(2) == 0 {
		half := 10 + w.rng.Int64N(80)
		limited(2000+w.rng.Int64N(10_000), half, 100-half)(ch.Document)
	}
	if _, err := h.core.Apply(w.now, uint64(w.now/1e6)+1, ch); err != nil {
		return ""
	}
	return what
}

func TestChangesOfMembersUnderFaultsNeverBreakTheBudget(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(6) {
		w := newWorld(t, 2000+seed, func() *epoch.Document { return testDocument(10_000, 50, 40, 30, 20) })
		w.delay, w.jitter = 5*time.Millisecond, 200*time.Millisecond
		w.start()
		for _, name := range []string{"n4", "n5"} {
			w.addNode(name)
		}
		for i := range 80 {
			if i%3 == 0 {
				w.oneFault()
			}
			if h := w.hosts[w.rng.IntN(len(w.hosts))]; !h.up && w.rng.IntN(2) == 0 {
				h.start(false)
			} else {
				h.cut = false
			}
			seen[w.oneMembership()]++
			w.run(time.Duration(w.rng.IntN(1200)) * time.Millisecond)
			seen[fmt.Sprint("in force ", w.inForce.Version > 1)]++
		}
	}
	for _, what := range []string{"added", "removed", "forgotten", "in force true"} {
		if seen[what] < 3 {
			t.Errorf("%s %d times: the test does not test", what, seen[what])
		}
	}
	t.Log(seen)
}
