// Package enforce turns one node's share of a budget into a yes or a no.
//
// # Model
//
// A Limiter is one budget on one node: a token bucket for the budget (the
// node's total) and one for each class. A decision charges the class and the
// budget, all or nothing. Buckets are accounted in credit: C(t) is everything
// the bucket was ever granted, the integral of the enforced rate, and one atomic
// word U is everything it ever spent. Tokens are min(C-U, cap). C is a pure
// function of the time and of an immutable segment, so a change of share is a
// change of C's slope: nothing is ever topped up, and tokens carry over
// (lesson O3). A share arrives as a step-down schedule whose segments are
// chained in advance, so that a loan's end is obeyed by the data plane alone,
// even while the control loop is paused (conservation.md A5, traps 8, 9, 11).
//
// A class may bound its tenants: each has a bucket in a table of fixed size
// (package keyed), which is charged before the class and the budget, all or
// nothing. What a tenant's bucket refuses is no demand of the class.
//
// # Units
//
// Costs are whole units (a request, a byte). Rates, credit and caps are in
// micro-units (1 unit = 1,000,000). Time is int64 nanoseconds of the lease clock
// (CLOCK_BOOTTIME). Credit wraps around at 2^64 and is only ever compared by
// signed difference; segments are short enough that a difference stays under
// 2^63.
//
// # Invariants
//
//   - Credit rounds down: from one instant to another a bucket never gives more
//     than rate x time + cap, to within one micro-unit (a millionth of a request).
//   - A bucket begins empty. A node that restarts must not grant a second burst
//     next to the one its former life may just have granted.
//   - A bucket whose rate is 0 keeps nothing.
//   - Refused work changes no word that admission reads.
//   - In any window of w seconds the admitted cost is at most
//     rate*w + rate*burst, plus one request where rate*burst is below one request.
//
// # Concurrency
//
// Every method may be called at any time from any goroutine. Decide waits for no
// lock and allocates nothing; SetSchedule calls exclude each other only. Each core
// counts for itself, and a wide and busy class is leased to cores, which then
// share no line that is written (stripe.go); refusals write no shared word at all
// (dry.go).
// The package reads no clock, starts no goroutine and does no I/O.
package enforce
