package schedule

import (
	"math/bits"

	"subak/chaos"
)

// habits are a profile's choices for one seed.
type habits struct {
	table   [1024]Habit // what ten random bits make the adversary do
	old     int
	links   []int
	passMax int64
	idle    int
	roster  int
	budget  int
	force   int
	twin    int
	rush    int
	back    int
	regress int
	unsent  int
	heal    bool
	opening func(*world)
	heavy   int
}

func chooseHabits(rng *chaos.Rand, p *Profile, mode chaos.Mode) habits {
	h := habits{
		old: pick(rng, p.Old), links: p.Links, passMax: int64(pick(rng, p.PassMax)) * 1e6, idle: pick(rng, p.Idle),
		roster: pick(rng, p.Roster), budget: pick(rng, p.Budget), force: pick(rng, p.Force), twin: pick(rng, p.Twin),
		rush: pick(rng, p.Rush), back: pick(rng, p.Back), regress: pick(rng, p.Regress), unsent: pick(rng, p.Unsent),
		heal: rng.Chance(pick(rng, p.Heal)), heavy: pick(rng, p.Heavy), opening: p.Opening,
	}
	weights := p.Weights
	switch {
	case weights[replaces] > 0: // no lender may restart beside a ghost
	case mode == chaos.ForcedRemoval:
		h.force = max(h.force, 70)
		weights[crashes] = max(weights[crashes], 10)
		weights[edits] = max(weights[edits], 12)
	case mode == chaos.FastQuarantine:
		weights[bounces] = max(weights[bounces], 8)
		h.regress = 0
	}
	total := 0
	for _, x := range weights {
		total += x
	}
	sum, at := 0, 0
	for k, x := range weights {
		sum += x
		for end := sum * len(h.table) / total; at < end; at++ {
			h.table[at] = Habit(k)
		}
	}
	return h
}

// run lets the adversary take its steps, or stops at the first objection.
func (w *world) run() {
	if w.habit.opening != nil {
		w.habit.opening(w)
	}
	for w.step < int64(w.steps) && w.failed == nil {
		w.step++
		w.turn(w.habit.table[w.rng.Uint64()>>54])
	}
	if w.habit.heal && w.failed == nil {
		w.do(Action{Kind: Heal})
	}
}

// turn is one step.
func (w *world) turn(h Habit) {
	p := w.anyone()
	if p == nil {
		w.revive()
		return
	}
	n := uint8(p.name)
	switch h {
	case publishes:
		w.publishes(n)
	case rounds:
		w.round(w.names())
	case delivers:
		w.deliverSomething()
	case waits:
		w.do(Action{Kind: Pass, Arg: w.rng.Int64N(w.habit.passMax)})
	case waitsLong:
		w.do(Action{Kind: Pass, Arg: w.rng.Int64N(3_000_000_000)})
	case wakes:
		w.do(Action{Kind: Wake, Node: n, Arg: chaos.Pick[int64](&w.rng, 100, 100, 500, 2500) * 1_000_000})
	case demands:
		w.demand(n)
	case rewires:
		w.rewire(pick(&w.rng, w.habit.links))
	case skews:
		rho := chaos.Rho(w.eps)
		w.do(Action{Kind: Skew, Node: n, Arg: chaos.Pick(&w.rng, 0, rho, -rho)})
	case pauses:
		w.pauseOrResume(p)
	case freezes:
		w.do(Action{Kind: chaos.Pick(&w.rng, Freeze, Thaw), Node: n})
	case fills:
		w.do(Action{Kind: chaos.Pick(&w.rng, Fill, Empty, Empty), Node: uint8(w.rng.IntN(w.nodes))})
	case crashes:
		w.crashOrRevive(n)
	case bounces:
		w.bounce(n)
	case edits:
		w.operators(n)
	case echoes:
		w.echo(n)
	case replays:
		w.replay()
	case amnesias:
		w.do(Action{Kind: Crash, Node: n})
		w.do(Action{Kind: Amnesia, Node: n, Arg: int64(w.rng.Uint64() &^ 1)})
	case loses:
		w.do(Action{Kind: Crash, Node: n})
		if !w.spoilsDisk(n) {
			w.do(Action{Kind: Lose, Node: n})
		}
		w.startAgain(n)
	case scenes:
		w.scene()
	case races:
		w.race()
	case widows:
		w.widow(n)
	case namesakes:
		w.namesake(n)
	case leavers:
		w.leaver(n)
	case hastes:
		w.haste(n)
	case lapses:
		w.lapse(n)
	case oblivions:
		w.oblivion(n)
	case comebacks:
		w.comeback(n)
	case shuffles:
		w.shuffle()
	case replaces:
		w.replaces()
	}
}

// anyone picks a running process, nil if there is none.
func (w *world) anyone() *process {
	at := w.rng.IntN(w.nodes)
	for range w.nodes {
		if p := w.procs[at]; p != nil {
			return p
		}
		if at++; at == w.nodes {
			at = 0
		}
	}
	return nil
}

func (w *world) publishes(n uint8) int32 {
	a := Action{Kind: Publish, Node: n}
	x := w.rng.IntN(3000)
	if x < 1000 {
		a.Arg = LowerFirst
	}
	if x%1000 < w.habit.unsent {
		a.Arg |= int64(chaos.Pick(&w.rng, DieUnwritten, DieUnsent))
	}
	w.do(a)
	return w.nextID
}

// names are all names, or some of them where there are many.
func (w *world) names() uint64 {
	all := uint64(1)<<w.nodes - 1
	if w.nodes <= 8 {
		return all
	}
	some := uint64(0)
	for range 6 {
		some |= 1 << w.rng.IntN(w.nodes)
	}
	return some
}

// round lets the given names publish, and those that hear them hear them.
func (w *world) round(who uint64) {
	var sent [maxNodes]int32
	for m := who; m != 0; m &= m - 1 {
		i := bits.TrailingZeros64(m)
		if p := w.procs[i]; p != nil && !p.paused {
			w.do(Action{Kind: Publish, Node: uint8(i)})
			sent[i] = w.nextID
		}
	}
	w.do(Action{Kind: Pass, Arg: w.rng.Int64N(w.habit.passMax/3 + 1)})
	for m := who; m != 0; m &= m - 1 {
		i := bits.TrailingZeros64(m)
		if sent[i] == 0 {
			continue
		}
		for to := w.up[i] &^ (1 << i); to != 0; to &= to - 1 {
			w.deliverTo(sent[i], OwnBody, uint8(bits.TrailingZeros64(to)))
		}
	}
}

func (w *world) deliverTo(letter int32, body int64, to uint8) {
	if w.procs[to] == nil {
		return
	}
	a := Action{Kind: Deliver, Node: to, Ref: letter, Arg: body}
	x := w.rng.Uint64()
	if x&3 != 0 {
		a.Then |= thenControl
	}
	if x>>2&3 != 0 {
		a.Then |= thenInstall
	}
	if x>>4&15 == 0 {
		a.Then |= learnOnly
	}
	if x>>8&15 == 0 {
		a.Then |= copyForOne
	}
	w.do(a)
}

// deliverSomething lets a row arrive: of late, along links that are up, or any.
func (w *world) deliverSomething() {
	if len(w.pool) == 0 {
		return
	}
	to := w.rng.IntN(w.nodes)
	var m *letter
	if w.rng.Chance(w.habit.old) {
		m = &w.pool[w.rng.IntN(len(w.pool))]
	} else {
		m = &w.pool[max(0, len(w.pool)-1-w.rng.IntN(2*w.nodes))]
		if w.up[m.row.Node]>>to&1 == 0 {
			return
		}
	}
	w.deliverTo(m.id, w.body(), uint8(to))
}

// body is with which epoch's body a row comes: mostly its own, sometimes none,
// or that of a relay at another epoch.
func (w *world) body() int64 {
	switch w.rng.IntN(12) {
	case 0, 1, 2:
		if q := w.anyone(); q != nil {
			return int64(w.idOf(q.l.Epoch()))
		}
	case 3, 4:
		return NoBody
	}
	return OwnBody
}

// demand changes one demand, or all of a budget so that n wants everything and
// the others nothing: then they lend.
func (w *world) demand(n uint8) {
	u := w.rng.IntN(w.budgets)
	limit := int64(w.limits[u])
	if w.rng.IntN(3) == 0 {
		for i := range w.nodes {
			d := int64(0)
			if i == int(n) {
				d = limit
			}
			if p := w.procs[i]; p != nil && int64(p.demand[u]) != d {
				w.do(Action{Kind: Demand, Node: uint8(i), Ref: int32(u), Arg: d})
			}
		}
		return
	}
	d := int64(0)
	if !w.rng.Chance(w.habit.idle) {
		d = chaos.Pick(&w.rng, limit, limit/3, w.rng.Int64N(limit+1), 2*limit)
	}
	w.do(Action{Kind: Demand, Node: n, Ref: int32(u), Arg: d})
}

// rewire chooses which links are up. It is a habit of the adversary and no event.
func (w *world) rewire(percent int) {
	for i := range w.nodes {
		w.up[i] = 1 << i
		for j := range w.nodes {
			if w.rng.Chance(percent) {
				w.up[i] |= 1 << j
			}
		}
	}
}

// cut splits the names in two sides; sometimes one of them still hears the other.
func (w *world) cut() (side uint64) {
	side = w.rng.Uint64() & (1<<w.nodes - 1)
	oneWay := w.rng.IntN(4) == 0
	for i := range w.nodes {
		in := side>>i&1 == 1
		switch {
		case in:
			w.up[i] = side
		case oneWay:
			w.up[i] = 1<<w.nodes - 1
		default:
			w.up[i] = ^side & (1<<w.nodes - 1)
		}
	}
	return side
}

func (w *world) pauseOrResume(p *process) {
	n := uint8(p.name)
	switch {
	case p.paused && w.rng.IntN(2) == 0:
		w.do(Action{Kind: Watchdog, Node: n})
	case p.paused:
		w.do(Action{Kind: Resume, Node: n})
	case w.rng.IntN(2) == 0:
		w.do(Action{Kind: Pause, Node: n})
	}
}
