//go:build linux

package wan

import (
	"math/bits"
	"time"
)

const (
	million  = 1_000_000
	second   = int64(time.Second)
	delayMax = time.Hour // of Delay and of Jitter
	holdMin  = int64(time.Millisecond)
)

// within makes every field of a rule one that plan can calculate with.
func (r Rule) within() Rule {
	r.Delay = min(max(r.Delay, 0), delayMax)
	r.Jitter = min(max(r.Jitter, 0), delayMax)
	for _, chance := range []*int64{&r.Loss, &r.Duplicate, &r.Reorder} {
		*chance = min(max(*chance, 0), million)
	}
	r.Rate, r.Queue = max(r.Rate, 0), max(r.Queue, 0)
	return r
}

// fate is what becomes of a packet when it enters a link.
type fate uint8

const (
	passed fate = iota
	lost
	blocked
	queueFull
)

// plan is the fate of one packet: if it passed, when it is due (ns on the clock
// of now) and how many times.
type plan struct {
	fate   fate
	due    int64
	copies int
	held   bool // to be overtaken
}

// link is one ordered pair of hosts: what plan remembers from packet to packet.
type link struct {
	key    uint64 // of its chances
	number uint64 // of packets that entered, whatever their fate
	rule   Rule   // last in force; last and free belong to it
	last   int64  // when the latest packet in order is due
	free   int64  // when the paced wire has sent all it was given
}

// newLink is a fresh link. Its chances depend on the seed and the pair only.
func newLink(seed uint64, src, dst int) link {
	return link{key: mix(mix(seed) + uint64(src)<<32 + uint64(dst))}
}

// plan decides about the next packet of the link, of so many bytes, that enters
// at now. The rule must be within bounds. Chances come from the key and the
// number of the packet alone: neither time nor earlier rules nor what happened
// to other packets change them.
func (l *link) plan(r *Rule, now int64, length int) plan {
	number := l.number
	l.number++
	if l.rule != *r {
		// A new rule is a new wire: nothing waits for what the old one carries.
		l.rule, l.last, l.free = *r, 0, 0
	}
	if r.Block {
		return plan{fate: blocked}
	}
	if chance(l.draw(number, 0), r.Loss) {
		return plan{fate: lost}
	}
	sent, ok := l.pace(r, now, length)
	if !ok {
		return plan{fate: queueFull}
	}
	p := plan{copies: 1, due: max(now, sent+int64(r.Delay)+spread(l.draw(number, 1), int64(r.Jitter)))}
	p.due = max(p.due, l.last)
	if chance(l.draw(number, 2), r.Reorder) {
		p.held = true
		p.due += max(int64(r.Delay)/2, holdMin)
	} else {
		l.last = p.due
	}
	if chance(l.draw(number, 3), r.Duplicate) {
		p.copies = 2
	}
	return p
}

// pace is when the wire has sent a packet that enters at now; false when too
// many bytes wait already.
func (l *link) pace(r *Rule, now int64, length int) (sent int64, ok bool) {
	if r.Rate == 0 {
		return now, true
	}
	start := max(now, l.free)
	if r.Queue > 0 && scale(start-now, r.Rate, second)+int64(length) > r.Queue {
		return 0, false
	}
	l.free = start + int64(length)*second/r.Rate
	return l.free, true
}

// draw is the which-th of four independent uniform values of one packet:
// SplitMix64, of which every value can be had without those before.
// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators".
func (l *link) draw(number uint64, which uint64) uint64 {
	return mix(l.key + (4*number+which)*0x9e3779b97f4a7c15)
}

// mix is the output function of SplitMix64.
func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// chance is true for ppm of a million draws.
func chance(draw uint64, ppm int64) bool {
	part, _ := bits.Mul64(draw, million)
	return int64(part) < ppm
}

// spread turns a draw into one of -width..+width.
func spread(draw uint64, width int64) int64 {
	part, _ := bits.Mul64(draw, uint64(2*width+1))
	return int64(part) - width
}

// scale is a*b/c rounded down, for a, b >= 0 and c > 0; too large is the largest.
func scale(a, b, c int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi >= uint64(c) {
		return 1<<62 - 1
	}
	q, _ := bits.Div64(hi, lo, uint64(c))
	return int64(min(q, 1<<62-1))
}
