package enforce

import "fmt"

// Succeed ends l for good and returns a limiter of another configuration that
// goes on from it: for a change of classes, burst or lending while requests run.
// From its return on l refuses everything, and whoever still holds it must look
// for the successor; a later SetSchedule on l would grant anew and must not
// happen. The successor enforces steps from now on.
//
// No token is there twice, even while requests are decided on l: the successor's
// budget bucket begins with at most what l's had left, and class k with what was
// left of l's class from[k], or with nothing where from[k] is -1. Each is clamped
// to its new cap and none is topped up (lesson O3). Counts go on in the same way.
//
// It panics where cfg.Validate returns an error, and unless from names each
// class of l at most once, for every class of cfg.
func (l *Limiter) Succeed(now int64, cfg LimiterConfig, from []int, steps []Step) *Limiter {
	l.checkOrigins(cfg, from)
	t, left := l.retire(now)
	n := NewLimiter(cfg, t)
	points := make([]point, len(n.cells))
	n.inherit(0, 0, l, left, points)
	same := len(l.cells) == len(n.cells)
	for k, old := range from {
		if old >= 0 {
			n.inherit(1+k, 1+old, l, left, points)
		}
		same = same && k == old
	}
	if same && l.retries != nil && n.retries != nil && l.retries.size == n.retries.size {
		n.retries = l.retries // what is marked there names classes by their place
	}
	n.inheritCarves(l, from)
	s := n.shape.chain(points, t, n.carving.follow(t, clean(t, steps, cfg.Classes)))
	for b := range n.cells {
		if over := int64(points[b].credit - s.lines[b].cap); over > 0 {
			n.cells[b].used.Add(uint64(over))
		}
	}
	n.seg.Store(s)
	n.inheritTenants(l, from)
	return n
}

func (l *Limiter) checkOrigins(cfg LimiterConfig, from []int) {
	seen := make([]bool, l.Classes())
	ok := len(from) == cfg.Classes
	for _, old := range from {
		if old < 0 {
			continue
		}
		ok = ok && old < len(seen) && !seen[old]
		if ok {
			seen[old] = true
		}
	}
	if !ok {
		panic(fmt.Sprintf("enforce: %d classes to follow %d by %v", cfg.Classes, l.Classes(), from))
	}
}

// inherit gives bucket b what bucket old of the limiter before had left: as
// credit, or as debt.
func (l *Limiter) inherit(b, old int, before *Limiter, left []int64, points []point) {
	if left[old] >= 0 {
		points[b].credit = uint64(left[old])
	} else {
		l.cells[b].used.Store(uint64(-left[old]))
	}
	if b == 0 {
		return
	}
	to := &l.stripes[b-1]
	for i := old - 1; i < len(before.stripes); i += 1 << before.shift {
		was := &before.stripes[i]
		to.admitted.Add(was.admitted.Load())
		to.refused.Add(was.refused.Load())
		to.borrowed.Add(was.borrowed.Load())
		to.again.admitted.Add(was.again.admitted.Load())
		to.again.refused.Add(was.again.refused.Load())
	}
}

// retire lowers l to nothing and returns what each bucket had left at the
// instant t, now or a little later: micro-units, negative where more was spent
// since.
func (l *Limiter) retire(now int64) (t int64, left []int64) {
	l.setting.Lock()
	defer l.setting.Unlock()
	left = make([]int64, len(l.cells))
	nothing := clean(now, nil, l.Classes())
	l.carving.given = nothing
	for {
		s := l.unlet(now)
		t = max(now, s.t0)
		n := l.shape.chain(s.points(t), t, nothing)
		for b := range left {
			left[b] += l.drain(b, s, n)
		}
		if !l.seg.CompareAndSwap(s, n) {
			continue
		}
		l.changes.Add(1)
		// What accrued after t was spent while s was still in force. Who takes
		// from s from here on finds it replaced and puts it back.
		for b := range left {
			if late := int64(l.cells[b].used.Load() - n.lines[b].c0); late > 0 {
				left[b] -= late
			}
		}
		l.newest = max(l.newest, now)
		return t, left
	}
}

// drain takes what bucket b holds at the start of n, in one step, so that nobody
// else can spend it.
func (l *Limiter) drain(b int, s, n *segment) int64 {
	end := n.lines[b].c0
	for {
		u := l.cells[b].used.Load()
		have := int64(end - u)
		if have <= 0 {
			return 0
		}
		if l.cells[b].used.CompareAndSwap(u, end) {
			return min(have, int64(s.lines[b].cap))
		}
	}
}
