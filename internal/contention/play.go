package contention

import (
	"fmt"
	"math/bits"
	"time"

	"subak/allocator"
	"subak/chaos"
	"subak/internal/config"
)

// maxWeight keeps sums of weighted parts far from the end of an int64.
const maxWeight = 1_000_000

// What chance decides: each has its own stream of it.
const (
	streamMix = iota
	streamHigh
	streamLegit
	streamFlood
	streamBurst
	streamRotate
)

// draw is the chance of one stream in one cycle at one place.
func draw(seed uint64, stream, cycle, place int) chaos.Rand {
	h := chaos.Hash(seed)
	h.Add(uint64(stream))
	h.Add(uint64(cycle))
	h.Add(uint64(place))
	return chaos.NewRand(uint64(h))
}

// one is a factor of 1: factors are in 1/one.
const one = 1 << 20

// normal is a nearly normal number of mean 0 and deviation one (twelve uniform
// ones added up): at most six deviations from 0.
func normal(seed uint64, stream, cycle, place int) int64 {
	r := draw(seed, stream, cycle, place)
	sum := int64(-6 * one)
	for range 12 {
		sum += r.Int64N(one)
	}
	return sum
}

// times is x num / den, rounded down; none is negative, and the result fits.
func times(x, num, den int64) int64 {
	hi, lo := bits.Mul64(uint64(x), uint64(num))
	q, _ := bits.Div64(hi, lo, uint64(den))
	return int64(q)
}

// spread is how a whole is split: part[i] of sum.
type spread struct {
	part []int64
	sum  int64
}

func newSpread(part []int64) spread {
	s := spread{part: part}
	for _, p := range part {
		s.sum += p
	}
	return s
}

// of is place i's part of the whole.
func (s *spread) of(whole allocator.Rate, i int) int64 {
	if s.part[i] == 0 {
		return 0
	}
	return times(int64(whole), s.part[i], s.sum)
}

// state is one cycle: what it asks for, and what the next one depends on.
type state struct {
	cycle              int
	high, legit, flood []allocator.Rate
	drift              [Classes][]int64 // noise that lasts, in 1/one
	burst              []bool           // at each place
	at                 int              // where the rotating flood is
}

// rewind goes back to before the first cycle.
func (t *Trace) rewind() {
	n := len(t.places)
	t.now = state{
		cycle: -1, high: make([]allocator.Rate, n), legit: make([]allocator.Rate, n), flood: make([]allocator.Rate, n),
		drift: [Classes][]int64{make([]int64, n), make([]int64, n)}, burst: make([]bool, n), at: -1,
	}
}

// play goes to cycle n.
func (t *Trace) play(n int) {
	if n < 0 {
		panic(fmt.Sprintf("contention: cycle %d", n))
	}
	if n < t.now.cycle {
		t.rewind()
	}
	for t.now.cycle < n {
		t.next()
	}
}

// next is the following cycle.
func (t *Trace) next() {
	s := &t.now
	s.cycle++
	t.wander()
	high := t.part(allocator.Rate(times(int64(t.limit), ReserveHighPPM, whole)), t.scenario.High.Demand)
	flood := t.flood()
	for i := range t.places {
		s.high[i] = allocator.Rate(times(t.mix.of(high, i), t.highShape(i), one))
		legit := max(0, one+s.drift[Low][i])
		if t.scenario.Sun != nil {
			legit = times(legit, t.sun(i), one)
		}
		s.legit[i] = allocator.Rate(times(t.mix.of(t.part(t.limit, t.scenario.Legit), i), legit, one))
		fresh := max(0, one+normal(t.seed, streamFlood, s.cycle, i)/20)
		s.flood[i] = allocator.Rate(times(t.floodAt(flood, i), fresh, one))
	}
}

// whole is 100 % as a config.Percent.
const whole = int64(config.Whole)

// part is so much of a rate.
func (t *Trace) part(of allocator.Rate, p config.Percent) allocator.Rate {
	return allocator.Rate(times(int64(of), int64(p), whole))
}

// wander moves on what depends on the cycle before.
func (t *Trace) wander() {
	s := &t.now
	for k, stream := range [Classes]int{streamHigh, streamLegit} {
		for i := range t.places {
			e := normal(t.seed, stream, s.cycle, i) / 10
			if s.cycle > 0 {
				e = (700*s.drift[k][i] + 714*e) / 1000 // 0.7^2 + 0.714^2 = 1
			}
			s.drift[k][i] = e
		}
	}
	if x := t.scenario.Bursts; x != nil {
		t.burst(x)
	}
	if s.cycle%int(t.scenario.Flood.Stay) == 0 {
		r := draw(t.seed, streamRotate, s.cycle, 0)
		if s.at < 0 {
			s.at = r.IntN(len(t.places))
		} else {
			s.at = (s.at + 1 + r.IntN(len(t.places)-1)) % len(t.places)
		}
	}
}

// burst lets bursts begin and end.
func (t *Trace) burst(x *Bursts) {
	s := &t.now
	begin, end := int(x.Begin/percent), int(x.End/percent)
	begins := begin
	if s.cycle == 0 {
		begins = 100 * begin / (begin + end) // as many as are in a burst in the long run
	}
	for i := range t.places {
		r := draw(t.seed, streamBurst, s.cycle, i)
		if s.burst[i] {
			s.burst[i] = !r.Chance(end)
		} else {
			s.burst[i] = r.Chance(begins)
		}
	}
}

// flood is what all places get of it now, but for the noise.
func (t *Trace) flood() allocator.Rate {
	if x := t.scenario.Pulse; x != nil && int64(t.now.cycle)%x.Every >= x.Stays {
		return t.part(t.limit, x.Low)
	}
	return t.part(t.limit, t.scenario.Flood.Part)
}

// floodAt is place i's part of the flood.
func (t *Trace) floodAt(flood allocator.Rate, i int) int64 {
	switch t.scenario.Flood.At {
	case everywhere:
		return t.weights.of(flood, i)
	case rotating:
		if i != t.now.at {
			return 0
		}
		return int64(flood)
	}
	return t.homes.of(flood, i)
}

// highShape is what the high class asks for at place i now, as a factor of its
// mean there.
func (t *Trace) highShape(i int) int64 {
	s, x := &t.now, t.scenario
	f := max(0, one+s.drift[High][i])
	hot := t.home[i]
	if x.Flood.At == rotating {
		hot = i == s.at
	}
	if hot {
		f = times(f, int64(x.High.Hot), whole)
	}
	if x.Crowd != nil && t.crowded[i] {
		f = times(f, whole+x.Crowd.now(int64(s.cycle)*t.hasten), whole)
	}
	if x.Bursts != nil && s.burst[i] {
		f = times(f, int64(x.Bursts.To), whole)
	}
	if x.Sun != nil {
		f = times(f, t.sun(i), one)
	}
	return f
}

// now is what the crowd adds in a cycle, as a config.Percent.
func (x *Crowd) now(cycle int64) int64 {
	at, more := cycle%x.Every-x.Begins, int64(x.More)
	switch {
	case at < 0:
		return 0
	case at < x.Rises:
		return at * more / x.Rises
	case at < x.Rises+x.Stays:
		return more
	case at < x.Rises+x.Stays+x.Falls:
		return (x.Rises + x.Stays + x.Falls - at) * more / x.Falls
	}
	return 0
}

// sun is what the time of day makes of place i's demand now, as a factor: a
// sine about one, greatest at 18 h.
func (t *Trace) sun(i int) int64 {
	x := t.scenario.Sun
	minute := (int64(t.now.cycle)*t.hasten+x.Begins)*minutes/x.Day + int64(t.places[i].Offset/time.Minute)
	return one + sine(minute-minutes/2)*int64(x.Swing)/whole
}

// minutes of a day.
const minutes = 1440

// sine of an angle in minutes of a day, in 1/one, by Bhaskara's formula: it is off
// by less than 0.0017.
func sine(angle int64) int64 {
	const half = minutes / 2
	angle = (angle%minutes + minutes) % minutes
	sign := int64(1)
	if angle >= half {
		angle, sign = angle-half, -1
	}
	p := angle * (half - angle)
	return sign * 16 * p * one / (5*half*half - 4*p)
}
