package timed

import (
	"time"

	"subak/chaos"
)

const (
	warmUp    = int64(4 * time.Second) // the first start and its quarantine
	quiet     = int64(8 * time.Second) // after a Heal
	roundSize = 12                     // faults between two Heals
	lateMost  = int64(180 * time.Second)
)

// Generate draws the schedule of a seed: rounds of faults, each ended by a Heal
// and a quiet time. count is the number of faults; Heals are on top.
func generate(s *Setup, p *profile, r *chaos.Rand, count int) []Fault {
	var list []Fault
	t := warmUp
	for i := range s.Nodes { // something to do for everybody
		if r.Chance(70) {
			f := drawFault(s, p, r, Demand)
			f.At, f.Who = t-int64(time.Second), int16(i)
			list = append(list, f)
		}
	}
	often := p.faults
	if s.Mode == chaos.ForcedRemoval {
		often = often.and(30, Edit, Crash)
	}
	sum := 0
	for _, w := range often {
		sum += w
	}
	for n := range count {
		k := 0
		for x := r.IntN(sum) - often[0]; x >= 0; x -= often[k] {
			k++
		}
		f := drawFault(s, p, r, FaultKind(k))
		f.At = t
		list = append(list, f)
		t += r.Int64N(2 * p.gap * int64(time.Millisecond))
		if n%roundSize == roundSize-1 || n == count-1 {
			t += r.Int64N(int64(s.Term))
			list = append(list, Fault{At: t, For: quiet, Kind: Heal, Who: -1, With: -1})
			t += quiet
		}
	}
	return list
}

func drawFault(s *Setup, p *profile, r *chaos.Rand, k FaultKind) Fault {
	ms := int64(time.Millisecond)
	f := Fault{Kind: k, Who: int16(r.IntN(s.Nodes)), With: -1}
	f.For = r.Int64N(2 * p.span * ms)
	switch k {
	case Loss:
		f.Who, f.Arg = -1, chaos.Pick[int64](r, 50_000, 200_000, 400_000, 600_000)
	case Duplicates:
		f.Who, f.Arg = -1, chaos.Pick[int64](r, 100_000, 500_000)
	case Late:
		f.Who, f.Arg = -1, chaos.Pick(r, 500*ms, int64(s.Term), 2*int64(s.Term), lateMost)
	case Jitter:
		f.Who, f.Arg = -1, chaos.Pick(r, 10*ms, 100*ms, 600*ms)
	case Split, OneWay:
		f.Who, f.Arg = -1, 1+r.Int64N(1<<s.Nodes-1)
	case Link, Flap:
		f.With, f.Arg = int16(r.IntN(s.Nodes)), chaos.Pick(r, 50*ms, 300*ms, 1500*ms)
		f.For *= 2
	case Slow:
		f.Arg = chaos.Pick(r, 10*ms, 100*ms, 500*ms)
	case Crash:
		f.For = chaos.Pick(r, 0, 50*ms, f.For, int64(s.Term)*3)
		f.Arg = r.Int64N(8)
		if s.Mode == chaos.FastQuarantine || r.Chance(50) {
			f.Arg &^= LoseDisk
		}
		switch s.Mode {
		case chaos.FastQuarantine:
			f.For = chaos.Pick(r, 0, 50*ms, 500*ms)
		case chaos.ForcedRemoval: // long enough dead to be declared so
			f.For = int64(s.Term) * chaos.Pick[int64](r, 2, 3, 4)
		}
	case DieInPublish:
		f.With = int16(r.IntN(dieStages))
		f.For = chaos.Pick(r, 0, 50*ms, f.For)
	case Pause:
		f.Arg = r.Int64N(8)
		f.For = chaos.Pick(r, f.For, int64(s.Term), int64(s.Term)*2)
	case Stall:
		f.Arg = chaos.Pick(r, 0, int64(s.Term)/2, s.leaseWait(), s.leaseWait()+1)
		f.For = chaos.Pick(r, f.For, 2*int64(s.Term))
	case Drift:
		f.Arg = s.drawRate(r)
	case Wall:
		f.Arg = chaos.Pick[int64](r, -3_600_000, -5000, 5000, 86_400_000)
	case Demand:
		b := r.IntN(s.Budgets)
		f.With = int16(8*b + r.IntN(s.Classes))
		// From nothing to more than the whole budget.
		f.Arg = s.Limits[b] * 1000 / 10 * chaos.Pick[int64](r, 0, 0, 1, 3, 10, 20) / chaos.Pick(r, 1, 1, int64(s.Nodes))
	case Burst:
		f.Arg = 10 + r.Int64N(s.Limits[0])
	case Leave:
		f.For = chaos.Pick(r, 500*ms, 3000*ms)
	case Poison:
		f.Arg = chaos.Pick(r, ms, 20*ms)
	case Edit:
		f.Arg = int64(r.Uint64() >> 1)
	}
	return f
}

// drawRate is a deviation of a clock's rate, ppm.
func (s *Setup) drawRate(r *chaos.Rand) int64 {
	if s.Sharp {
		return chaos.Pick(r, -s.RhoPPM, s.RhoPPM)
	}
	return r.Int64N(2*s.RhoPPM+1) - s.RhoPPM
}
