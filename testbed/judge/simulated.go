package judge

import (
	"fmt"

	"subak/allocator"
	"subak/internal/contention"
	"subak/testbed/evidence"
	"subak/testbed/scenario"
)

// simulated sets what a class was served beside what the allocation alone, one
// cycle late, gives on the same trace: the processes, the network and the loans
// may cost Most and no more.
func (j *judge) simulated(c *scenario.Claim) evidence.Verdict {
	claim := c.Class + " served beside the simulated allocation, one cycle late"
	limit := "at most " + part(c.Most) + " of its demand less"
	want, err := j.simulate(j.classes(c.Class))
	if err != nil {
		return noBite(claim, limit, "%v", err)
	}
	offered, admitted := j.service(nil, c.Class, j.phase(""))
	if offered == 0 {
		return noBite(claim, limit, "nothing was offered")
	}
	got := admitted / offered
	return evidence.Verdict{
		Claim: claim, Bound: limit, Measured: fmt.Sprintf("%s against %s", percent(got), percent(want)), Kept: got >= want-fraction(c.Most),
	}
}

// simulate is the part of the classes' demand that the allocation serves when each
// cycle is allocated by the demand of the one before.
func (j *judge) simulate(classes []int) (float64, error) {
	if j.s.Trace == nil {
		return 0, fmt.Errorf("there is no trace")
	}
	net, err := j.s.Net()
	if err != nil {
		return 0, err
	}
	trace, err := j.s.Contention(net)
	if err != nil {
		return 0, err
	}
	alloc, err := allocator.New(j.spec(float64(j.r.Limit)))
	if err != nil {
		return 0, err
	}
	n := len(j.r.Nodes)
	if n != trace.Nodes() || len(j.r.Classes) != contention.Classes {
		return 0, fmt.Errorf("the trace is of other nodes or classes")
	}
	demand, target := make([]allocator.Rate, contention.Classes*n), make([]allocator.Rate, contention.Classes*n)
	trace.Cycle(max(0, j.s.Trace.First-1), demand)
	var asked, served float64
	for cycle := range j.s.Trace.Cycles {
		if err := alloc.Allocate(target, demand); err != nil {
			return 0, err
		}
		trace.Cycle(j.s.Trace.First+cycle, demand)
		for _, k := range classes {
			for i := k * n; i < (k+1)*n; i++ {
				asked += float64(demand[i])
				served += float64(min(demand[i], target[i]))
			}
		}
	}
	return served / asked, nil
}

// spec is the budget as the nodes have it, at a limit in requests/s: but for what a
// scenario says, the configuration's defaults. Nodes that join later count.
func (j *judge) spec(limit float64) allocator.Spec {
	spec := allocator.Spec{
		Budget: micro(limit), Weights: j.r.Weights,
		InsurancePPM: allocator.PPM(j.s.Budget.Insurance),
	}
	left := spec.Budget
	for k, ppm := range j.r.Reserve {
		class := allocator.ClassSpec{
			Name: j.r.Classes[k], Lend: allocator.Whole, Borrow: allocator.Unlimited, Protect: allocator.Whole,
			Reservation: spec.Budget / allocator.Unit * allocator.Rate(ppm),
		}
		if k > 0 {
			class.Rule = allocator.MaxMin
		}
		if k == len(j.r.Reserve)-1 {
			class.Reservation = left
		}
		left -= class.Reservation
		spec.Classes = append(spec.Classes, class)
	}
	return spec
}
