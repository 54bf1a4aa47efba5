package evaluation

import (
	"slices"

	"subak/allocator"
)

// without is a trace in which some nodes are lost: their clients go to the others,
// by weight, as they do when an anycast address is withdrawn.
type without struct {
	Trace
	lost          []bool
	weights       []int64 // of those that are left
	demand, legit []allocator.Rate
	part          []allocator.Rate
}

// Without returns the trace of a cluster that has lost nodes, by their index; weights
// are those of all nodes. At least one must be left.
func Without(t Trace, lost []int, weights []int64) Trace {
	w := &without{
		Trace: t, lost: make([]bool, t.Nodes()),
		demand: make([]allocator.Rate, t.Nodes()*t.Classes()), legit: make([]allocator.Rate, t.Nodes()),
	}
	for i, weight := range weights {
		w.lost[i] = slices.Contains(lost, i)
		if !w.lost[i] {
			w.weights = append(w.weights, weight)
		}
	}
	w.part = make([]allocator.Rate, len(w.weights))
	return w
}

func (w *without) Nodes() int { return len(w.weights) }

func (w *without) Next(demand, legit []allocator.Rate) (bool, error) {
	ok, err := w.Trace.Next(w.demand, w.legit)
	if err != nil || !ok {
		return false, err
	}
	n, left := w.Trace.Nodes(), w.Nodes()
	for k := range w.Classes() {
		w.move(demand[k*left:(k+1)*left], w.demand[k*n:(k+1)*n])
	}
	w.move(legit, w.legit)
	return true, nil
}

// move puts into dst what the remaining nodes get of one class.
func (w *without) move(dst, all []allocator.Rate) {
	var moved allocator.Rate
	dst = dst[:0]
	for i, d := range all {
		if w.lost[i] {
			moved += d
		} else {
			dst = append(dst, d)
		}
	}
	apportion(w.part, w.weights, moved)
	for i, d := range w.part {
		dst[i] += d
	}
}
