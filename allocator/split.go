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
	a.split(dst, share, node, target, false)
}

// SplitRevocable divides like Split for a node whose classes lend each other
// unused tokens and take them back at once: between 1 and 2, each class also
// gets the rest of its base in force, by priority. The target of another class
// that counts on that base is then met by what the owner leaves unused, and the
// owner finds its whole base there the moment it wants it, without waiting for
// a cycle.
func (a *Allocator) SplitRevocable(dst []Rate, share Rate, node int, target []Rate) {
	a.split(dst, share, node, target, true)
}

func (a *Allocator) split(dst []Rate, share Rate, node int, target []Rate, keepBase bool) {
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
		if keepBase {
			x := min(a.base[k*a.n+node]-dst[k], share)
			dst[k] += x
			share -= x
		}
	}
	for k := range dst {
		x := min(max(target[k*a.n+node]-dst[k], 0), share)
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
