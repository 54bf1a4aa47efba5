// Package quota is the door for Envoy's rate limit quota service, version 3
// (envoy.service.rate_limit_quota.v3): Envoys decide by themselves, out of token
// buckets that this node assigns to them and renews.
//
// # Model
//
// Each stream is one data plane. It reports what it admitted and refused in each
// of its buckets, and gets for each an assignment: a token bucket that it
// enforces until the assignment's time to live is over, unless renewed. A bucket
// id is matched like a descriptor of the rate limit service and belongs to one
// class of one budget, its pot. What the data planes of a pot hold is carved out
// of the class's share at this node (enforce.Limiter.Carve): no instant has
// assignments that add up, with what the node admits itself, to more than the
// node's share.
//
// # What a data plane may be spending
//
// There are no acknowledgements. A data plane that was sent an assignment may not
// have got it, and may be enforcing any one that it was sent before, until the
// time to live of that is over. So a subscription holds the largest of all the
// rates sent to it that may still be enforced, each until its sending plus
// TTL plus one percent plus Transit. A shrink is sent at once, and what it frees
// is granted to others when the former assignment must be over. A stream that is
// lost leaves its holds behind until then; the Envoy that reconnects is a new data
// plane and goes on with its former assignment meanwhile.
//
// # Tokens
//
// Envoy gives every bucket that differs from the one before all its tokens at
// once. So a new one is paid for: a larger bucket is sent when its first tokens
// have been saved up out of rate that was reserved for it and not yet enforced; a
// smaller one begins with at most what the reservation of the larger one will
// still save. Over any time a subscription admits no more than the rate reserved
// for it, and a bucket's tokens, which are an eighth of the budget's burst.
//
// # Shares
//
// A pot is split max-min by reported demand, in exact integers, among its data
// planes and the node's own doors of that class; what nobody asks for is headroom
// in proportion to demand. It moves with as little change as will do. An Envoy's
// rate is whole tokens per whole seconds, since Envoy truncates both, rounded
// down.
//
// # What RLQS gives up
//
// Capacity moves between Envoys in about TTL rather than at once, and what an
// Envoy holds is of no use to others meanwhile: classes do not lend each other
// tokens, and a recall of borrowed capacity waits until the Envoys are done with
// it. Tenants are not limited inside an Envoy. The bound rests on Envoys that
// apply and expire assignments within Transit of when they should: one that was
// stopped may apply an old one when it goes on, for one more TTL.
//
// # Concurrency and hostile clients
//
// The planner is pure: told the time and the reports, it says what to send. One
// lock guards it. Streams, buckets of a stream and of all, and the bytes of a
// bucket id are bounded; counts are bounded, and time_elapsed is believed only for
// the first report of a bucket, and then within bounds.
package quota
