package allocator

import (
	"fmt"
	"math"
)

// Split divides what a node may enforce now over its classes. While a change is
// under way share differs from the node's target, so it goes in this order:
//
//  1. min(target, base in force) of each class, by priority;
//  2. the rest of each class's target, by priority;
//  3. what is then left by base, within caps. If the node has no base in force,
//     the configured base or the reservations give the proportions.
//
// dst (one rate for each class) adds up to at most share; what caps cannot hold
// stays unused. target is the class-major result of Allocate. It allocates
// nothing and panics on a wrong length, as that is the caller's own mistake.
func (a *Allocator) Split(dst []Rate, share Rate, node int, target []Rate) {
	if len(dst) != a.k || len(target) != a.n*a.k {
		panic(fmt.Sprintf("allocator: split of %d classes and %d cells, want %d and %d", len(dst), len(target), a.k, a.n*a.k))
	}
	share = max(0, share)
	for k := range dst {
		c := k*a.n + node
		dst[k] = min(target[c], a.base[c], share)
		share -= dst[k]
	}
	for k := range dst {
		x := min(target[k*a.n+node]-dst[k], share)
		dst[k] += x
		share -= x
	}
	if share > 0 {
		a.splitLeftover(dst, share, node)
	}
}

// splitLeftover adds share to dst in proportion to base, within caps.
func (a *Allocator) splitLeftover(dst []Rate, share Rate, node int) {
	weight, room := a.column[0], a.column[1]
	var sum Rate
	for k := range weight {
		weight[k] = a.base[k*a.n+node]
		sum += weight[k]
	}
	if sum == 0 {
		a.configured(weight, node)
	}
	for k := range room {
		room[k] = math.MaxInt64
		if a.limits != nil {
			room[k] = max(0, a.limits[k*a.n+node]-dst[k])
		}
	}
	a.s.addFill(dst, room, weight, share)
}
