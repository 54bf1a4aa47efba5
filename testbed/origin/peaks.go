package origin

import "time"

// peaks finds the most arrivals in any closed window of each length, phase by
// phase; a window belongs to the phase of the arrival that ends it. Arrivals come
// in order of time. Memory is one ring of the arrivals in the longest window, at
// most ringMax; older ones than fit leave early and are counted as forgotten,
// after which a peak may be too low.
type peaks struct {
	windows   []int64 // ns, above 0
	ring      []int64 // instants; its length is a power of two
	next      uint64  // number of arrivals so far
	tails     []uint64
	peak      [][]int // [phase][window]
	forgotten uint64
}

// ringMax arrivals in the longest window is 100,000/s over 10 s.
const ringMax = 1 << 20

func newPeaks(windows []time.Duration) *peaks {
	p := &peaks{ring: make([]int64, 1<<10), tails: make([]uint64, len(windows))}
	for _, w := range windows {
		p.windows = append(p.windows, int64(w))
	}
	return p
}

// add counts an arrival at the instant at, in ns, in a phase.
func (p *peaks) add(at int64, phase int) {
	p.makeRoom()
	p.ring[p.next&p.mask()] = at
	p.next++
	for len(p.peak) <= phase {
		p.peak = append(p.peak, make([]int, len(p.windows)))
	}
	for i, w := range p.windows {
		for p.ring[p.tails[i]&p.mask()] < at-w {
			p.tails[i]++
		}
		p.peak[phase][i] = max(p.peak[phase][i], int(p.next-p.tails[i]))
	}
}

func (p *peaks) mask() uint64 { return uint64(len(p.ring) - 1) }

// makeRoom doubles the ring when an arrival still inside a window would be
// overwritten, up to ringMax.
func (p *peaks) makeRoom() {
	oldest := p.next
	for _, t := range p.tails {
		oldest = min(oldest, t)
	}
	if p.next-oldest < uint64(len(p.ring)) {
		return
	}
	if len(p.ring) < ringMax {
		grown := make([]int64, 2*len(p.ring))
		for i := oldest; i < p.next; i++ {
			grown[i&uint64(len(grown)-1)] = p.ring[i&p.mask()]
		}
		p.ring = grown
		return
	}
	p.forgotten++
	for i := range p.tails {
		p.tails[i] = max(p.tails[i], oldest+1)
	}
}
