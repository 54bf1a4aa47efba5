package demo

import (
	"context"
	"slices"
	"sync"
	"time"

	"subak/internal/api"
	"subak/testbed/origin"
)

// asker is the part of [api.Client] that a watcher needs.
type asker interface {
	Status(ctx context.Context) (api.Status, error)
}

// watcher asks all nodes for their status, and the origin for its report, again
// and again, and keeps what the verdict and the live view need.
type watcher struct {
	plan   *plan
	askers []asker
	origin *origin.Client
	start  time.Time

	mu      sync.Mutex // guards all below
	phase   int        // -1 before the first
	nodes   []nodeWatch
	polls   []poll
	witness origin.Report // newest
	backAt  time.Duration // when the restarted node was ready; 0 not yet
	baseAt  time.Duration // when it had its own base again; 0 not yet
}

// nodeWatch is what is known of one node.
type nodeWatch struct {
	up       bool // answered the last poll
	down     bool // was killed and has not answered since
	killed   bool
	starting bool // was started again and has not answered since
	status   api.Status
	earlier  uint64 // admitted in former lives, as far as seen
	admitted uint64 // in this life
	recent   []point
}

type point struct {
	at    time.Duration
	total uint64
}

// poll is one round of questions. Complete means that every node answered or is
// known to be dead, so that the sums are over all that enforce anything.
type poll struct {
	begin, end time.Duration // what the nodes said is of some instant in between
	phase      int
	complete   bool
	shares     float64 // sum of enforced shares, requests/s
	admitted   uint64  // by the nodes' counters, since they started
}

const (
	pollEvery   = 200 * time.Millisecond
	pollTimeout = time.Second
	pollsMax    = 36_000 // two hours
	// A node answers with a snapshot that is at most this old.
	snapshotAge = 1200 * time.Millisecond
	budgetName  = "origin"
)

func newWatcher(p *plan, askers []asker, o *origin.Client, start time.Time) *watcher {
	return &watcher{plan: p, askers: askers, origin: o, start: start, phase: -1, nodes: make([]nodeWatch, len(askers))}
}

// run polls until ctx ends.
func (w *watcher) run(ctx context.Context) {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		w.once(ctx)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// once asks everybody at the same time and takes the answers in.
func (w *watcher) once(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	begin := time.Since(w.start)
	answers := make([]*api.Status, len(w.askers))
	var wg sync.WaitGroup
	for i, a := range w.askers {
		wg.Go(func() {
			if s, err := a.Status(ctx); err == nil {
				answers[i] = &s
			}
		})
	}
	if w.origin != nil {
		wg.Go(func() {
			if r, err := w.origin.Report(ctx); err == nil {
				w.mu.Lock()
				w.witness = r
				w.mu.Unlock()
			}
		})
	}
	wg.Wait()
	w.take(begin, time.Since(w.start), answers)
}

// take enters one round of answers; nil is no answer.
func (w *watcher) take(begin, end time.Duration, answers []*api.Status) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := poll{begin: begin, end: end, phase: w.phase, complete: true}
	for i, s := range answers {
		n := &w.nodes[i]
		if n.down && !n.starting {
			s = nil // it answered just before it was killed
		}
		n.up = s != nil
		if s != nil {
			taken := w.taken(s, begin, end)
			w.answeredLocked(n, s, taken, end)
			p.begin = min(p.begin, taken)
			p.shares += budgetOf(s).Share
		} else if !n.down {
			p.complete = false
		}
		p.admitted += n.earlier + n.admitted
	}
	if len(w.polls) < pollsMax {
		w.polls = append(w.polls, p)
	}
}

// taken is when the snapshot s, received between begin and end, was taken: by
// the wall clock, which all processes here share, unless that cannot be.
func (w *watcher) taken(s *api.Status, begin, end time.Duration) time.Duration {
	at := s.Time.Sub(w.start)
	if at < begin-snapshotAge || at > end {
		return begin - snapshotAge
	}
	return at
}

// answeredLocked takes in a snapshot of the instant taken, received at the
// instant at.
func (w *watcher) answeredLocked(n *nodeWatch, s *api.Status, taken, at time.Duration) {
	b := budgetOf(s)
	var admitted uint64
	for _, c := range b.Classes {
		admitted += c.Admitted
	}
	if s.Uptime < n.status.Uptime || admitted < n.admitted { // a new life
		n.earlier += n.admitted
	}
	n.admitted, n.status, n.down, n.starting = admitted, *s, false, false
	if k := len(n.recent); k == 0 || n.recent[k-1].at < taken { // not the same again
		n.recent = append(n.recent, point{taken, n.earlier + n.admitted})
		n.recent = n.recent[max(0, len(n.recent)-5):]
	}
	if n.killed && s.Ready && w.backAt == 0 {
		w.backAt = at
	}
	if n.killed && w.baseAt == 0 && b.Base > 0 && b.Ceiling >= 0.99*b.Base {
		w.baseAt = at
	}
}

// enter begins a phase.
func (w *watcher) enter(phase int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.phase = phase
}

// killedNode says that node i is dead on purpose.
func (w *watcher) killedNode(i int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.nodes[i].down, w.nodes[i].killed, w.nodes[i].up = true, true, false
}

// startedNode says that node i was started again.
func (w *watcher) startedNode(i int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.nodes[i].starting = true
}

func budgetOf(s *api.Status) api.Budget {
	if i := slices.IndexFunc(s.Budgets, func(b api.Budget) bool { return b.Name == budgetName }); i >= 0 {
		return s.Budgets[i]
	}
	return api.Budget{}
}

// rate is what the node admitted over the last second or so, in requests/s.
func (n *nodeWatch) rate() float64 {
	if len(n.recent) < 2 {
		return 0
	}
	a, b := n.recent[0], n.recent[len(n.recent)-1]
	return float64(b.total-a.total) / (b.at - a.at).Seconds()
}

// watched is what the polls say about one phase.
type watched struct {
	polls, complete int
	// The largest sum of enforced shares in a single poll, and the largest that
	// steadyPolls in a row all reached, in requests/s.
	sharesPeak, sharesSteady float64
	// The pair of polls, the later one in this phase, between which the nodes'
	// counters came nearest to the bound.
	nearest fill
}

// fill is how much of a bound was used.
type fill struct {
	between         time.Duration
	admitted, bound int
}

func (f fill) fraction() float64 {
	if f.bound == 0 {
		return 0
	}
	return float64(f.admitted) / float64(f.bound)
}

// steadyPolls is how many polls in a row must show a sum of shares for it to
// count as steady. The nodes' snapshots are of different instants, up to a
// quarter of a second apart, so while capacity moves a single sum may hold the
// same capacity twice, or not at all.
const steadyPolls = 3

// summary evaluates the polls, by phase.
//
// The nodes' snapshots are of instants between the begin and the end of a poll,
// so what is counted between two polls was admitted within begin of the first to
// end of the second, and the bound of that window applies exactly. The last
// moments of a node that is killed are lost to its counters.
func (w *watcher) summary() (phases []watched, backAt, baseAt time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	phases = make([]watched, len(w.plan.phases))
	var complete []poll
	for _, p := range w.polls {
		if p.phase < 0 {
			continue
		}
		ph := &phases[p.phase]
		ph.polls++
		if !p.complete {
			continue
		}
		complete = append(complete, p)
		ph.complete++
		ph.sharesPeak = max(ph.sharesPeak, p.shares)
		if n := len(complete); n >= steadyPolls {
			least := p.shares
			for _, q := range complete[n-steadyPolls:] {
				least = min(least, q.shares)
			}
			ph.sharesSteady = max(ph.sharesSteady, least)
		}
	}
	for j, b := range complete {
		ph := &phases[b.phase]
		for _, a := range complete[:j] {
			length := b.end - a.begin
			f := fill{length, int(b.admitted - a.admitted), w.plan.bound(length, 0)}
			if f.fraction() > ph.nearest.fraction() {
				ph.nearest = f
			}
		}
	}
	return phases, w.backAt, w.baseAt
}
