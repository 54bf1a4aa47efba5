package judge

import (
	"testing"
	"time"

	"subak/allocator"
	"subak/testbed/evidence"
	"subak/testbed/scenario"
)

// planned is a run that goes as the allocation says: in every bin each node
// enforces its target of the demand that is offered then.
func planned(t *testing.T, s *scenario.Scenario) *judge {
	t.Helper()
	story := s.For(evidence.Subak)
	net, err := story.Net()
	if err != nil {
		t.Fatal(err)
	}
	rates, err := story.Rates()
	if err != nil {
		t.Fatal(err)
	}
	n := len(net.Places)
	r := &evidence.Run{
		Variant: evidence.Subak, Nodes: net.Names(), Weights: net.Weights(), Limit: int64(story.Limit()), Bin: scenario.Bin,
		Length: story.Length(evidence.Subak), Series: make([]evidence.Series, n), Network: map[string]int64{"blocked": 1, "lost": 1},
	}
	for _, c := range story.Budget.Classes {
		r.Classes, r.Reserve = append(r.Classes, c.Name), append(r.Reserve, int64(c.Reserve))
	}
	j := &judge{s: story, r: r}
	alloc, err := allocator.New(j.spec(story.Limit()))
	if err != nil {
		t.Fatal(err)
	}
	demand, target := make([]allocator.Rate, len(rates)), make([]allocator.Rate, len(rates))
	for p, phase := range story.Phases {
		for i := range rates {
			demand[i] = allocator.Rate(rates[i][p] * float64(allocator.Unit))
		}
		if err := alloc.Allocate(target, demand); err != nil {
			t.Fatal(err)
		}
		for i := range n {
			share := 0.0
			for k := range r.Classes {
				share += float64(target[k*n+i]) / float64(allocator.Unit)
			}
			for range int(phase.Length / scenario.Bin) {
				r.Series[i].Share = append(r.Series[i].Share, share)
			}
		}
	}
	return j
}

// A partition or a death proves little if nothing was lent across it.
func TestEveryFaultStrikesWhereLoansAreOutByPlan(t *testing.T) {
	all, err := scenario.Files()
	if err != nil {
		t.Fatal(err)
	}
	struck := 0
	for _, s := range all {
		if s.Trace != nil || len(s.Absent) > 0 {
			continue
		}
		j := planned(t, &s)
		for _, f := range j.s.Faults {
			switch f.Kind {
			case scenario.Partition, scenario.Isolate, scenario.Cut, scenario.OneWay, scenario.Kill, scenario.Pause:
				struck++
				if why := j.unlent(&f, evidence.Band{From: f.At, To: f.End()}); why != "" {
					t.Errorf("%s: %s: %s", s.Name, f.Name, why)
				}
			}
		}
	}
	if struck < 10 {
		t.Errorf("only %d faults were looked at", struck)
	}
}

// A bound that nobody could break proves nothing.
func TestMoreThanTheLimitIsOfferedWhereverTheBoundIsClaimed(t *testing.T) {
	all, err := scenario.Files()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		for _, c := range s.Claims {
			if c.Kind != scenario.BoundKept && c.Kind != scenario.BoundBroken {
				continue
			}
			story := s.For(c.Of())
			rates, err := story.Rates()
			if err != nil {
				t.Fatal(err)
			}
			most := 0.0
			for p := range rates[0] {
				sum := 0.0
				for _, stream := range rates {
					sum += stream[p]
				}
				if s.Trace != nil || story.Phases[p].Length >= time.Second {
					most = max(most, sum)
				}
			}
			if want := 1.1 + fraction(c.Least); most < want*s.Limit() {
				t.Errorf("%s: at most %.0f/s are offered, want %.0f %% of the limit of %.0f/s", s.Name, most, 100*want, s.Limit())
			}
		}
	}
}
