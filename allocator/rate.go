package allocator

// Rate is a capacity or a demand in micro-units per second: one request per
// second is 1,000,000. Valid rates are never negative. Integers alone decide an
// allocation, because every node must compute the same bits (see docs/adr).
type Rate int64

// Unit is one whole unit (a request, a byte) per second.
const Unit Rate = 1_000_000
