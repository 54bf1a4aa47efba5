// Package limit is the door for Go code: handles to the classes of a node's
// budgets, asked by the program that does the work itself.
//
// # Model
//
// A [Set] belongs to one node and hands out a [Class] for each (budget, class).
// A handle asks the limiter in force (package enforce) with one reading of the
// node's clock: no lock, no network, no allocation. When the configuration
// changes while the program runs, the node points all handles at the new limiters
// ([Set.Renew]); handles are made once and kept.
//
//   - [Class.Allow] says yes or no at once.
//   - [Class.Wait] blocks until it is yes, first come first served.
//   - [Class.Reserve] takes tokens that can be given back, exactly and once.
//   - [Class.For] asks for one tenant of the class, within its part.
//   - [Class.Decide] is for doors: it says why, and what to tell the client.
//
// # No tokens of the future
//
// Nothing is ever promised ahead. A node's share may shrink at any time, as when
// a loan ends, so a token that does not exist yet may never come. A waiter holds
// a place in the queue and no tokens, and a reservation is of tokens that are
// there. So whatever callers do, what is admitted stays within the limiter's bound.
//
// # Units
//
// n is a cost in the budget's whole units: requests, bytes. A cost below 1 is
// refused.
//
// # Concurrency
//
// Everything is safe for concurrent use. No goroutine is started: who waits looks
// after itself.
package limit
