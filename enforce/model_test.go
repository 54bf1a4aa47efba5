package enforce_test

import (
	"math"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"subak/allocator"
	"subak/enforce"
)

// model is the slow second implementation: tokens as exact rationals, time
// walked step by step. It does not decide; it judges decisions, and follows them,
// so that a borderline case does not make the two drift apart.
type model struct {
	burst     time.Duration
	revocable bool
	steps     []enforce.Step
	now       int64
	tokens    []*big.Rat // [0] the budget, [1+k] class k; in units
	// loss is how many units less than the model the limiter may hold because
	// it rounds down: under 2^-36 micro-units per ns, and one per decision.
	loss *big.Rat
}

func newModel(classes int, burst time.Duration, now int64) *model {
	m := &model{burst: burst, now: now, loss: new(big.Rat), tokens: make([]*big.Rat, 1+classes)}
	for b := range m.tokens {
		m.tokens[b] = new(big.Rat)
	}
	return m
}

func (m *model) rate(b int) allocator.Rate {
	for _, s := range m.steps {
		if m.now < s.Until {
			if b == 0 {
				return s.Total
			}
			return s.Classes[b-1]
		}
	}
	return 0
}

func (m *model) cap(b int) *big.Rat {
	r := m.rate(b)
	if r == 0 {
		return new(big.Rat)
	}
	c := big.NewRat(int64(r), 1e6)
	c.Mul(c, big.NewRat(int64(m.burst), 1e9))
	least := big.NewRat(1, 1)
	active := 0
	for k := range len(m.tokens) - 1 {
		if m.rate(1+k) > 0 {
			active++
		}
	}
	if m.revocable && (b > 0 || active >= 2) {
		least = big.NewRat(2, 1)
	}
	if c.Cmp(least) < 0 {
		return least
	}
	return c
}

// advance integrates the schedule up to now; it never goes back.
func (m *model) advance(now int64) {
	for m.now < now {
		until := now
		for _, s := range m.steps {
			if m.now < s.Until {
				until = min(until, s.Until)
				break
			}
		}
		dt := big.NewRat(until-m.now, 1e9)
		m.loss.Add(m.loss, new(big.Rat).Mul(dt, big.NewRat(1e9, 1<<36*1e6)))
		for b := range m.tokens {
			gain := new(big.Rat).Mul(dt, big.NewRat(int64(m.rate(b)), 1e6))
			m.tokens[b].Add(m.tokens[b], gain)
			m.clamp(b)
		}
		m.now = until
		for b := range m.tokens {
			m.clamp(b)
		}
	}
}

func (m *model) clamp(b int) {
	if c := m.cap(b); m.tokens[b].Cmp(c) > 0 {
		m.tokens[b] = c
	}
}

func (m *model) set(now int64, steps []enforce.Step) {
	m.advance(now)
	m.steps = steps
	for b := range m.tokens {
		m.clamp(b)
	}
}

func (m *model) add(b int, units int64) {
	m.tokens[b] = new(big.Rat).Add(m.tokens[b], big.NewRat(units, 1))
	m.clamp(b)
}

// holds reports whether bucket b has surely, and perhaps, the cost above reserve.
// A bucket clamped to its cap may keep the fraction of a micro-unit that is not
// credited yet.
func (m *model) holds(b int, cost int64, reserve *big.Rat) (surely, perhaps bool) {
	left := new(big.Rat).Sub(m.tokens[b], big.NewRat(cost, 1))
	left.Sub(left, reserve)
	return left.Cmp(m.loss) >= 0, left.Cmp(big.NewRat(-1, 1e6)) > 0
}

// backdate says that the last admission was paid age ago: a full bucket has
// earned since then what it would otherwise have let overflow. How much of
// the age lies in the current segment the model does not know, so from here on
// it is less sure by as much.
func (m *model) backdate(age int64, from int) {
	for _, b := range []int{0, 1 + from} {
		earned := new(big.Rat).Mul(big.NewRat(age, 1e9), big.NewRat(int64(m.rate(b)), 1e6))
		m.tokens[b] = new(big.Rat).Add(m.tokens[b], earned)
		m.clamp(b)
		m.loss.Add(m.loss, earned)
	}
}

func (m *model) half(b int) *big.Rat { return new(big.Rat).Mul(m.cap(b), big.NewRat(1, 2)) }

// drawSteps draws a schedule of falling totals, split over the classes.
func drawSteps(t *rapid.T, now int64, classes int) []enforce.Step {
	total := allocator.Rate(rapid.SampledFrom([]int64{0, 1, 300_000, 7_000_000, 1e9, 2e10, 3e15}).Draw(t, "total"))
	var steps []enforce.Step
	until := now
	for n := rapid.IntRange(1, 3).Draw(t, "steps"); n > 0; n-- {
		until += rapid.Int64Range(1, 5e9).Draw(t, "length")
		if n == 1 {
			until = math.MaxInt64
		}
		st := enforce.Step{Until: until, Total: total, Classes: make([]allocator.Rate, classes)}
		left := total
		for k := range st.Classes {
			r := allocator.Rate(rapid.Int64Range(0, int64(left)).Draw(t, "class rate"))
			if k == classes-1 {
				r = left
			}
			st.Classes[k], left = r, left-r
		}
		steps = append(steps, st)
		total = allocator.Rate(rapid.Int64Range(0, int64(total)).Draw(t, "lower"))
	}
	return steps
}

func TestLimiterNeverAdmitsMoreThanTheModelAndRoundsByLittle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const classes = 3
		now := rapid.Int64Range(0, 1e18).Draw(t, "boot")
		burst := time.Duration(rapid.SampledFrom([]int64{1e8, 1e9, 1e10}).Draw(t, "burst"))
		m := newModel(classes, burst, now)
		m.revocable = rapid.Bool().Draw(t, "revocable")
		l := enforce.NewLimiter(enforce.LimiterConfig{Classes: classes, Burst: burst, Revocable: m.revocable}, now)
		type paid struct {
			v    enforce.Verdict
			cost int64
		}
		var admitted []paid
		idle := []int64{0, 1, 1e3, 1e6, 1e8, 1e9, 1e13}
		t.Repeat(map[string]func(*rapid.T){
			"wait": func(t *rapid.T) {
				now += rapid.Int64Range(0, rapid.SampledFrom(idle).Draw(t, "scale")).Draw(t, "dt")
			},
			"set": func(t *rapid.T) {
				steps := drawSteps(t, now, classes)
				l.SetSchedule(now, steps)
				m.set(now, steps)
			},
			"decide": func(t *rapid.T) {
				class := rapid.IntRange(0, classes-1).Draw(t, "class")
				cost := rapid.SampledFrom([]int64{1, 1, 1, 2, 9, 1000, 1e6}).Draw(t, "cost")
				v := l.Decide(now, class, cost)
				m.judge(t, now, class, cost, v, true)
				if v.OK {
					admitted = append(admitted, paid{v, cost})
				}
			},
			"decide with an old reading": func(t *rapid.T) {
				class := rapid.IntRange(0, classes-1).Draw(t, "class")
				age := rapid.Int64Range(0, 1e10).Draw(t, "age")
				l.Share(now, nil) // others have been here with the newer reading
				v := l.Decide(now-age, class, 1)
				m.judge(t, now, class, 1, v, false)
				if v.OK {
					m.backdate(age, int(v.From))
				}
			},
			"refund": func(t *rapid.T) {
				if len(admitted) == 0 {
					return
				}
				p := admitted[len(admitted)-1]
				admitted = admitted[:len(admitted)-1]
				// The model clamps what it has at the time of the refund, so it
				// must be told of the time first.
				m.advance(now)
				l.Refund(p.v, p.cost)
				m.add(0, p.cost)
				m.add(1+int(p.v.From), p.cost)
			},
		})
	})
}

// judge checks one verdict against the model, and follows it.
func (m *model) judge(t *rapid.T, now int64, class int, cost int64, v enforce.Verdict, exact bool) {
	m.advance(now)
	m.loss.Add(m.loss, big.NewRat(2, 1e6))
	none := new(big.Rat)
	if v.Reason == enforce.Admitted {
		from := int(v.From)
		reserve := none
		if from != class {
			if surely, _ := m.holds(1+class, cost, none); surely && exact {
				t.Fatalf("class %d borrowed while it held %v", class, m.tokens[1+class])
			}
			reserve = m.half(1 + from)
		}
		if _, ok := m.holds(1+from, cost, reserve); !ok {
			t.Fatalf("class %d paid %d of %v (reserve %v)", from, cost, m.tokens[1+from], reserve)
		}
		if _, ok := m.holds(0, cost, reserve); !ok {
			t.Fatalf("budget paid %d of %v (reserve %v)", cost, m.tokens[0], reserve)
		}
		m.add(1+from, -cost)
		m.add(0, -cost)
		return
	}
	own, _ := m.holds(1+class, cost, none)
	all, _ := m.holds(0, cost, none)
	if exact && own && all {
		t.Fatalf("class %d refused %d (%v): class holds %v, budget %v, loss %v",
			class, cost, v.Reason, m.tokens[1+class], m.tokens[0], m.loss)
	}
}
