package gossip

import "math/bits"

const (
	rowWindow  = 128 // rows looked back at
	rowMin     = 40  // fewer expected rows give no estimate
	pingWindow = 32
	pingMin    = 16
	ppm        = 1_000_000
	lossyFrom  = 50_000 // 5 %, conservation.md "Target and settlement"
	lossyUntil = 30_000 // hysteresis, so that a borderline link does not flap
)

// rowLoss estimates how many published rows of one peer never arrive directly,
// from the counter in their frames. A row that comes late fills its gap.
// The zero value is ready.
type rowLoss struct {
	head  uint16
	width int       // how many rows, up to head, are judged
	seen  [2]uint64 // bit i of the 128: row head-i has arrived
}

// add notes the arrival of the row with this counter. A jump of a window or
// more means a restart of the peer or a long cut, and starts anew.
func (l *rowLoss) add(counter uint16) {
	step := int(int16(counter - l.head))
	if l.width == 0 || step >= rowWindow || step <= -rowWindow {
		*l = rowLoss{head: counter, width: 1, seen: [2]uint64{1, 0}}
		return
	}
	if step <= 0 {
		if back := uint(-step); int(back) < l.width {
			l.seen[back/64] |= 1 << (back % 64)
		}
		return
	}
	l.shift(uint(step))
	l.seen[0] |= 1
	l.head = counter
	l.width = min(l.width+step, rowWindow)
}

func (l *rowLoss) shift(n uint) {
	if n >= 64 {
		l.seen[1], l.seen[0] = l.seen[0]<<(n-64), 0
		return
	}
	l.seen[1] = l.seen[1]<<n | l.seen[0]>>(64-n)
	l.seen[0] <<= n
}

// estimate is the share lost in parts per million.
func (l *rowLoss) estimate() (lost int, ok bool) {
	if l.width < rowMin {
		return 0, false
	}
	got := bits.OnesCount64(l.seen[0]) + bits.OnesCount64(l.seen[1])
	return (l.width - got) * ppm / l.width, true
}

// pingLoss counts unanswered pings among the last pingWindow. The zero value
// is ready.
type pingLoss struct {
	failed uint32
	width  int
}

func (l *pingLoss) add(ok bool) {
	l.failed <<= 1
	if !ok {
		l.failed |= 1
	}
	l.width = min(l.width+1, pingWindow)
}

// streak is how many of the latest pings in a row went unanswered.
func (l *pingLoss) streak() int {
	return min(bits.TrailingZeros32(^l.failed), l.width)
}

// estimate is the share lost one way, in parts per million: a ping is lost on
// either of two ways, so half of those unanswered.
func (l *pingLoss) estimate() (lost int) {
	if l.width < pingMin {
		return 0
	}
	return bits.OnesCount32(l.failed) * ppm / l.width / 2
}

// lossy applies the threshold with hysteresis to both estimates.
func lossy(was bool, rows *rowLoss, pings *pingLoss) (lost int, is bool) {
	r, _ := rows.estimate()
	p := pings.estimate()
	lost = max(r, p)
	if was {
		return lost, lost >= lossyUntil
	}
	return lost, lost >= lossyFrom
}
