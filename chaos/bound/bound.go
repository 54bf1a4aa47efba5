// Package bound checks admissions against the bound that Subak promises: in any
// window of w seconds the admitted cost is at most
//
//	B*w + B*burst + one request for each bucket smaller than one request.
//
// It works on the instants and costs of admissions alone, in exact integers, so
// that it shares nothing with the limiters it judges. Windows are closed: both
// ends count. Source: enforcement.md, "the bound every test asserts".
//
// B may change ([Config.Changes]): then B*w is its integral over the window, and
// the tokens that the buckets hold when the window begins are judged by the
// limit of that instant, the smaller one where it changes: a raise gives no
// tokens at once, and a cut clamps them.
//
// A Checker is fed admissions in time order and keeps only what the longest
// window can still see. Check is the batch form. Pure; not safe for concurrent
// use.
package bound

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"sort"
	"strings"
	"time"

	"subak/allocator"
)

// Admission is one admitted request: when (ns of any one clock) and its cost in
// units.
type Admission struct {
	At   int64
	Cost int64
}

// Config says what to check.
type Config struct {
	// Limit is B, the budget's rate, until the first of Changes.
	Limit allocator.Rate
	// Changes of the limit, by rising time. Not together with Grain.
	Changes []Change
	// Burst is the documented burst in time: B*Burst units may come at once.
	Burst time.Duration
	// Slots is how many buckets hold less than one request by rate x Burst and
	// are therefore allowed a whole one; Cost is that request's cost (0 means 1).
	Slots int64
	Cost  int64
	// Spread is how much transit times differ: arrivals are judged by windows
	// this much longer. 0 for admissions stamped where they were decided.
	Spread time.Duration
	// Grain rounds instants so that a Checker's memory is bounded by the
	// longest window / Grain instead of by the number of admissions; each
	// window is then allowed Grain more. 0 is exact.
	Grain time.Duration
	// Windows to check; empty means 100 ms, 1 s and 10 s.
	Windows []time.Duration
	// Over is how many broken stretches of each window are listed in the report;
	// 0 lists none.
	Over int
}

// Change is a limit that binds from the instant At on.
type Change struct {
	At    int64
	Limit allocator.Rate
}

// Errors of Add and New.
var (
	ErrOrder  = errors.New("admission is older than the one before")
	ErrCost   = errors.New("cost is negative")
	ErrConfig = errors.New("bound config")
)

// Result is the worst window of one length: the one with the smallest margin.
type Result struct {
	Window time.Duration
	Peak   int64 // most units admitted in any such window; in the worst one where the limit changes
	Start  int64 // instant of that window's first admission
	Bound  int64 // most units allowed
	Margin int64 // Bound - Peak; negative when the bound is broken
}

// OK reports whether the bound was kept.
func (r Result) OK() bool { return r.Margin >= 0 }

// String returns the result as a person would write it.
func (r Result) String() string {
	verdict := "kept"
	if !r.OK() {
		verdict = "BROKEN"
	}
	return fmt.Sprintf("%v: peak %d of %d from %d: %s by %d", r.Window, r.Peak, r.Bound, r.Start, verdict, abs(r.Margin))
}

// Report is the outcome for every window length.
type Report struct {
	Total   int64    // units
	Results []Result // by rising window length
	// Level is the strictest test, over windows of every length at once: the
	// highest fill of a bucket that drains at Limit, in units rounded up,
	// LevelMax what B*Burst and the slots allow it, rounded down, and LevelOK
	// the exact comparison.
	// Where the limit changes it is the largest limit that fills LevelMax, and a
	// window that begins under a smaller one starts with that much more in it.
	Level, LevelMax int64
	LevelOK         bool
	// Over lists the worst window of each stretch of time in which the bound was
	// broken without a break, by window and time: the first Config.Over of each length.
	Over []Result `json:",omitempty"`
}

// OK reports whether every window kept the bound.
func (r Report) OK() bool {
	for _, w := range r.Results {
		if !w.OK() {
			return false
		}
	}
	return r.LevelOK
}

// String returns one line per window.
func (r Report) String() string {
	var b strings.Builder
	for _, w := range r.Results {
		fmt.Fprintln(&b, w)
	}
	fmt.Fprintf(&b, "any length: level %d of %d", r.Level, r.LevelMax)
	return b.String()
}

// Worst returns the window with the smallest margin; the zero Result when there
// is none.
func (r Report) Worst() Result {
	var worst Result
	for i, w := range r.Results {
		if i == 0 || w.Margin < worst.Margin {
			worst = w
		}
	}
	return worst
}

// Checker is the streaming form.
type Checker struct {
	cfg     Config
	seen    bool
	last    int64
	total   int64
	windows []window
	held    ring // the admissions the longest window can see
	limits  limits

	// level is the fill of the draining bucket, in micro-unit nanoseconds of
	// 128 bits, so that draining rounds nothing.
	level, levelMax wide
}

type window struct {
	Result
	tail  uint64 // sequence number in the ring of the oldest admission inside
	count int64
	worst int64 // smallest margin so far

	over     []Result
	open     bool  // the last window that ended broke the bound
	brokenAt int64 // when it ended
	listed   bool  // its stretch is the last of over
}

// New returns a checker, or an error that wraps ErrConfig.
func New(cfg Config) (*Checker, error) {
	if len(cfg.Windows) == 0 {
		cfg.Windows = []time.Duration{100 * time.Millisecond, time.Second, 10 * time.Second}
	}
	if cfg.Cost == 0 {
		cfg.Cost = 1
	}
	if cfg.Limit < 0 || cfg.Burst < 0 || cfg.Slots < 0 || cfg.Cost < 0 || cfg.Spread < 0 || cfg.Grain < 0 {
		return nil, fmt.Errorf("%w: negative field in %+v", ErrConfig, cfg)
	}
	if err := cfg.validateChanges(); err != nil {
		return nil, err
	}
	ws := append([]time.Duration(nil), cfg.Windows...)
	sort.Slice(ws, func(i, j int) bool { return ws[i] < ws[j] })
	if ws[0] < 0 {
		return nil, fmt.Errorf("%w: negative window %v", ErrConfig, ws[0])
	}
	c := &Checker{cfg: cfg}
	c.limits = newLimits(&c.cfg)
	for _, w := range ws {
		most := cfg.Bound(w)
		worst := most // of no admissions
		if len(cfg.Changes) > 0 {
			worst = math.MaxInt64
		}
		c.windows = append(c.windows, window{Result: Result{Window: w, Bound: most}, worst: worst})
	}
	return c, nil
}

// Bound returns the most units a window of length w may admit while the limit is
// Config.Limit.
func (c Config) Bound(w time.Duration) int64 {
	slack := satAdd(satAdd(int64(w), int64(c.Spread)), satAdd(int64(c.Burst), int64(c.Grain)))
	hi, lo := bits.Mul64(uint64(c.Limit), uint64(slack))
	units := int64(math.MaxInt64)
	if hi < microNs {
		q, _ := bits.Div64(hi, lo, microNs)
		units = int64(min(q, math.MaxInt64))
	}
	slots := int64(math.MaxInt64)
	if hi, lo := bits.Mul64(uint64(c.Slots), uint64(max(c.Cost, 1))); hi == 0 && lo < math.MaxInt64 {
		slots = int64(lo)
	}
	return satAdd(units, slots)
}

// slots is what the buckets below one request are allowed, before rounding.
func (c Config) slots() wide {
	hi, slots := bits.Mul64(uint64(c.Slots), uint64(max(c.Cost, 1)))
	if hi > 0 {
		return wide{math.MaxUint64, math.MaxUint64}
	}
	hi, lo := bits.Mul64(slots, microNs)
	return wide{hi, lo}
}

// microNs is one unit in micro-unit nanoseconds.
const microNs = 1_000_000 * 1_000_000_000

// Add takes the next admission. Its instant must not be before the last one's
// (after rounding to Grain).
func (c *Checker) Add(a Admission) error {
	if a.Cost < 0 {
		return fmt.Errorf("%w: %d at %d", ErrCost, a.Cost, a.At)
	}
	if g := int64(c.cfg.Grain); g > 0 {
		a.At -= ((a.At % g) + g) % g
	}
	if c.seen && a.At < c.last {
		return fmt.Errorf("%w: %d after %d", ErrOrder, a.At, c.last)
	}
	c.drain(a)
	c.seen, c.last = true, a.At
	c.total += a.Cost
	c.held.push(a)
	for i := range c.windows {
		c.windows[i].slide(c, a)
	}
	// The longest window's tail is the oldest that anyone still needs.
	c.held.dropBefore(c.windows[len(c.windows)-1].tail)
	return nil
}

func (w *window) slide(c *Checker, a Admission) {
	w.count += a.Cost
	for {
		oldest := c.held.at(w.tail)
		if a.At-oldest.At <= int64(w.Window) {
			break
		}
		// A merged entry may have grown since it was counted, never shrunk.
		w.count -= oldest.Cost
		w.tail++
	}
	now := Result{Window: w.Window, Peak: w.count, Start: c.held.at(w.tail).At, Bound: w.Bound}
	if len(c.cfg.Changes) > 0 {
		now.Bound = c.limits.most(a.At-int64(w.Window), a.At)
	}
	now.Margin = now.Bound - now.Peak
	if now.Margin < w.worst {
		w.Result, w.worst = now, now.Margin
	}
	if c.cfg.Over > 0 {
		w.note(now, a.At, c.cfg.Over)
	}
}

// note enters the window that ends at the instant at in the list of broken
// stretches; one ends with a window that kept the bound, or with nothing for the
// length of one.
func (w *window) note(now Result, at int64, most int) {
	open := w.open && at-w.brokenAt <= int64(w.Window)
	if w.open = !now.OK(); !w.open {
		return
	}
	w.brokenAt = at
	switch {
	case !open && len(w.over) < most:
		w.over = append(w.over, now)
		w.listed = true
	case !open:
		w.listed = false
	case w.listed && now.Margin < w.over[len(w.over)-1].Margin:
		w.over[len(w.over)-1] = now
	}
}

// drain lets the level fall by what the limit gave since the last admission,
// begins a window anew where that is worse, and adds this admission.
func (c *Checker) drain(a Admission) {
	if !c.seen {
		c.limits.skipTo(a.At)
		c.level = c.limits.gap(a.At)
	} else {
		c.level = c.limits.drain(c.level, c.last, a.At)
	}
	hi, lo := bits.Mul64(uint64(a.Cost), microNs)
	c.level = c.level.plus(wide{hi, lo})
	if c.levelMax.less(c.level) {
		c.levelMax = c.level
	}
}

// Report returns the outcome so far.
func (c *Checker) Report() Report {
	most := c.limits.full.plus(c.cfg.slots())
	r := Report{Total: c.total, Level: c.levelMax.units(), LevelMax: most.whole(), LevelOK: !most.less(c.levelMax)}
	for _, w := range c.windows {
		w.Margin = w.Bound - w.Peak
		r.Results = append(r.Results, w.Result)
		r.Over = append(r.Over, w.over...)
	}
	return r
}

// Check is the batch form: it sorts a copy of the admissions by time.
func Check(cfg Config, as []Admission) (Report, error) {
	c, err := New(cfg)
	if err != nil {
		return Report{}, err
	}
	as = append([]Admission(nil), as...)
	sort.SliceStable(as, func(i, j int) bool { return as[i].At < as[j].At })
	for _, a := range as {
		if err := c.Add(a); err != nil {
			return Report{}, err
		}
	}
	return c.Report(), nil
}

func abs(v int64) int64 {
	if v < 0 {
		return -v
	}
	return v
}

func satAdd(a, b int64) int64 {
	if s := a + b; s >= a {
		return s
	}
	return math.MaxInt64
}
