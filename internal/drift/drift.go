// Package drift proves, from the rows that nodes exchange anyway, that a peer's
// lease clock runs at another rate than the own one by more than leases allow
// for.
//
// # Model
//
// A row carries its publisher's clock reading C and says which of our rows it
// had heard. That row left here at reading P of our clock, and the peer's row
// arrived here at reading R. By causality the peer read C at an instant between
// P and R, however long anything was delayed, relayed or lost. Two such
// observations bound the rate of the peer's clock in terms of ours:
//
//	(C2-C1) / (R2-P1)  <=  rate  <=  (C2-C1) / (P2-R1)
//
// Leases are safe while the rate is within 1/(1+eps) to 1+eps (conservation.md
// A2, trap 13). A lower bound above that, or an upper bound below, is proof: a
// [Detector] raises no false alarm under any delay. How long a proof takes:
// about (round trip + the peer's wait for its next row) / (deviation - eps); at
// 282 ms and a tick of 200 ms, 2 % against an eps of 1 % is proven within 50 s.
//
// A clock that stood still for a while, as in a virtual machine that was paused
// behind its back, shows in the same way, with the first row after it.
//
// # Units
//
// Own readings are nanoseconds of the lease clock. The peer's are milliseconds
// modulo 2^32, as rows carry them. Deviations are parts per million: 10,000
// means that the peer's clock gains 10 ms in each of our seconds.
//
// # Bounds and concurrency
//
// A peer costs half a kilobyte and a row of it 32 multiplications, whatever it
// says. Decisions use integers only. A Detector is not safe for concurrent use.
package drift

import (
	"math"
	"time"
)

const (
	// slots of slotSpan each are remembered of a peer: what happened longer ago
	// than all of them neither refines bounds nor upholds an alarm.
	slots    = 8
	slotSpan = int64(75 * time.Second)
	// slack is by how much the difference of two readings in rows may be wrong
	// without any drift: 2 ms for rounding, as a reading is rounded down and a
	// zero is told as one less; 1 ms each for what the two lease clocks learn of
	// a suspend too late.
	slack = 4_000_000
	// hold is how long an alarm outlives the last proof, so that it does not
	// flap.
	hold = int64(time.Minute)
	// clockMax bounds differences of foreign readings, above all that could be
	// told within the slots, so that no product wraps.
	clockMax = 1 << 42
	million  = 1_000_000
)

// Verdict says what is proven of a peer's clock.
type Verdict uint8

// The verdicts.
const (
	Within Verdict = iota // nothing is proven against it
	Fast                  // it gains more than eps on the own clock
	Slow                  // it loses more than eps
)

// String returns a stable word for logs and metric labels.
func (v Verdict) String() string {
	switch v {
	case Fast:
		return "fast"
	case Slow:
		return "slow"
	default:
		return "within"
	}
}

// Observation is one row of a peer that told its clock and had heard a row of
// this node.
type Observation struct {
	Peer  int    // small number, as of the ledger's directory
	Inc   uint64 // the peer's incarnation: a new one may have another clock
	Clock uint32 // as in the row: milliseconds modulo 2^32, 0 for not told
	// Sent is the own reading before the own row that it had heard could leave,
	// Merged the own reading when the peer's row had arrived.
	Sent, Merged int64
}

// Bounds is what is known of a peer's rate.
type Bounds struct {
	// LowPPM and HighPPM bound how much the peer's clock gained on the own one,
	// on average. NoLow and NoHigh mean that nothing is known yet.
	LowPPM, HighPPM int64
	Verdict         Verdict
	// Since is the own reading at the first proof of the present alarm.
	Since int64
}

// Bounds that say nothing.
const (
	NoLow  = math.MinInt64
	NoHigh = math.MaxInt64
)

// Detector watches the clocks of all peers.
type Detector struct {
	epsPPM int64
	peers  []peer
}

// New returns a detector for leases that allow for eps, in parts per million (0
// to 1,000,000).
func New(epsPPM int64) *Detector { return &Detector{epsPPM: min(max(epsPPM, 0), million)} }

// peer is what is remembered of one.
type peer struct {
	inc    uint64
	last   uint32 // its newest reading as told
	clock  int64  // the same in nanoseconds, without the modulus
	newest int64  // own reading when it arrived
	final  slot   // the newest observation alone
	slots  [slots]slot
	used   int // slots in use, oldest first

	verdict Verdict
	since   int64 // first proof of the alarm
	proven  int64 // last
}

// slot condenses the observations of one stretch of time to the two that bound
// best at a rate near 1. All others of the stretch would say less.
type slot struct {
	start int64
	// after: the peer read clock at or after the own instant at; the one with
	// the least clock-at. before: at or before it; the one with the greatest.
	after, before point
}

type point struct{ at, clock int64 }

func (p point) lead() int64 { return p.clock - p.at }

// Observe takes an observation and reports whether the verdict on the peer
// changed. Observations of one peer come in the order of its rows; one that is
// impossible or tells no clock is ignored.
func (d *Detector) Observe(o Observation) (changed bool) {
	if o.Clock == 0 || o.Peer < 0 || o.Sent > o.Merged || o.Merged-o.Sent > slots*slotSpan {
		return false
	}
	for o.Peer >= len(d.peers) {
		d.peers = append(d.peers, peer{})
	}
	p := &d.peers[o.Peer]
	was := p.verdictAt(o.Merged)
	if p.inc != o.Inc || o.Merged-p.newest > slots*slotSpan {
		*p = peer{inc: o.Inc, last: o.Clock}
	}
	p.clock += int64(int32(o.Clock-p.last)) * million
	p.last, p.newest = o.Clock, o.Merged
	after, before := point{o.Sent, p.clock}, point{o.Merged, p.clock}
	d.judge(p, o.Merged, after, before)
	p.keep(o.Merged, after, before)
	p.final = slot{o.Merged, after, before}
	return p.verdictAt(o.Merged) != was
}

// judge compares a new observation with the ones kept.
func (d *Detector) judge(p *peer, now int64, after, before point) {
	for i := range p.used {
		s := &p.slots[i]
		v := Within
		if gained, span := least(s.after, before); gained*million > span*d.epsPPM {
			v = Fast
		}
		if gained, span := most(s.before, after); span > 0 && (gained+span)*(million+d.epsPPM) < span*million {
			v = Slow
		}
		if v == Within {
			continue
		}
		if p.verdictAt(now) == Within {
			p.since = now
		}
		p.verdict, p.proven = v, now
	}
}

// least returns the least that the peer's clock gained on the own one, over the
// longest own time, between an instant at or after from and one at or before to.
func least(from, to point) (gained, span int64) {
	span = to.at - from.at
	return clamp(to.clock-from.clock-slack) - span, span
}

// most returns the most that it gained, over the shortest own time, between an
// instant at or before from and one at or after to. Without a positive span it
// says nothing.
func most(from, to point) (gained, span int64) {
	span = to.at - from.at
	return clamp(to.clock-from.clock+slack) - span, span
}

func clamp(x int64) int64 { return min(max(x, -clockMax), clockMax) }

// keep puts an observation into the newest slot, or into a new one.
func (p *peer) keep(now int64, after, before point) {
	if p.used > 0 && now-p.slots[p.used-1].start < slotSpan {
		s := &p.slots[p.used-1]
		if after.lead() < s.after.lead() {
			s.after = after
		}
		if before.lead() > s.before.lead() {
			s.before = before
		}
		return
	}
	old := 0
	for old < p.used && (p.used-old == slots || now-p.slots[old].start > slots*slotSpan) {
		old++
	}
	p.used = copy(p.slots[:], p.slots[old:p.used])
	p.slots[p.used] = slot{now, after, before}
	p.used++
}

func (p *peer) verdictAt(now int64) Verdict {
	if now-p.proven > hold {
		return Within
	}
	return p.verdict
}

// Verdict returns what stands against the peer at own reading now.
func (d *Detector) Verdict(now int64, id int) Verdict {
	if id < 0 || id >= len(d.peers) {
		return Within
	}
	return d.peers[id].verdictAt(now)
}

// Bounds returns the narrowest bounds known of the peer's rate over the last ten
// minutes, and the verdict. A rate that changed meanwhile may make the low bound
// exceed the high one: each is true of a different stretch.
func (d *Detector) Bounds(now int64, id int) Bounds {
	b := Bounds{LowPPM: NoLow, HighPPM: NoHigh}
	if id < 0 || id >= len(d.peers) {
		return b
	}
	p := &d.peers[id]
	if b.Verdict = p.verdictAt(now); b.Verdict != Within {
		b.Since = p.since
	}
	for i := range p.used {
		for j := i; j <= p.used; j++ {
			from, to := &p.slots[i], &p.final
			if j < p.used {
				to = &p.slots[j]
			}
			if gained, span := least(from.after, to.before); span > 0 {
				b.LowPPM = max(b.LowPPM, floor(gained*million, span))
			}
			if gained, span := most(from.before, to.after); span > 0 {
				b.HighPPM = min(b.HighPPM, -floor(-gained*million, span))
			}
		}
	}
	return b
}

// floor divides by a positive number, rounding down.
func floor(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
