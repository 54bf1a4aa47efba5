package timed

import (
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"subak/allocator"
)

// A claim is one figure of the product and what it is to be.
type claim struct {
	name  string
	got   float64
	least bool // the limit is the least that will do, not the most
	limit float64
	unit  string
}

func (c claim) kept() bool {
	if c.least {
		return c.got >= c.limit
	}
	return c.got <= c.limit
}

// Figures measures in virtual time how the product's core reacts over 22 cities,
// prints each figure beside its claim and a verdict, and reports whether all
// claims hold. It takes about a minute.
func Figures(out io.Writer) bool {
	fmt.Fprintf(out, "%d cities, longest round trip %s, tick 200ms, term 3s; all in virtual time\n", labNodes, longest(cityDelays(labNodes)).Round(time.Millisecond))
	good := true
	say := func(claims ...claim) {
		for _, c := range claims {
			verdict, than := "ok", "at most"
			if !c.kept() {
				verdict, good = "SHORT", false
			}
			if c.least {
				than = "at least"
			}
			fmt.Fprintf(out, "%-62s %9.3f %-3s %s %.3f: %s\n", c.name, c.got, c.unit, than, c.limit, verdict)
		}
	}
	say(reactions(out)...)
	say(enforcedSums()...)
	say(healing())
	say(hottestCrash())
	if good {
		fmt.Fprintln(out, "figures: all claims hold")
	} else {
		fmt.Fprintln(out, "figures: some claims fall short")
	}
	return good
}

// reactions measures demand steps: a node in turn asks for one and a half bases
// more, with a fifth of the budget to spare and with more asked for than there
// is.
func reactions(out io.Writer) []claim {
	var all []claim
	for _, c := range []struct {
		loss      int64
		mean, p95 float64
	}{{0, 0.40, 0.50}, {50_000, math.Inf(1), math.Inf(1)}, {200_000, 0.60, math.Inf(1)}} {
		var took []float64
		never := 0
		for _, load := range []float64{0.8, 1.1} {
			t, n := steps(load, c.loss)
			took, never = append(took, t...), never+n
		}
		slices.Sort(took)
		mean, p95 := meanOf(took), took[len(took)*95/100]
		fmt.Fprintf(out, "demand step at %2d %% loss: mean %.0f ms, p95 %.0f ms, max %.0f ms, %d steps, %d never served\n",
			c.loss/10_000, mean*1e3, p95*1e3, took[len(took)-1]*1e3, len(took), never)
		name := fmt.Sprintf("demand step to 99 %% of target at %d %% loss, ", c.loss/10_000)
		if !math.IsInf(c.mean, 1) {
			all = append(all, claim{name: name + "mean", got: mean, limit: c.mean, unit: "s"})
		}
		if !math.IsInf(c.p95, 1) {
			all = append(all, claim{name: name + "p95", got: p95, limit: c.p95, unit: "s"})
		}
		all = append(all, claim{name: name + "never", got: float64(never)})
	}
	return all
}

// steps returns the seconds from each step to 99 % of the new target for good.
func steps(load float64, loss int64) (took []float64, never int) {
	l := newLab(1+uint64(loss), loss)
	l.wait(4 * time.Second)
	l.spread(load)
	l.wait(8 * time.Second)
	for x := range labNodes {
		i := x * 7 % labNodes
		l.wait(time.Duration(l.r.Int64N(int64(l.setup.Tick))))
		before := l.load[i]
		l.set(i, before+1.5)
		want := l.ideal(nil)[i] / 100 * 99
		if d, ok := l.reached(3*time.Second, func() bool { return l.enforced(i) >= want }); ok {
			took = append(took, d.Seconds())
		} else {
			never++
		}
		l.set(i, before)
		l.wait(3 * time.Second)
	}
	return took, never
}

func meanOf(xs []float64) float64 {
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	return sum / float64(len(xs))
}

// enforcedSums measures how much of the budget is enforced somewhere, on
// average, while demand moves.
func enforcedSums() []claim {
	var sums []float64
	for seed := range uint64(5) { // one run differs from another by a thousandth
		l := newLab(40+seed, 0)
		l.wait(4 * time.Second)
		l.spread(1)
		l.wait(6 * time.Second)
		sums = append(sums, l.observe(60*time.Second, func() {
			if l.r.IntN(100) == 0 { // each second, on average
				l.set(l.r.IntN(labNodes), 0.9*[]float64{0.1, 0.5, 1, 2, 4}[l.r.IntN(5)])
			}
		})...)
	}
	all := []claim{
		{name: "sum E/B, demands that flip at random, mean", got: meanOf(sums), least: true, limit: 0.995},
		{name: "sum E/B, demands that flip at random, max", got: slices.Max(sums), limit: 1},
	}
	for _, load := range []float64{0.95, 1.1} {
		l := newLab(3, 0)
		l.wait(4 * time.Second)
		l.spread(load)
		l.wait(6 * time.Second)
		tick := 0
		sums := l.observe(40*time.Second, func() {
			if tick++; tick%20 == 0 {
				for i := range l.load {
					l.offer(i, l.load[i]*(1+0.05*l.normal()))
				}
			}
		})
		all = append(all, claim{name: fmt.Sprintf("sum E/B at 5 %% demand noise, load %.2f, mean", load), got: meanOf(sums), least: true, limit: 0.99})
	}
	return all
}

// observe samples the sum each 10 ms, after what change does.
func (l *lab) observe(d time.Duration, change func()) (sums []float64) {
	for end := l.now + int64(d); l.now < end; {
		change()
		l.wait(10 * time.Millisecond)
		sums = append(sums, l.sum())
	}
	l.sound()
	return sums
}

// normal is a number of mean 0 and deviation 1, nearly normal.
func (l *lab) normal() float64 {
	sum := -6.0
	for range 12 {
		sum += float64(l.r.Int64N(1<<30)) / (1 << 30)
	}
	return sum
}

// healing measures the time from the end of a partition, during which demand
// moved, to 99 % of the ideal everywhere.
func healing() claim {
	worst := 0.0
	for seed := range uint64(2) {
		for _, side := range []int{11, 5} {
			for _, load := range []float64{0.9, 1.1} {
				worst = max(worst, healOnce(4+seed, side, load).Seconds())
			}
		}
	}
	return claim{name: "heal of a partition to 99 % of the ideal, worst of 8", got: worst, limit: 1, unit: "s"}
}

// healOnce cuts off so many nodes, lets demand move on both sides, and returns
// how long after the cut all enforce what they should; an hour for never.
func healOnce(seed uint64, side int, load float64) time.Duration {
	l := newLab(seed, 0)
	l.wait(4 * time.Second)
	l.spread(load)
	l.wait(6 * time.Second)
	var mask int64
	for i := range labNodes {
		if i*5%labNodes < side {
			mask |= 1 << i
		}
	}
	l.net.cut = []Fault{{Kind: Split, Arg: mask}}
	l.wait(10 * time.Second)
	for i := range labNodes {
		x := 0.75
		if mask>>i&1 == 1 {
			x = 1.5
		}
		l.set(i, l.load[i]*x)
	}
	l.wait(10*time.Second + time.Duration(l.r.Int64N(int64(l.setup.Tick))))
	l.net.cut = nil
	ideal := l.ideal(nil)
	d, ok := l.reached(4*time.Second, func() bool {
		for i, a := range ideal {
			if l.enforced(i) < a/100*99-allocator.Rate(l.base)*1000 { // a thousandth of a base
				return false
			}
		}
		return true
	})
	if !ok {
		return time.Hour
	}
	return d
}

// hottestCrash measures what nobody enforces once the loans of the node that had
// borrowed most have ended after its death, in bases: a term, its allowance and
// the last rows' time under way later.
func hottestCrash() claim {
	l := newLab(5, 0)
	l.wait(4 * time.Second)
	l.spread(0.9)
	l.set(3, 8)
	l.wait(6 * time.Second)
	if l.enforced(3) < 4*allocator.Rate(l.base)*allocator.Unit {
		panic("figures: the hot node borrowed nothing")
	}
	l.hosts[3].kill()
	l.set(3, 0)
	l.wait(time.Duration(l.setup.leaseWait()) + longest(l.delay)*11/20)
	l.sound()
	return claim{name: "idle a term after the hottest node was last heard, in bases", got: (1 - l.sum()) * labNodes, limit: 1.001}
}
