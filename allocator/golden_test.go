package allocator

import (
	"testing"
)

// draw makes a valid scenario from the generator.
func (m *mixer) draw(n, k int, most int64, ceilings bool) scenario {
	s := Spec{
		Mode: Mode(m.below(2)), Headroom: Headroom(m.below(3)), InsurancePPM: max(0, m.below(2_000_000)-1_500_000),
		Weights: make([]int64, n), Classes: make([]ClassSpec, k),
	}
	for i := range s.Weights {
		s.Weights[i] = 1 + m.below(1000)
	}
	for c := range s.Classes {
		s.Classes[c] = ClassSpec{
			Reservation: 1 + Rate(m.below(most/int64(k))), Lend: m.below(2*Whole) - Whole, Borrow: m.below(3*Whole) - Whole,
			Protect: m.below(Whole + 1), Preempts: m.below(4) == 0, Rule: Rule(m.below(2)),
		}
		s.Classes[c].Lend = max(Unlimited, s.Classes[c].Lend)
		s.Classes[c].Borrow = max(Unlimited, s.Classes[c].Borrow)
		s.Budget += s.Classes[c].Reservation
	}
	if s.validateRules() != nil {
		s.Mode = PoolFirst
	}
	if m.below(2) == 0 {
		m.cells(&s)
	}
	sc := scenario{spec: s}
	for k := range s.Classes {
		for range n {
			sc.demand = append(sc.demand, Rate(m.below(1+m.below(1+4*int64(s.Classes[k].Reservation)/int64(n)))))
		}
	}
	for i := 0; ceilings && i < n; i++ {
		sc.ceilings = append(sc.ceilings, Rate(m.below(1+int64(s.Budget)/int64(n))))
	}
	return sc
}

// cells draws floors and caps.
func (m *mixer) cells(s *Spec) {
	n := int64(len(s.Weights))
	for k := range s.Classes {
		each := int64(s.Classes[k].Reservation) / n
		var floors, caps []Rate
		for range n {
			f := m.below(1 + each)
			floors, caps = append(floors, Rate(f)), append(caps, Rate(f+m.below(1+3*each)))
		}
		s.Floors, s.Caps = append(s.Floors, floors), append(s.Caps, caps)
	}
}

// The golden hashes hold on every architecture and build (law 8). The generator
// is integer-only and needs no int wider than 32 bits. A change here means that
// nodes of two versions would disagree: it needs a new protocol version.
func TestLaw8GoldenHashesAreTheSameOnEveryBuild(t *testing.T) {
	for _, c := range []struct {
		name         string
		runs         int
		nodes, class int64
		most         int64
		ceilings     bool
		want         uint32
	}{
		{"small", 400, 6, 4, 1000, false, 0x6ee2edff},
		{"wide", 12, 700, 3, 1 << 40, false, 0x7af0304f},
		{"huge", 200, 25, 4, 1 << 60, false, 0x8a6502f7},
		{"classes", 40, 30, 64, 1 << 45, true, 0xfdc0e3d0},
		{"ceilings", 200, 40, 4, 1 << 36, true, 0x42c7968c},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := mixer(len(c.name))
			hash := uint32(0)
			for range c.runs {
				sc := m.draw(int(1+m.below(c.nodes)), int(1+m.below(c.class)), c.most, c.ceilings)
				a := sc.build(t)
				out := run(t, a, sc.demand)
				split := make([]Rate, a.Classes())
				a.Split(split, a.NodeBase(0), 0, out)
				hash = hash*31 + Digest(out, a.base, split, []Rate{a.Parked()})
			}
			if hash != c.want {
				t.Errorf("got %#08x, want %#08x", hash, c.want)
			}
		})
	}
}
