package schedule

import (
	"math"

	"subak/allocator"
	"subak/allocator/ledger"
	"subak/chaos"
)

const (
	maxNodes   = 64
	maxBudgets = 5
	maxClasses = 3
)

// process is one running life of a name: its ledger and its shell.
type process struct {
	l     *ledger.Ledger
	name  ledger.NodeID
	clock chaos.Clock
	// paused: control stands still; the data plane goes on.
	paused  bool
	digest  uint32 // of the last cycle while healing
	written uint64 // version of the state on disk

	demand [maxBudgets]allocator.Rate
	planes [maxBudgets]plane
	claims [maxBudgets]allocator.Rate
	next   int64 // own clock: when the first of the planes steps down

	// Epochs that the ledger refused for its adopted one, under which it would
	// refuse them again: asking costs more than anything else about a delivery.
	refusedBy *ledger.Epoch
	refused   [4]*ledger.Epoch
	refusals  uint8

	// Places of the world's budgets in the ledger under epoch seen, -1 if absent.
	seen   *ledger.Epoch
	places [maxBudgets]int8
}

// plane is the data plane of one budget. What it enforces hangs on the
// process's clock alone.
type plane struct {
	steps []ledger.Step
	at    int // index of the step in force
	rate  allocator.Rate
	// What a watchdog may enforce, and from when (own clock).
	static     allocator.Rate
	staticFrom int64
}

// place returns the ledger's index of the world's budget u, -1 if the adopted
// epoch lacks it.
func (p *process) place(u int) int {
	if e := p.l.Epoch(); e != p.seen {
		p.seen = e
		for i := range p.places {
			p.places[i] = -1
		}
		for b := range e.Budgets {
			p.places[budgetOf(e, b)] = int8(b)
		}
	}
	return int(p.places[u])
}

// refuses reports that e was refused under the present epoch.
func (p *process) refuses(e *ledger.Epoch) bool {
	return p.refusedBy == p.l.Epoch() && (p.refused[0] == e || p.refused[1] == e || p.refused[2] == e || p.refused[3] == e)
}

func (p *process) noteRefusal(e *ledger.Epoch) {
	if cur := p.l.Epoch(); p.refusedBy != cur {
		p.refusedBy, p.refused, p.refusals = cur, [4]*ledger.Epoch{}, 0
	}
	p.refused[p.refusals%4] = e
	p.refusals++
}

// budgetOf returns which of the world's budgets is the b-th of e. Their names
// are b0 to b4.
func budgetOf(e *ledger.Epoch, b int) int { return int(e.Budgets[b].Name[1] - '0') }

// follow takes over the ledger's schedules and claims. It returns by how much
// the sums change.
func (w *world) follow(p *process) {
	now := p.clock.At(w.t)
	for u := range w.budgets {
		pl := &p.planes[u]
		var rate, claim allocator.Rate
		pl.at, pl.steps = 0, pl.steps[:0]
		pl.static, pl.staticFrom = 0, 0
		if b := p.place(u); b >= 0 {
			pl.steps = p.l.Steps(now, b, pl.steps)
			pl.static, pl.staticFrom = p.l.Fallback(b)
			rate = pl.steps[0].Rate
			claim = p.l.Claim(now, b)
		}
		w.sum[u] += rate - pl.rate
		w.claims[u] += claim - p.claims[u]
		pl.rate, p.claims[u] = rate, claim
	}
	p.schedule(w.budgets)
}

// schedule notes when the planes step down next.
func (p *process) schedule(budgets int) {
	p.next = math.MaxInt64
	for u := range budgets {
		if pl := &p.planes[u]; pl.at < len(pl.steps) {
			p.next = min(p.next, pl.steps[pl.at].Until)
		}
	}
}

// advance lets the planes step down by the process's clock.
func (w *world) advance(p *process) {
	now := p.clock.At(w.t)
	if now < p.next {
		return
	}
	for u := range w.budgets {
		pl := &p.planes[u]
		for pl.at < len(pl.steps) && now >= pl.steps[pl.at].Until {
			pl.at++
			rate := pl.steps[pl.at].Rate
			w.sum[u] += rate - pl.rate
			pl.rate = rate
			w.seen[sawLapsed]++
		}
	}
	p.schedule(w.budgets)
}

// takeOver is the watchdog: it enforces the static shares that are safe by now.
func (w *world) takeOver(p *process) {
	now := p.clock.At(w.t)
	for u := range w.budgets {
		pl := &p.planes[u]
		if len(pl.steps) == 0 || now < pl.staticFrom {
			continue
		}
		w.sum[u] += pl.static - pl.rate
		if pl.static > pl.rate {
			w.seen[sawFallback]++
		}
		pl.rate = pl.static
		pl.at, pl.steps = 0, append(pl.steps[:0], ledger.Step{Until: math.MaxInt64, Rate: pl.static})
	}
	p.schedule(w.budgets)
}

// stop ends what the process enforces.
func (w *world) stop(p *process) {
	for u := range w.budgets {
		w.sum[u] -= p.planes[u].rate
		w.claims[u] -= p.claims[u]
		p.planes[u].rate, p.claims[u] = 0, 0
		p.planes[u].steps = p.planes[u].steps[:0]
	}
}
