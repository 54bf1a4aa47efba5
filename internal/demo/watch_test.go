package demo

import (
	"context"
	"errors"
	"testing"
	"time"

	"subak/internal/api"
)

// answer is a status with the figures a watcher reads.
func answer(uptime, share float64, admitted uint64) *api.Status {
	return &api.Status{Ready: true, Uptime: uptime, Budgets: []api.Budget{
		{Name: "other", Share: 1e9},
		{Name: budgetName, Base: 100, Ceiling: 100, Share: share, Classes: []api.Class{{Admitted: admitted}, {Admitted: 1}}},
	}}
}

func testWatcher(nodes int) *watcher {
	p := script(1000, 1)
	w := newWatcher(&p, make([]asker, nodes), nil, time.Now())
	w.enter(0)
	return w
}

func TestSumsAreTakenOverCompletePollsOnly(t *testing.T) {
	w := testWatcher(2)
	w.take(0, 1, []*api.Status{answer(1, 600, 0), answer(1, 300, 0)})
	w.take(2, 3, []*api.Status{answer(2, 1100, 0), nil}) // one is missing: says nothing
	w.killedNode(1)
	w.take(4, 5, []*api.Status{answer(3, 950, 0), nil}) // known to be dead
	phases, _, _ := w.summary()
	if ph := phases[0]; ph.polls != 3 || ph.complete != 2 || ph.sharesPeak != 950 || ph.sharesSteady != 0 {
		t.Errorf("phase %+v, want 3 polls, 2 complete, peak 950", ph)
	}
	w.startedNode(1)
	w.take(6, 7, []*api.Status{answer(4, 950, 0), answer(0.1, 60, 0)})
	if phases, _, _ = w.summary(); phases[0].sharesPeak != 1010 || phases[0].sharesSteady != 900 {
		t.Errorf("phase %+v, want a single peak of 1010 and a steady 900", phases[0])
	}
}

func TestCountersGoOnOverARestart(t *testing.T) {
	w := testWatcher(1)
	w.take(0, 1, []*api.Status{answer(10, 0, 500)})
	w.killedNode(0)
	w.take(2, 3, []*api.Status{nil})
	w.take(2, 3, []*api.Status{answer(10.1, 0, 510)}) // on its way when the node was killed
	w.startedNode(0)
	w.take(4, 5, []*api.Status{answer(0.2, 0, 800)}) // more than before, yet a new life
	w.take(6, 7, []*api.Status{answer(0.4, 0, 10)})  // and another
	if got, want := w.polls[4].admitted, uint64(501+801+11); got != want {
		t.Errorf("admitted %d, want %d", got, want)
	}
	if w.backAt != 5 || w.baseAt != 5 {
		t.Errorf("back at %d, base at %d, want both at 5", w.backAt, w.baseAt)
	}
}

func TestTheFullestWindowBetweenPollsIsFound(t *testing.T) {
	w := testWatcher(1)
	// 1000/s, 500 ms, 10 slots: 1,510 fit between the begin of one poll and the
	// end of another 1 s later.
	at := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	for _, p := range []struct {
		begin, end float64
		admitted   uint64
	}{{0, 0.01, 0}, {1, 1.01, 500}, {1.5, 1.51, 1720}, {3, 3.01, 1800}} {
		s := answer(p.end+1, 0, p.admitted)
		s.Time = w.start.Add(at(p.begin)) // a snapshot as old as the question
		w.take(at(p.begin), at(p.end), []*api.Status{s})
	}
	phases, _, _ := w.summary()
	n := phases[0].nearest
	// From the begin at 1 to the end at 1.51: 1,220 where 0.51 s allow 1,020.
	if n.admitted != 1220 || n.between != 510*time.Millisecond || n.bound != 1020 {
		t.Errorf("fullest %+v, want 1220 of 1020 in 510ms", n)
	}
}

func TestASnapshotIsOfTheInstantItNamesUnlessThatCannotBe(t *testing.T) {
	w := testWatcher(1)
	for _, c := range []struct{ says, want time.Duration }{
		{2900 * time.Millisecond, 2900 * time.Millisecond}, // kept for a while
		{3050 * time.Millisecond, 3050 * time.Millisecond}, // fresh; the poll began before
		{time.Hour, 1800 * time.Millisecond},               // the wall clock was set
		{-time.Hour, 1800 * time.Millisecond},
	} {
		s := &api.Status{Time: w.start.Add(c.says)}
		if got := w.taken(s, 3*time.Second, 3100*time.Millisecond); got != c.want {
			t.Errorf("snapshot of %v: taken at %v, want %v", c.says, got, c.want)
		}
	}
}

type fakeNode struct {
	status api.Status
	err    error
}

func (f fakeNode) Status(context.Context) (api.Status, error) { return f.status, f.err }

func TestANodeThatDoesNotAnswerIsNotUp(t *testing.T) {
	p := script(1000, 1)
	w := newWatcher(&p, []asker{fakeNode{status: *answer(1, 10, 5)}, fakeNode{err: errors.New("gone")}}, nil, time.Now())
	w.once(t.Context())
	s := w.scene(1, time.Second)
	if s.nodes[0].state != "" || s.nodes[1].state != "no answer" || s.shares != 10 || w.polls[0].complete {
		t.Errorf("scene %+v", s)
	}
}
