package enforce

// How leases begin and end: the slow side of stripe.go.

const (
	// leaseShare: all stripes of a class together hold at most this part of its
	// bucket. Lowering it makes refills rarer and the bucket smaller.
	leaseShare = 64
	// leaseSpare: leases begin while the bucket holds at least this part of what it
	// can. Raising it has them called in, and begun again, more often.
	leaseSpare = 8
	// leaseMin is the smallest lease worth having, in units; a lease must be good
	// for leaseCosts decisions.
	leaseMin, leaseMax, leaseCosts = 64, 1 << 30, 8

	// A core is busy with a class while it admits busyRun decisions within busyRun
	// x busyEach nanoseconds. Then words that all cores write cost more than
	// a bucket that is smaller by 1/leaseShare.
	busyRun, busyEach = 1024, 1000
)

// wide returns the units that each stripe of class k may hold, given what the
// caps of a segment without leases are; 0 where the bucket is too small.
func (sh shape) wide(lines []line, k int) int64 {
	most := min(lines[1+k].cap, lines[0].cap/uint64(len(lines)-1)) / uint64(unit)
	size := int64(most / leaseShare / uint64(sh.cores))
	if sh.cores == 1 || size < leaseMin || most/4 < uint64(sh.largest) {
		return 0
	}
	return min(size, leaseMax)
}

// refill charges class and budget cost and a whole lease for the stripe, and says
// whether it did. It leaves a part of both buckets alone: below that tokens are
// too scarce to lie in stripes.
func (c *stripe) refill(l *Limiter, s *segment, now int64, class int, cost int64) bool {
	ln, all := &s.lines[1+class], &s.lines[0]
	if ln.lease < leaseCosts*cost || now < s.t0 || !c.filling.CompareAndSwap(false, true) {
		return false
	}
	defer c.filling.Store(false)
	if c.seg.Load() == s && now < c.from.Load() {
		return false // an old reading; what is in the lease was charged later
	}
	left, of := c.end()
	if of != s { // it ended with its segment
		l.lost.Add(left)
		left = 0
	}
	need := uint64((ln.lease - left + cost) * unit)
	ok := take(&l.cells[1+class].used, ln, now-s.t0, need, ln.spare())
	if ok && !take(&l.cells[0].used, all, now-s.t0, need, all.spare()) {
		l.untake(1+class, need)
		ok = false
	}
	if ok {
		left = ln.lease
	}
	if left > 0 {
		c.begin(s, now, left)
	}
	if l.seg.Load() == s {
		return ok
	}
	// The share changed in between. Who changed it may have been here before the
	// lease began, so it ends here. What is left of it is lost: to give it back now
	// could be to give it to another share.
	left, _ = c.end()
	l.lost.Add(left)
	if ok {
		l.giveBack(class, cost)
	}
	return false
}

// giveBack returns units to a class and the budget.
func (l *Limiter) giveBack(class int, units int64) {
	l.cells[1+class].used.Add(-uint64(units * unit))
	l.untake(0, uint64(units*unit))
}

// spare returns what a bucket must hold for leases to begin.
func (ln *line) spare() uint64 { return ln.cap / leaseSpare }

// busy looks, once in busyRun decisions of a core that had no lease, whether
// leases are worth while for the class, and if so lets them begin.
func (c *stripe) busy(l *Limiter, s *segment, now int64, class int, cost int64) {
	n := c.admitted.Load()
	if n-c.mark.Load() < busyRun*cost {
		return
	}
	c.mark.Store(n)
	ln, dt := &s.lines[1+class], max(now-s.t0, 0)
	if now-c.markedAt.Swap(now) > busyRun*busyEach || ln.wide < leaseCosts*cost ||
		l.tokens(s, 1+class, dt) < int64(ln.spare()) || l.tokens(s, 0, dt) < int64(s.lines[0].spare()) {
		return
	}
	if l.setting.TryLock() { // else the share is about to change
		l.relet(now, 1<<class, 0)
		l.setting.Unlock()
	}
}

// recall calls in the leases of a set of classes of s, and says whether it is
// worth looking again. Where the share is about to change it is not: who holds the
// lock ends them all.
func (l *Limiter) recall(now int64, s *segment, classes uint64) bool {
	return s.leased&classes != 0 && l.callIn(now, s, classes)
}

func (l *Limiter) callIn(now int64, s *segment, classes uint64) bool {
	if !l.setting.TryLock() {
		return false
	}
	defer l.setting.Unlock()
	if l.seg.Load() == s {
		l.relet(now, 0, classes)
	}
	return true
}

// relet lets leases begin for the classes in more and end for those in less.
// l.setting is held.
func (l *Limiter) relet(now int64, more, less uint64) {
	var was uint64
	if s := l.seg.Load(); now < s.until {
		was = s.leased
	}
	s := l.unlet(now)
	if set := (was | more) &^ less; set != 0 {
		l.seg.CompareAndSwap(s, s.let(set, l.cores))
		l.changes.Add(1)
	}
}

// unlet ends every lease, gives back what is left of those that are good, and
// returns the segment in force at now. l.setting is held.
//
// Caps stay low until everything is back, so that at no instant there is more than
// without leases. Should the segment's end come first, the next one is in force on
// time all the same, and what is given back late is given back like a Refund.
func (l *Limiter) unlet(now int64) *segment {
	for {
		s := l.advance(now)
		if s.leased == 0 {
			return s
		}
		ending := s.ending()
		if !l.seg.CompareAndSwap(s, ending) {
			continue
		}
		for i := range l.stripes {
			left, of := l.stripes[i].end()
			switch {
			case left == 0:
			case of == s:
				l.giveBack(i&(1<<l.shift-1), left)
			default: // it ended with its segment, whose tokens are clamped
				l.lost.Add(left)
			}
		}
		again := *s.exact // not s.exact itself: who has seen that must not take it for unchanged
		l.seg.CompareAndSwap(ending, &again)
		l.changes.Add(1)
	}
}

// let returns a segment like s, which has no leases, in which the stripes of a set
// of classes have.
func (s *segment) let(set uint64, cores int) *segment {
	n := *s
	n.exact, n.lines = s, append([]line(nil), s.lines...)
	for k := range len(n.lines) - 1 {
		ln := &n.lines[1+k]
		if set>>k&1 == 0 || ln.wide == 0 {
			continue
		}
		held := uint64(ln.wide*unit) * uint64(cores)
		ln.lease = ln.wide
		ln.cap -= held
		n.lines[0].cap -= held
		n.leased |= 1 << k
	}
	return &n
}

// ending returns a segment like s without leases, but with its lower caps.
func (s *segment) ending() *segment {
	n := *s
	n.exact, n.leased, n.lines = nil, 0, append([]line(nil), s.lines...)
	for b := range n.lines {
		n.lines[b].lease, n.lines[b].wide = 0, 0
	}
	return &n
}

// held returns the micro-units of bucket b that lie in stripes.
func (l *Limiter) held(s *segment, b int) (sum int64) {
	if s.leased == 0 {
		return 0
	}
	for i := range l.stripes {
		c := &l.stripes[i]
		if k := i & (1<<l.shift - 1); (b == 0 || b == 1+k) && c.seg.Load() == s {
			sum += int64(c.lease.Load()&leftMask) * unit
		}
	}
	return sum
}
