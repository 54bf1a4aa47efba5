package enforce

import (
	"cmp"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"subak/allocator"
)

// Carving: a part of a class's share that other data planes, such as the Envoys
// of a PoP, enforce by themselves until an instant, without asking again.
//
// What is carved is out of the limiter's own buckets from before Carve returns
// until the instant is over, whatever schedules come in between, so that at
// every instant what others may spend and what the limiter admits add up to the
// total in force. A carver can only grow within what the schedule in force
// promises for the whole time; what it holds already it keeps. The one thing that
// is left to whoever sets schedules is not to set a total below what is carved:
// that happens only where something outside the protocol took capacity away, and
// CarveShort counts it.

// Hold is what other data planes may spend of a class until an instant.
type Hold struct {
	Until int64 // lease clock, exclusive
	Rate  allocator.Rate
}

// HoldsMax is the highest number of holds in one profile.
const HoldsMax = 128

// carve is one carver's part of one class.
type carve struct {
	class   int // -1: of a class that is gone, only the total knows it
	who     string
	profile []Hold // Until rises, Rate falls
}

// carving is a limiter's state of it, guarded by Limiter.setting but for on.
type carving struct {
	on     atomic.Bool // somebody asked for Carvable once
	carves []carve
	given  []Step // the schedule, what is carved included
	pinned bool   // until the next schedule nobody grows
	covers int64  // until then schedules may be below what was carved
	short  int64  // schedules below what was carved
}

// before is who holds what a former life of the node may have carved.
const before = "\x00former life"

// at returns what may be spent at t.
func at(profile []Hold, t int64) allocator.Rate {
	for i := range profile {
		if t < profile[i].Until {
			return profile[i].Rate
		}
	}
	return 0
}

// Carve replaces what the carver who holds of a class by profile: the rate that
// other data planes may spend until each instant, Until rising and Rate falling.
// It is out of the own buckets when Carve returns true. Where profile is above
// both what who held at that instant and what the schedule promises, nothing
// changes and Carve returns false; so it does for an unknown class, a profile of
// more than HoldsMax holds, or one out of order. To take back what was promised
// to others and is not over yet would break the bound: that is on the caller.
func (l *Limiter) Carve(now int64, class int, who string, profile []Hold) bool {
	if uint(class) >= uint(l.Classes()) || !ordered(profile) {
		return false
	}
	l.setting.Lock()
	defer l.setting.Unlock()
	c := &l.carving
	old := c.of(class, who)
	fresh := carve{class, who, dropOver(slices.Clone(profile), now)}
	for _, t := range c.instants(now, fresh.profile) {
		want, had := at(fresh.profile, t), at(old, t)
		if want > had && (c.pinned || want > c.room(t, class, who)) {
			return false
		}
	}
	c.put(fresh)
	l.reinstall(now)
	return true
}

// Carvable returns the highest rate of a class that who may hold from now until
// an instant, by the schedule in force and what others hold.
func (l *Limiter) Carvable(now int64, class int, who string, until int64) allocator.Rate {
	if uint(class) >= uint(l.Classes()) {
		return 0
	}
	l.carving.on.Store(true)
	l.setting.Lock()
	defer l.setting.Unlock()
	least := allocator.Rate(math.MaxInt64)
	for _, t := range l.carving.instants(now, nil) {
		if t < until {
			least = min(least, l.carving.room(t, class, who))
		}
	}
	return least
}

// Carving reports whether anybody has ever asked what could be carved: then
// schedules should say so in Step.Carvable.
func (l *Limiter) Carving() bool { return l.carving.on.Load() }

// Carved fills dst with what is carved out of each class at now and returns the
// sum, which can be above that of dst: classes that are gone are in it.
func (l *Limiter) Carved(now int64, dst []allocator.Rate) (total allocator.Rate) {
	clear(dst)
	if !l.Carving() {
		return 0
	}
	l.setting.Lock()
	defer l.setting.Unlock()
	for i := range l.carving.carves {
		if x := &l.carving.carves[i]; x.class >= 0 && x.class < len(dst) {
			dst[x.class] += at(x.profile, now)
		}
	}
	return l.carving.sum(now)
}

// Pin is Carved of all classes for whoever is about to lower the schedule: from
// its return to the next SetSchedule or Unpin no carver grows.
func (l *Limiter) Pin(now int64) (total allocator.Rate) {
	if !l.Carving() {
		return 0
	}
	l.setting.Lock()
	defer l.setting.Unlock()
	l.carving.pinned = true
	return l.carving.sum(now)
}

// Unpin ends Pin where the schedule stays as it is.
func (l *Limiter) Unpin() {
	if !l.Carving() {
		return
	}
	l.setting.Lock()
	defer l.setting.Unlock()
	l.carving.pinned = false
}

// Lapsed reports whether something carved has run out by now and is still out of the
// own buckets: the same schedule, set once more, gives it back.
func (l *Limiter) Lapsed(now int64) bool {
	if !l.Carving() {
		return false
	}
	l.setting.Lock()
	defer l.setting.Unlock()
	for i := range l.carving.carves {
		for _, h := range l.carving.carves[i].profile {
			if h.Until <= now {
				return true
			}
		}
	}
	return false
}

// CarvedProfile returns what is carved in all, by instant: Until rises, Rate
// falls.
func (l *Limiter) CarvedProfile(now int64) []Hold {
	if !l.Carving() {
		return nil
	}
	l.setting.Lock()
	defer l.setting.Unlock()
	var out []Hold
	for _, t := range l.carving.instants(now, nil) {
		r := l.carving.sum(t)
		if n := len(out); n > 0 {
			out[n-1].Until = t
			if out[n-1].Rate == r {
				out = out[:n-1]
			}
		}
		if r == 0 {
			break
		}
		out = append(out, Hold{math.MaxInt64, r})
	}
	return out
}

// Cover says that until an instant schedules may be below what is carved, because
// what is missing is this node's by other means.
func (l *Limiter) Cover(until int64) {
	l.setting.Lock()
	defer l.setting.Unlock()
	l.carving.covers = max(l.carving.covers, until)
}

// Reserve keeps a rate out of the own buckets until an instant: what data planes
// may still be spending by word of a former life of this node. It starts carving.
func (l *Limiter) Reserve(now int64, rate allocator.Rate, until int64) {
	l.carving.on.Store(true)
	l.setting.Lock()
	defer l.setting.Unlock()
	c := &l.carving
	c.put(carve{-1, before, dropOver([]Hold{{until, min(max(rate, 0), MaxRate)}}, now)})
	l.reinstall(now)
}

// reinstall puts the schedule in force anew after a change of what is carved, with
// l.setting held.
func (l *Limiter) reinstall(now int64) {
	if l.carving.given == nil { // no schedule yet
		l.carving.given = clean(now, nil, l.Classes())
	}
	l.install(now, l.carving.own(now))
}

// CarveShort counts the schedules whose total was below what was carved.
func (l *Limiter) CarveShort() int64 {
	l.setting.Lock()
	defer l.setting.Unlock()
	return l.carving.short
}

// reportMax bounds what one Report counts, so that no report of a data plane can
// make the counters overflow.
const reportMax = int64(1) << 40

// Report counts demand that another data plane met: units of cost that it
// admitted and refused. Each is bounded to [0, 2^40]; an unknown class is nothing.
func (l *Limiter) Report(class int, admitted, refused int64) {
	if uint(class) >= uint(l.Classes()) {
		return
	}
	c := l.stripe(class)
	c.admitted.Add(min(max(admitted, 0), reportMax))
	c.refused.Add(min(max(refused, 0), reportMax))
}

func ordered(profile []Hold) bool {
	for i, h := range profile {
		if h.Rate < 0 || h.Rate > MaxRate || i > 0 && (h.Until <= profile[i-1].Until || h.Rate >= profile[i-1].Rate) {
			return false
		}
	}
	return len(profile) <= HoldsMax
}

func dropOver(profile []Hold, now int64) []Hold {
	return slices.DeleteFunc(profile, func(h Hold) bool { return h.Until <= now || h.Rate == 0 })
}

func (c *carving) of(class int, who string) []Hold {
	for i := range c.carves {
		if c.carves[i].class == class && c.carves[i].who == who {
			return c.carves[i].profile
		}
	}
	return nil
}

func (c *carving) put(x carve) {
	c.carves = slices.DeleteFunc(c.carves, func(y carve) bool { return y.class == x.class && y.who == x.who })
	if len(x.profile) > 0 {
		c.carves = append(c.carves, x)
	}
}

// instants returns now and every later instant at which a rate that matters
// changes, in order.
func (c *carving) instants(now int64, fresh []Hold) []int64 {
	ts := []int64{now}
	add := func(t int64) {
		if t > now && t != math.MaxInt64 {
			ts = append(ts, t)
		}
	}
	for _, h := range fresh {
		add(h.Until)
	}
	for i := range c.carves {
		for _, h := range c.carves[i].profile {
			add(h.Until)
		}
	}
	for i := range c.given {
		add(c.given[i].Until)
	}
	slices.SortFunc(ts, cmp.Compare[int64])
	return slices.Compact(ts)
}

// sum is what is carved in all at t.
func (c *carving) sum(t int64) (total allocator.Rate) {
	for i := range c.carves {
		total += at(c.carves[i].profile, t)
	}
	return total
}

// stepAt returns the step in force at t; nil where there is none.
func (c *carving) stepAt(t int64) *Step {
	for i := range c.given {
		if t < c.given[i].Until {
			return &c.given[i]
		}
	}
	return nil
}

// room is what a class can have carved by who at t, what others hold kept.
func (c *carving) room(t int64, class int, who string) allocator.Rate {
	st := c.stepAt(t)
	if st == nil {
		return 0
	}
	in, total := st.Classes[class], st.Total
	if st.Carvable != nil {
		in = st.Carvable[class]
	}
	for i := range c.carves {
		x := &c.carves[i]
		if x.class == class && x.who == who {
			continue
		}
		r := at(x.profile, t)
		total -= r
		if x.class == class {
			in -= r
		}
	}
	return max(0, min(in, total))
}

// follow notes the schedule and returns what of it is the limiter's own.
func (c *carving) follow(now int64, steps []Step) []Step {
	c.given, c.pinned = steps, false
	for i := range c.carves {
		c.carves[i].profile = dropOver(c.carves[i].profile, now)
	}
	c.carves = slices.DeleteFunc(c.carves, func(x carve) bool { return len(x.profile) == 0 })
	if len(c.carves) == 0 {
		return steps
	}
	from, short := now, false
	for i := range steps {
		short = short || c.sum(from)-at(c.of(-1, before), from) > steps[i].Total
		from = steps[i].Until
	}
	if short && now >= c.covers {
		c.short++
	}
	return c.own(now)
}

// own is the schedule without what is carved at now, for all time to come: what
// runs out later comes back with the next schedule or Carve, so that no rate
// rises by the clock alone. Where a class has more carved out than it has, the
// others give it, the last class first.
func (c *carving) own(now int64) []Step {
	out := make([]Step, 0, len(c.given))
	for i := range c.given {
		st := &c.given[i]
		if st.Until <= now && i+1 < len(c.given) {
			continue
		}
		own := Step{Until: st.Until, Total: st.Total, Classes: slices.Clone(st.Classes)}
		var lack allocator.Rate
		for j := range c.carves {
			x := &c.carves[j]
			r := at(x.profile, now)
			own.Total -= r
			if x.class < 0 {
				lack += r
				continue
			}
			own.Classes[x.class] -= r
		}
		for k := range own.Classes {
			lack += max(0, -own.Classes[k])
			own.Classes[k] = max(0, own.Classes[k])
		}
		for k := len(own.Classes) - 1; k >= 0; k-- {
			x := min(lack, own.Classes[k])
			own.Classes[k] -= x
			lack -= x
		}
		own.Total = max(0, own.Total)
		out = append(out, own)
	}
	return out
}

// inheritCarves takes over what is carved out of a limiter that was retired; from
// is as for Succeed.
func (l *Limiter) inheritCarves(before *Limiter, from []int) {
	before.setting.Lock()
	defer before.setting.Unlock()
	l.carving.on.Store(before.carving.on.Load())
	l.carving.short, l.carving.covers = before.carving.short, before.carving.covers
	for _, x := range before.carving.carves {
		if x.class >= 0 {
			x.class = slices.Index(from, x.class)
		}
		l.carving.carves = append(l.carving.carves, x)
	}
}

// cleanCarvable copies rates into the form that room relies on; nil stays nil.
func cleanCarvable(rates []allocator.Rate, classes int) []allocator.Rate {
	if rates == nil {
		return nil
	}
	out := make([]allocator.Rate, classes)
	for k := range min(classes, len(rates)) {
		out[k] = min(max(rates[k], 0), MaxRate)
	}
	return out
}

// Burst returns the time whose rate every bucket holds at most.
func (l *Limiter) Burst() time.Duration { return l.shape.burst }

// Shadow reports whether the limiter lets everything pass.
func (l *Limiter) Shadow() bool { return l.shadow }
