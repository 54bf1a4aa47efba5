package enforce

import (
	"math"
	"math/bits"
	"time"

	"subak/allocator"
)

// EstimatorConfig tunes a demand estimate. The zero value means the defaults.
type EstimatorConfig struct {
	// Tick is the allocation cycle; 0 means 200 ms. Updates normally come
	// several times a tick. Everything below scales with it.
	Tick time.Duration
	// SmoothTicks is the memory of the moving average: a gain of 1/SmoothTicks
	// per tick. 0 means 10. Raising it calms the estimate and slows its
	// following of drifts too small to count as a jump.
	SmoothTicks int64
	// JumpPPM is the least relative change that is followed at once rather
	// than smoothed, if it is also beyond 4 sigma of the noise. 0 means 50,000.
	JumpPPM int64
	// BandPPM is how far the estimate must leave the published value to
	// change it. 0 means 20,000. Raising it saves messages and costs accuracy.
	BandPPM int64
	// StaleTicks is for how many ticks without a report the published value
	// stands; then it halves every HalfTicks. 0 means 5 and 10. Lowering them
	// lets silence cut a share faster (lesson O14).
	StaleTicks, HalfTicks int64
}

func (c EstimatorConfig) withDefaults() EstimatorConfig {
	set := func(v *int64, to int64) {
		if *v <= 0 {
			*v = to
		}
	}
	if c.Tick <= 0 {
		c.Tick = 200 * time.Millisecond
	}
	set(&c.SmoothTicks, 10)
	set(&c.JumpPPM, 50_000)
	set(&c.BandPPM, 20_000)
	set(&c.StaleTicks, 5)
	set(&c.HalfTicks, 10)
	return c
}

// Report says what a demand figure rests on. Silence is not zero (lesson O14).
type Report uint8

// The kinds of report.
const (
	NoReport     Report = iota // nothing was ever reported
	Fresh                      // a report came lately
	ReportedZero               // a report came lately and said: no demand
	Stale                      // reports stopped; the value decays by halves
)

// String returns the report's name.
func (r Report) String() string {
	return [...]string{"none", "fresh", "zero", "stale"}[r&3]
}

const (
	ppm = 1_000_000
	// intervalMin is the shortest interval judged by itself; shorter ones are
	// added up, because dividing by almost nothing shows noise only.
	intervalMin = int64(5 * time.Millisecond)
	// offeredMax bounds one interval's count, so that the squares fit.
	offeredMax = int64(1) << 40
	history    = 16
	leastBegun = 2
	// noisyJumps within history intervals are too many to be steps of demand: a
	// pulse is two.
	noisyJumps = 4
	// What one interval counts in the dispersion: a lump is known to be one, and
	// rarely seen, so it counts more.
	noiseGain, lumpGain = 32, 4
	// lumpWait is for how many intervals a lump may turn out to have been the
	// beginning of a step that was interrupted, by a stall of whoever sends.
	lumpWait = 3
)

// Estimator turns counts of offered work into a demand that is worth
// publishing: a moving average that follows a jump at once and is quiet
// otherwise. Integers only, so that a replay gives the same bits.
//
// A jump is a change beyond both 4 sigma and JumpPPM, looked for over the last
// 1, 4 and 16 intervals: big steps show in one, small ones need more counts
// to stand out from chance. Sigma is that of a Poisson process, widened by the
// dispersion measured (requests of unequal cost, bursts). After a jump the
// estimate is the plain mean of what came since, until that is as long as the
// moving average's memory.
//
// Not safe for concurrent use.
type Estimator struct {
	cfg     EstimatorConfig
	started bool
	last    int64 // reading of the last update; lease clock
	carry   int64 // units counted in intervals still too short

	est   int64  // micro-units per second
	age   int64  // ns the estimate is the mean of, up to the memory
	lead  int64  // micro-units that are published on top of those seen since a step up
	fresh bool   // the newest interval jumped: it may hold only part of the step
	jumps uint16 // which of the last intervals jumped, the newest in bit 0

	prior, priorAge int64 // est and age before the newest jump
	disp            int64 // variance per mean, in micro-units; at least one unit

	calm     int64 // disp before the newest lump
	lumpLeft int   // intervals in which that may have to come back; 0 for none

	ring      [history]interval // [0] is the newest
	held      int
	published allocator.Rate
}

type interval struct{ units, ns int64 }

// NewEstimator returns an estimate without a report.
func NewEstimator(cfg EstimatorConfig) *Estimator {
	return &Estimator{cfg: cfg.withDefaults(), disp: ppm}
}

// Update reports the units offered since the last update and returns the demand
// to publish, and whether a jump changed it, which is worth a message at once. A
// jump is published with the interval after the one that shows it, which holds
// an unknown part of the step: one message with the whole of it is served sooner
// than two, and a lump is not published at all.
// The first update only starts the clock. Negative counts count as none.
func (e *Estimator) Update(now, offered int64) (demand allocator.Rate, jumped bool) {
	offered = min(max(offered, 0), offeredMax)
	if !e.started {
		e.started, e.last = true, now
		return e.published, false
	}
	e.carry = min(e.carry+offered, offeredMax)
	dt := now - e.last
	if dt < intervalMin {
		return e.published, false
	}
	x := interval{e.carry, dt}
	e.last, e.carry = now, 0
	e.push(x)
	jumped = e.follow(x)
	if e.fresh {
		return e.published, false // the next interval tells how far it jumped, or that it was a lump
	}
	return e.publish(jumped)
}

// follow brings the estimate up to date and says whether it jumped.
//
// What is noise is learned only from what cannot be a step of demand: else a
// demand that steps up and down would end up looking so noisy that no step stood
// out. A lone jump that lasts is a step; one that is gone in the next interval
// was a lump, unless there is another right after it: then a step was interrupted,
// and what was learned from it would hide the rest. Many jumps close together are
// noise not yet known.
func (e *Estimator) follow(x interval) (jumped bool) {
	e.jumps <<= 1
	if e.fresh {
		e.fresh = false
		e.settle(x)
		return true
	}
	before, age := e.est, e.age
	e.reconsider(x)
	if !e.jump() {
		e.disperse(x, before, noiseGain)
		e.smooth(x)
		return false
	}
	e.prior, e.priorAge = before, age
	e.jumps |= 1
	if bits.OnesCount16(e.jumps) >= noisyJumps {
		e.disperse(x, before, noiseGain)
	}
	return true
}

// settle takes up the interval after a jump, the first that is whole: the one
// of the jump held an unknown part of the step.
func (e *Estimator) settle(x interval) {
	rate := rateOf(x)
	if e.unlikely(x, e.prior) || abs(e.est-e.prior) < 4*abs(rate-e.prior) {
		e.rise(rate, x.ns, e.prior)
		e.held = 1
		return
	}
	lump := e.ring[1] // clearly back at the old level
	e.calm, e.lumpLeft = e.disp, lumpWait
	e.disperse(lump, e.prior, lumpGain)
	e.est, e.age, e.held, e.lead = e.prior, e.priorAge, 2, 0
	e.smooth(lump)
	e.smooth(x)
}

// reconsider takes back what was learned from a lump when another interval stands
// out so soon.
func (e *Estimator) reconsider(x interval) {
	if e.lumpLeft == 0 {
		return
	}
	e.lumpLeft--
	learned := e.disp
	e.disp = e.calm
	if rateOf(x) > e.est && e.unlikely(x, e.est) {
		e.lumpLeft = 0
		return
	}
	e.disp = learned
}

func (e *Estimator) push(x interval) {
	copy(e.ring[1:], e.ring[:history-1])
	e.ring[0] = x
	e.held = min(e.held+1, history)
}

// jump looks for a change that chance does not explain, over growing windows,
// and follows it.
func (e *Estimator) jump() bool {
	var sum interval
	for i := range e.held {
		sum.units = min(sum.units+e.ring[i].units, offeredMax)
		sum.ns += e.ring[i].ns
		n := i + 1
		if n != 1 && n != 4 && n != 16 || !e.unlikely(sum, e.est) {
			continue
		}
		e.fresh = n == 1
		e.held = e.begun(n) // what came before belongs to the old level
		whole := sum
		if n > 1 {
			whole = e.sum(e.held - 1) // the first may hold only part of the step
		}
		e.rise(rateOf(whole), whole.ns, e.est)
		return true
	}
	return false
}

// begun returns how many of the newest n intervals stand out most: the step began
// with the first of them. Where one alone does not stand out, of the newest leastBegun
// it may only look so.
func (e *Estimator) begun(n int) (first int) {
	first = min(n, leastBegun)
	var most uint64
	for m := first; m <= n; m++ {
		off, sigma := e.deviation(e.sum(m), e.est)
		hi, lo := bits.Mul64(uint64(off), 1<<20)
		score := uint64(math.MaxUint64)
		if hi < uint64(sigma) {
			score, _ = bits.Div64(hi, lo, uint64(sigma))
		}
		if score > most {
			first, most = m, score
		}
	}
	return first
}

// sum adds up the newest n intervals.
func (e *Estimator) sum(n int) (sum interval) {
	for _, x := range e.ring[:n] {
		sum.units = min(sum.units+x.units, offeredMax)
		sum.ns += x.ns
	}
	return sum
}

// rise begins a new estimate after a jump from another rate.
func (e *Estimator) rise(rate, ns, from int64) {
	e.est, e.age, e.lead = rate, ns, 0
	if rate > from {
		e.lead = e.disp
	}
}

// unlikely reports whether x is beyond 4 sigma and JumpPPM of a rate.
func (e *Estimator) unlikely(x interval, rate int64) bool {
	want := countOf(rate, x.ns)
	if abs(x.units*ppm-want) <= mulPPM(want, e.cfg.JumpPPM) {
		return false // the cheaper of the two conditions
	}
	off, sigma := e.deviation(x, rate)
	return off > 4*sigma
}

// deviation returns how far x is from a rate, and sigma, in micro-units.
// sigma^2 = dispersion x (mean + dispersion): the latter is about one request and
// keeps a single one after a long silence from looking like a miracle.
func (e *Estimator) deviation(x interval, rate int64) (off, sigma int64) {
	want := countOf(rate, x.ns)
	hi, lo := bits.Mul64(uint64(e.disp), uint64(want)+uint64(e.disp))
	return abs(x.units*ppm - want), int64(isqrt(hi, lo))
}

// disperse learns the variance per mean from the squared deviations, one
// deviation from the estimate of before counting no more than 4 sigma.
func (e *Estimator) disperse(x interval, before, gain int64) {
	want := countOf(before, x.ns)
	if x.units == 0 && want < 4*ppm {
		return // silence says nothing about the size of what is missing
	}
	off := uint64(abs(x.units*ppm - want))
	mean := uint64(max(want, ppm))
	most := uint64(16 * e.disp)
	hi, lo := bits.Mul64(off, off)
	ratio := most
	if hi < mean {
		q, _ := bits.Div64(hi, lo, mean)
		ratio = min(q, most)
	}
	e.disp += (int64(ratio) - e.disp) / gain
	e.disp = min(max(e.disp, ppm), math.MaxInt64/64)
}

// smooth moves the estimate towards x by the interval's part of its memory.
func (e *Estimator) smooth(x interval) {
	memory := int64(e.cfg.Tick) * e.cfg.SmoothTicks
	e.age = min(e.age+x.ns, max(memory, x.ns))
	diff := rateOf(x) - e.est
	hi, lo := bits.Mul64(uint64(abs(diff)), uint64(x.ns))
	step, _ := bits.Div64(hi, lo, uint64(e.age)) // x.ns <= age: fits
	if diff < 0 {
		e.est -= max(int64(step), 1) // silence reaches zero in the end
	} else {
		e.est += int64(step)
	}
}

// publish changes the published value where the estimate has left its band;
// the band is a quarter as wide while the estimate still settles after a jump. Until
// then one request more than was seen since a step up is asked for: who asks for too
// little asks again, a round trip later; who asks for a little too much gives it back.
func (e *Estimator) publish(jump bool) (allocator.Rate, bool) {
	band, est := e.cfg.BandPPM, e.est
	if e.age <= 2*int64(e.cfg.Tick) {
		band /= 4
		est = min(est+perSecond(e.lead, e.age), int64(MaxRate))
	} else if e.lead > 0 {
		band, e.lead = 0, 0
	}
	off := abs(est - int64(e.published))
	if off == 0 || off <= mulPPM(int64(e.published), band) && est != 0 {
		return e.published, false
	}
	e.published = allocator.Rate(est)
	return e.published, jump
}

// Demand returns the demand to act on at now, and what it rests on. Reports
// that stop do not mean that demand did: the last value stands for StaleTicks
// and then halves every HalfTicks.
func (e *Estimator) Demand(now int64) (allocator.Rate, Report) {
	if !e.started {
		return 0, NoReport
	}
	tick := int64(e.cfg.Tick)
	silent := now - e.last - tick*e.cfg.StaleTicks
	switch {
	case silent > 0:
		return e.published >> min(silent/(tick*e.cfg.HalfTicks), 63), Stale
	case e.published == 0:
		return 0, ReportedZero
	}
	return e.published, Fresh
}

// rateOf returns an interval's rate in micro-units per second, at most MaxRate.
func rateOf(x interval) int64 { return perSecond(x.units*ppm, x.ns) }

// perSecond returns the rate of some micro-units in ns nanoseconds, at most MaxRate.
func perSecond(micro, ns int64) int64 {
	hi, lo := bits.Mul64(uint64(micro), uint64(time.Second))
	if hi >= uint64(ns) {
		return int64(MaxRate)
	}
	q, _ := bits.Div64(hi, lo, uint64(ns))
	return int64(min(q, uint64(MaxRate)))
}

// countOf returns what a rate makes in ns nanoseconds, in micro-units, at most
// offeredMax units.
func countOf(est, ns int64) int64 {
	hi, lo := bits.Mul64(uint64(est), uint64(ns))
	if hi >= uint64(time.Second) {
		return offeredMax * ppm
	}
	q, _ := bits.Div64(hi, lo, uint64(time.Second))
	return int64(min(q, uint64(offeredMax*ppm)))
}

func mulPPM(v, part int64) int64 {
	hi, lo := bits.Mul64(uint64(v), uint64(part))
	if hi >= ppm {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, ppm)
	return int64(min(q, math.MaxInt64))
}

func abs(v int64) int64 {
	if v < 0 {
		return -v
	}
	return v
}

// isqrt returns the square root of a 128-bit number, rounded down, for roots
// below 2^63.
func isqrt(hi, lo uint64) uint64 {
	n := bits.Len64(lo)
	if hi > 0 {
		n = 64 + bits.Len64(hi)
	}
	var root uint64
	for b := (n + 1) / 2; b >= 0; b-- {
		try := root | 1<<b
		if h, l := bits.Mul64(try, try); h < hi || h == hi && l <= lo {
			root = try
		}
	}
	return root
}
