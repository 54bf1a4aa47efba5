// Package keyed is a bounded table of token buckets by key: one for each tenant
// of a class, however many names a client invents.
//
// # Model
//
// A bucket is one word: the credit that its key has spent. What every bucket of
// the table was granted until now is a number that the caller computes, so a
// bucket holds the difference, at most a cap, and nothing has to be topped up.
// The table is set-associative: a key belongs to one set of eight buckets and is
// in any of them. A key that is not there takes a free one, or else the fullest of
// the eight, which is the one that was idle for longest: its key loses the least.
//
// A new key begins with what its first request costs and not with a burst: one
// that was forgotten must not be granted a second one next to what it may just
// have spent (lesson O27). Literally nothing would refuse everybody's first
// request.
//
// # Units
//
// Credit, caps and costs are in the caller's unit of credit, and at most MaxCap.
// Credit wraps around at 2^64; a bucket left alone for so long that its word seems
// to be far ahead of the credit is full. A key takes 64 bytes, and a table never
// grows: it has twice as many buckets as it is made for keys, so that with that
// many about one set in fifty has more keys than buckets.
//
// # Invariants
//
//   - From one instant to another a bucket that is not forgotten in between gives
//     at most the credit granted plus its cap.
//   - Whoever finds a bucket that then goes to another key touches nothing of that
//     one's: the word is changed only if it is still the one that was read while
//     the bucket had the key.
//   - A Place is a hint. What is found there is charged only if it is a bucket of
//     the table that is asked, and the key's.
//   - Two who bring the same new key at once may both find it new. One of the two
//     buckets goes again at once.
//
// # Concurrency
//
// Every method may be called at any time from any goroutine. None takes a lock,
// waits or allocates; a call that loses its bucket to other keys four times in
// a row gives up and lets its request pass. The package reads no clock.
package keyed
