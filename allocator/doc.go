// Package allocator computes how one conserved budget is shared over locations
// and service classes: the target of every cell (class, location) from the
// demand of all cells.
//
// # Model
//
// A budget B has K classes in priority order with reservations that add up to
// B, and N locations in canonical order with weights. A cell's base is its part
// of the class's reservation: split by weight within the cell's floor and cap;
// what caps keep out is the class's park. One cycle takes the demand of every
// cell, clamped to its floor and cap, in two passes:
//
//	pass 1, by class   M = sum of min(demand, base)   E = R - M   D = sum of (demand - base)+
//	class level        quota Q of every class; the quotas add up to B (see [Mode])
//	pass 2, by class   Q >= M+D   all demand, and the rest as headroom (see [Headroom])
//	                   Q >= M     min(demand, base), and Q-M over the deficits (see [Rule])
//	                   Q <  M     floors, and the rest over min(demand, base): only by preemption
//
// While locations are missing, [Allocator.SetCeilings] runs the same over what
// the live ones may use.
//
// # Units and arithmetic
//
// Rates are integers in micro-units per second ([Rate]). Every split is by
// largest remainder, ties to the lower index, and exact: no float and no
// division decides a cell, so all nodes compute the same bits from the same
// demand (law 8). Sums must stay below 2^63; larger input is refused whole.
//
// # Laws
//
// Each is a property test against a second implementation.
//
//  1. Targets and parked capacity add up to the budget in force, exactly.
//  2. Without preemption no cell gets less than min(demand, base); where owners
//     keep their headroom, none gets more than max(demand, base) either.
//  3. If demand reaches the budget and no limit binds, no cell gets more than
//     it asked (insurance apart, which does so on purpose).
//  4. If demand is within the budget and no limit binds, every cell gets what
//     it asked.
//  5. The allocation is stateless, and feeding it back as demand returns it
//     unchanged (without insurance, and without preemption on top of lending
//     or borrowing limits).
//  6. More own demand never gives a cell less, but for single units of rounding.
//  7. Renaming locations moves no target by more than 3 units (a ceiling above
//     a location's base scales the unit that its base may differ by).
//  8. The same bits on every architecture and build.
//  9. Under [MaxMin], inflating a report gains nothing.
//  10. A cycle takes O(KN + K^2), whatever the demand, and allocates nothing.
//
// # Concurrency
//
// The package is pure: no clock, no randomness, no goroutine, no I/O. An
// [Allocator] belongs to one goroutine; its methods share scratch memory.
package allocator
