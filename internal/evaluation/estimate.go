package evaluation

import "subak/allocator"

// estimator turns the demand that was seen into the demand that a sharer is told.
type estimator interface {
	estimate(dst, seen []allocator.Rate)
}

// told is a sharer that is told an estimate.
type told struct {
	Sharer
	by  estimator
	dst []allocator.Rate
}

func (t *told) Share(target, demand []allocator.Rate) error {
	if t.dst == nil {
		t.dst = make([]allocator.Rate, len(demand))
	}
	t.by.estimate(t.dst, demand)
	return t.Sharer.Share(target, t.dst)
}

// toward is from moved to to by num/den of the way, rounded down in amount.
func toward(from, to allocator.Rate, num, den int64) allocator.Rate {
	if to >= from {
		return from + allocator.Rate(muldiv(to-from, num, den))
	}
	return from - allocator.Rate(muldiv(from-to, num, den))
}

// hysteresis keeps what it told before until demand has moved by more than a part
// of it; up and down each have their own part, in ppm.
type hysteresis struct {
	up, down int64
	kept     []allocator.Rate
}

func (h *hysteresis) estimate(dst, seen []allocator.Rate) {
	if h.kept == nil {
		h.kept = append(h.kept, seen...)
	}
	for c, d := range seen {
		k := h.kept[c]
		if d > k && d-k > allocator.Rate(muldiv(k, h.up, allocator.Whole)) || d < k && k-d > allocator.Rate(muldiv(k, h.down, allocator.Whole)) {
			h.kept[c] = d
		}
	}
	copy(dst, h.kept)
}

// smooth moves by a part of the way to what it sees: 1/up of it upward, 1/down of it
// downward. 1 is at once.
type smooth struct {
	up, down int64
	level    []allocator.Rate
}

func (s *smooth) estimate(dst, seen []allocator.Rate) {
	if s.level == nil {
		s.level = append(s.level, seen...)
	}
	for c, d := range seen {
		step := s.down
		if d > s.level[c] {
			step = s.up
		}
		s.level[c] = toward(s.level[c], d, 1, step)
	}
	copy(dst, s.level)
}

// window is the most of the last cycles.
type window struct {
	cycles int
	last   [][]allocator.Rate
}

func (w *window) estimate(dst, seen []allocator.Rate) {
	w.last = append(w.last, append([]allocator.Rate(nil), seen...))
	if len(w.last) > w.cycles {
		w.last = w.last[1:]
	}
	copy(dst, seen)
	for _, past := range w.last {
		for c, d := range past {
			dst[c] = max(dst[c], d)
		}
	}
}

// trend goes on by a part of the last step, in ppm.
type trend struct {
	part   int64
	before []allocator.Rate
}

func (t *trend) estimate(dst, seen []allocator.Rate) {
	if t.before == nil {
		t.before = append(t.before, seen...)
	}
	for c, d := range seen {
		dst[c] = d
		if step := allocator.Rate(muldiv(max(d-t.before[c], t.before[c]-d), t.part, allocator.Whole)); d >= t.before[c] {
			dst[c] += step
		} else {
			dst[c] = max(0, d-step)
		}
		t.before[c] = d
	}
}

// forecast expects each cell to come back by a part of the way, in ppm, to what is
// usual for it: its own mean of about 32 cycles. Where common, the usual is the
// cell's usual part of what its whole class asks for now, so that what moves all
// locations is followed at once, and what moves one of them is taken for noise.
type forecast struct {
	back   int64
	nodes  int
	common bool
	usual  []allocator.Rate
}

func (f *forecast) estimate(dst, seen []allocator.Rate) {
	if f.usual == nil {
		f.usual = append(f.usual, seen...)
	}
	for c, d := range seen {
		f.usual[c] = toward(f.usual[c], d, 1, 32)
	}
	for first := 0; first < len(seen); first += f.nodes {
		row := func(v []allocator.Rate) []allocator.Rate { return v[first : first+f.nodes] }
		all, usually := sumOf(row(seen)), sumOf(row(f.usual))
		for i, d := range row(seen) {
			usual := row(f.usual)[i]
			if f.common && usually > 0 {
				usual = allocator.Rate(muldiv(usual, all, usually))
			}
			row(dst)[i] = toward(d, usual, f.back, allocator.Whole)
		}
	}
}

// margin adds a part of what each cell's demand usually moves by in a cycle, in ppm,
// to the first class's demand.
type margin struct {
	part   int64
	nodes  int
	before []allocator.Rate
	moves  []allocator.Rate
}

func (m *margin) estimate(dst, seen []allocator.Rate) {
	if m.before == nil {
		m.before, m.moves = append(m.before, seen...), make([]allocator.Rate, len(seen))
	}
	for c, d := range seen {
		m.moves[c] = toward(m.moves[c], max(d-m.before[c], m.before[c]-d), 1, 8)
		m.before[c] = d
		dst[c] = d
		if c < m.nodes {
			dst[c] += allocator.Rate(muldiv(m.moves[c], m.part, allocator.Whole))
		}
	}
}
