package ledger

import (
	"errors"
	"math"
)

// IncarnationRandomBits is how much of an incarnation is random: together with
// the millisecond, enough that no two lives of one name agree (A3, trap 2).
const IncarnationRandomBits = 21

// NewIncarnation makes the incarnation of a life that starts at wall-clock time
// bootMillis (ms since 1970, up to the year 2109): the time in the high bits, so
// that lives rise in order, and 21 bits of random. Uniqueness is needed for
// safety; order only for liveness, so a clock that was set back does no harm.
func NewIncarnation(bootMillis uint64, random uint32) uint64 {
	const timeBits = 63 - IncarnationRandomBits
	t := bootMillis & (1<<timeBits - 1)
	return max(1, t<<IncarnationRandomBits|uint64(random)>>(32-IncarnationRandomBits))
}

// IncarnationAbove is NewIncarnation raised above floor, the highest incarnation
// known of the name: for a restart after the clock was set back, or after the
// own name was seen higher. It fails only when floor leaves no room.
func IncarnationAbove(floor, bootMillis uint64, random uint32) (uint64, error) {
	if inc := NewIncarnation(bootMillis, random); inc > floor {
		return inc, nil
	}
	step := 1 + uint64(random)>>(32-IncarnationRandomBits)
	if floor > MaxIncarnation-step {
		return 0, errors.New("incarnations are used up")
	}
	return floor + step, nil
}

// NextEvent returns the lease-clock reading at which Control next has something
// to do if no row arrives: the end of the quarantine, of a loan (the own part may
// rise) or of the wait for a forced member; math.MaxInt64 if nothing is due.
// The result is after now.
func (l *Ledger) NextEvent(now int64) int64 {
	next := int64(math.MaxInt64)
	due := func(at int64) {
		if at > now {
			next = min(next, at)
		}
	}
	if l.superseded {
		return next
	}
	if l.quarantine {
		due(l.quarantineEnd())
	}
	if !l.acked {
		due(l.ackFrom)
	}
	for _, b := range l.books {
		b.outstanding(now)
		due(b.outUntil)
	}
	if len(l.cur.Forced) > 0 && l.act != l.cur.ID {
		due(l.forceEnd())
	}
	return next
}
