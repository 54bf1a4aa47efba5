package ledger

import "subak/allocator"

// View is what a node knows of one budget: the input of the allocation. It is
// filled anew by [Ledger.View] and reuses its slices.
type View struct {
	// Self is this node's roster position, -1 if it is not a member.
	Self int
	// N is the number of roster positions, K of classes.
	N, K int
	// Live by roster position: heard lately, and heard us lately. This node is.
	Live []bool
	// Ceilings in force by roster position; 0 for nodes that are not live.
	Ceilings []allocator.Rate
	// Demand, class-major: [k*N+i]; 0 for nodes that are not live. Live tells
	// "no report" apart from "reported 0" (lesson O14).
	Demand []allocator.Rate
	// Weights by roster position.
	Weights []int64
}

// View fills v with what is known of budget b at now, own entry included. A
// frozen node is outside the pool: ceiling 0 and no demand, as its rows say.
func (l *Ledger) View(now int64, b int, v *View) {
	bk := l.books[b]
	v.Self, v.N, v.K = l.selfPos, len(l.cur.Roster), len(bk.demand)
	v.Live = sized(v.Live, v.N)
	v.Ceilings = sized(v.Ceilings, v.N)
	v.Weights = sized(v.Weights, v.N)
	v.Demand = sized(v.Demand, v.K*v.N)
	for i, m := range l.cur.Roster {
		v.Weights[i] = m.Weight
		if i == l.selfPos {
			v.Live[i] = true
			v.Ceilings[i] = l.offered(bk)
			if !l.frozen {
				spread(v.Demand, bk.demand, v.N, i)
			}
			continue
		}
		if !l.live(now, m.ID) {
			continue
		}
		v.Live[i] = true
		if s := l.sectionOf(m.ID, bk); s != nil {
			v.Ceilings[i] = s.Ceiling
			if len(s.Demand) == v.K { // another epoch may have other classes
				spread(v.Demand, s.Demand, v.N, i)
			}
		}
	}
}

func spread(dst, perClass []allocator.Rate, n, i int) {
	for k, d := range perClass {
		dst[k*n+i] = d
	}
}

// offered is the ceiling that this node brings to the pool.
func (l *Ledger) offered(b *book) allocator.Rate {
	if l.frozen {
		return 0
	}
	return l.ceiling(b)
}

// sectionOf is what k's newest row says about b, nil if nothing.
func (l *Ledger) sectionOf(k NodeID, b *book) *Section {
	p := &l.peers[k]
	if p.row == nil {
		return nil
	}
	return p.layout.section(p.row, b)
}

// Live reports whether k takes part in the allocation: its newest row was merged
// within the live window, and that row heard a row of this life that was
// published within it. This node is live.
func (l *Ledger) Live(now int64, k NodeID) bool {
	l.grow()
	return k == l.cfg.Self || l.live(now, k)
}

func (l *Ledger) live(now int64, k NodeID) bool {
	if !l.fresh(now, k) {
		return false
	}
	h := l.peers[k].row.heardOf(l.cfg.Self)
	if h.Inc != l.inc {
		return false
	}
	at, ok := l.log.at(h.Seq)
	return ok && now-at <= int64(l.cfg.Live)
}

// fresh reports whether k was heard within the live window.
func (l *Ledger) fresh(now int64, k NodeID) bool {
	p := &l.peers[k]
	return p.row != nil && now-p.at <= int64(l.cfg.Live)
}

// sized returns s with length n and zero elements, reusing its memory.
func sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	s = s[:n]
	clear(s)
	return s
}
