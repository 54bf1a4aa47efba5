package core

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"subak/allocator"
	"subak/enforce"
	"subak/internal/epoch"
)

// envoys are data planes that enforce by themselves what they were promised, at
// one host: they outlive its process and never hear of a change. What they may
// spend is kept apart from what the limiters believe.
type envoys struct {
	h        *host
	rng      *rand.Rand
	promised map[promise][]enforce.Hold
	next     int64
	granted  int // promises that grew
	greedy   bool
}

type promise struct {
	budget string
	class  int
	life   int
}

const envoyHold = int64(2270 * time.Millisecond)

// assign renews and changes promises at random, as much as the limiters allow.
func (e *envoys) assign() {
	if !e.h.up || e.h.stalled || e.h.w.now < e.next {
		return
	}
	now := e.h.clock()
	e.next = e.h.w.now + int64(50*time.Millisecond) + e.rng.Int64N(int64(300*time.Millisecond))
	for _, b := range e.h.core.budgets {
		for k := range b.Classes() {
			p := promise{b.Name, k, e.h.life}
			// A multiple of a grain, so that profiles stay short.
			until := (now + envoyHold/(1+e.rng.Int64N(2))) / 50e6 * 50e6
			want := b.Limiter.Carvable(now, k, "test", until)
			if !e.greedy && e.rng.IntN(3) == 0 {
				want = want * allocator.Rate(e.rng.IntN(5)) / 4
			}
			had := e.promised[p]
			for len(had) > 0 && had[0].Until <= now {
				had = had[1:]
			}
			fresh := added(had, enforce.Hold{Until: until, Rate: want})
			if b.Limiter.Carve(now, k, "test", fresh) {
				if len(had) == 0 && want > 0 || len(had) > 0 && want > had[0].Rate {
					e.granted++
				}
				e.promised[p] = fresh
			}
		}
	}
}

func added(had []enforce.Hold, h enforce.Hold) (out []enforce.Hold) {
	for _, x := range had {
		if x.Rate > h.Rate && x.Until < h.Until {
			out = append(out, x)
		} else if x.Rate > h.Rate {
			return had
		}
	}
	if h.Rate == 0 {
		return out
	}
	return append(out, h)
}

// spending is the most that the promises let through of a budget.
func (e *envoys) spending(budget string) (sum allocator.Rate) {
	now := e.h.clock()
	for p, holds := range e.promised {
		if p.budget != budget {
			continue
		}
		for _, h := range holds {
			if now < h.Until {
				sum += h.Rate
				break
			}
		}
	}
	return sum
}

// population puts Envoys at every host and checks, after every event, that they
// and the nodes' own buckets keep every budget.
type population struct {
	w    *world
	all  []*envoys
	peak float64 // of what Envoys spend, in the first budget's limit
}

func populate(w *world, seed uint64) *population {
	p := &population{w: w}
	for i, h := range w.hosts {
		p.all = append(p.all, &envoys{h: h, rng: rand.New(rand.NewPCG(seed, uint64(i))), promised: map[promise][]enforce.Hold{}})
	}
	w.lenient = true // checked here, Envoys included
	w.alter = func(c *Config) { c.CarvedBefore = time.Duration(envoyHold) }
	w.during = func() {
		for _, e := range p.all {
			e.assign()
		}
		p.check()
	}
	return p
}

func (p *population) check() {
	p.w.t.Helper()
	for _, name := range []string{"origin", "second"} {
		var own, theirs allocator.Rate
		for i, h := range p.w.hosts {
			theirs += p.all[i].spending(name)
			if !h.up {
				continue
			}
			if b := h.core.budgetNamed(name); b != nil {
				own += b.Limiter.Share(h.clock(), make([]allocator.Rate, 2))
			}
		}
		if limit := p.w.limits[name]; own+theirs > limit {
			for i, h := range p.w.hosts {
				s := h.core.led.Steps(h.clock(), 0, nil)
				p.w.t.Logf("%s up %v own %d carved %d promised %d steps %v epoch %v active %v", h.name, h.up, h.share(),
					h.core.budgets[0].Limiter.Carved(h.clock(), nil), p.all[i].spending(name), s, h.core.epoch.ID, h.core.Active())
			}
			p.w.t.Fatalf("at %v: nodes %d and Envoys %d of %s exceed %d", time.Duration(p.w.now), own, theirs, name, limit)
		}
		if name == "origin" {
			p.peak = max(p.peak, float64(theirs)/float64(p.w.limit))
		}
	}
}

func (p *population) shorts() (n int64) {
	for _, h := range p.w.hosts {
		if h.up {
			for _, b := range h.core.budgets {
				n += b.Limiter.CarveShort()
			}
		}
	}
	return n
}

func twoBudgets() *epoch.Document {
	d := testDocument(10_000, 55, 40, 45, 80)
	b := testDocument(3000, 55, 40, 45, 80).Budgets[0]
	b.Name = "second"
	d.Budgets = append(d.Budgets, b)
	return d
}

func (w *world) flip() {
	for _, h := range w.hosts {
		for k := range h.load {
			if w.rng.IntN(2) == 0 {
				h.load[k] = w.rng.Float64() * 9000 * float64(w.rng.IntN(2))
			}
		}
	}
}

func TestEnvoysAndNodesTogetherKeepTheBudgetWhileDemandMoves(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newWorld(t, 400+seed, twoBudgets)
			p := populate(w, seed)
			w.delay, w.jitter, w.loss = 40*time.Millisecond, 30*time.Millisecond, 0.05*float64(seed%2)
			w.start()
			for range 9 {
				w.flip()
				w.run(1500 * time.Millisecond)
			}
			if p.shorts() > 0 {
				t.Errorf("%d schedules below what was carved", p.shorts())
			}
			t.Logf("Envoys held up to %.3f of the budget", p.peak)
			if p.peak < 0.7 {
				t.Errorf("Envoys never held more than %.3f of the budget: the test does not bite", p.peak)
			}
		})
	}
}

func TestEnvoysAndNodesTogetherKeepTheBudgetUnderFaults(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newWorld(t, 420+seed, twoBudgets)
			p := populate(w, 10+seed)
			w.delay, w.jitter, w.loss = 20*time.Millisecond, 60*time.Millisecond, 0.1*float64(seed%3)/2
			w.start()
			for range 10 {
				w.flip()
				h := w.hosts[w.rng.IntN(len(w.hosts))]
				switch w.rng.IntN(6) {
				case 0:
					h.cut = !h.cut
				case 1:
					if h.up {
						h.kill()
						w.run(time.Duration(w.rng.IntN(1500)) * time.Millisecond)
						h.start(false)
					}
				case 2:
					if h.up {
						h.core.Freeze(h.clock(), h.wallMillis(), !h.core.Frozen())
					}
				case 3:
					h.stalled = true
					w.run(time.Duration(w.rng.IntN(4000)) * time.Millisecond)
					h.stalled = false
				}
				w.run(1500 * time.Millisecond)
			}
			if p.shorts() > 0 {
				t.Errorf("%d schedules below what was carved", p.shorts())
			}
			t.Logf("Envoys held up to %.3f of the budget", p.peak)
		})
	}
}

// Nothing else happens to such a node that would put its shares in force anew.
func TestAQuietNodeUsesItsBaseWhenTheEnvoysOfItsFormerLifeAreDone(t *testing.T) {
	w := newWorld(t, 430, func() *epoch.Document { return testDocument(10_000, 1) })
	w.alter = func(c *Config) { c.CarvedBefore = time.Duration(envoyHold) }
	w.start()
	for _, h := range w.hosts {
		clear(h.load)
	}
	w.run(time.Duration(envoyHold) + 5*time.Second)
	for _, h := range w.hosts {
		if h.share() < h.base() {
			t.Errorf("%s enforces %d of its base %d", h.name, h.share(), h.base())
		}
	}
}

func TestALoanThatEnvoysSpendIsGivenBackWhenTheyAreDone(t *testing.T) {
	w := newWorld(t, 440, twoBudgets)
	p := populate(w, 1)
	for _, e := range p.all {
		e.greedy = true
	}
	w.delay = 40 * time.Millisecond
	w.start()
	busy, lender := w.hosts[0], w.hosts[3]
	busy.load[0] = 20_000
	w.run(6 * time.Second)
	if got := p.all[0].spending("origin"); got < 9000*allocator.Unit {
		t.Fatalf("Envoys of the busy node hold %d, hardly more than its base", got)
	}
	lender.load[0] = 20_000
	took := w.until(4*time.Second, "the lender has its base back", func() bool {
		return lender.share()+p.all[3].spending("origin") >= lender.base()*99/100
	})
	t.Logf("recalled in %v", took)
	if p.shorts() > 0 {
		t.Errorf("%d schedules below what was carved", p.shorts())
	}
}

func TestTheKillSwitchWaitsForEnvoysAndNoLonger(t *testing.T) {
	w := newWorld(t, 441, twoBudgets)
	p := populate(w, 1)
	for _, e := range p.all {
		e.greedy = true
	}
	w.start()
	busy := w.hosts[0]
	busy.load[0] = 20_000
	w.run(6 * time.Second)
	busy.core.Freeze(busy.clock(), busy.wallMillis(), true)
	took := w.until(time.Duration(envoyHold)+time.Second, "the node is back to its base", func() bool {
		return busy.share()+p.all[0].spending("origin") <= busy.base() && busy.core.led.Frozen()
	})
	t.Logf("frozen after %v", took)
	w.run(2 * time.Second)
	if got := busy.share() + p.all[0].spending("origin"); got < busy.base()*99/100 {
		t.Errorf("the frozen node and its Envoys have %d, want the base %d", got, busy.base())
	}
	if p.shorts() > 0 {
		t.Errorf("%d schedules below what was carved", p.shorts())
	}
}

func TestEnvoysAndNodesTogetherKeepTheBudgetOverChangesOfIt(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newWorld(t, 450+seed, twoBudgets)
			p := populate(w, 20+seed)
			w.delay, w.jitter = 20*time.Millisecond, 60*time.Millisecond
			w.start()
			for i := range 6 {
				w.flip()
				w.run(1500 * time.Millisecond)
				h := w.hosts[w.rng.IntN(len(w.hosts))]
				change := limited(4000+w.rng.Int64N(8000), 1+w.rng.Int64N(9), 1+w.rng.Int64N(9))
				if i%3 == 2 {
					change = func(d *epoch.Document) {
						if len(d.Budgets) == 2 {
							d.Budgets = d.Budgets[:1]
						} else {
							d.Budgets = append(d.Budgets, twoBudgets().Budgets[1])
						}
						limited(4000+w.rng.Int64N(8000), 6, 4)(d)
					}
				}
				plan := h.apply(Change{Document: h.edit(change)})
				took := w.until(6*time.Second, "the change is in force", w.everywhere(plan.Epoch))
				t.Logf("in force in %v", took)
			}
			if p.shorts() > 0 {
				t.Errorf("%d schedules below what was carved", p.shorts())
			}
			t.Logf("Envoys held up to %.3f of the budget", p.peak)
		})
	}
}
