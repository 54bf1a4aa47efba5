package wire

// What BudgetsPerRow reserves, in bytes, for what cannot be known beforehand.
const (
	headBytes    = 64 // everything before the sections, with room for larger numbers
	tailBytes    = 24 // digest, bin headers, runs of an ordinary wait set
	ceilingBytes = 7  // shape and a rate below 4.4e12 micro-units/s
	demandBytes  = 5  // a rate below 3.4e13 micro-units/s
	loanBytes    = 8
	capBytes     = 9
	spreadLoans  = 32 // one budget whose node lends to that many at once
)

// BudgetsPerRow returns how many budgets of k classes may share one row among n
// nodes (1 to MaxNodes): the size of a group. 0 means that even a busy row of one
// may not fit in a datagram, as from about 550 nodes on (the ordinary row of one
// budget of 2 classes among 1000 nodes takes 1088 bytes).
//
// It reserves the head, 1.5 bytes for each node heard, and for each budget its
// ceiling, demands, two loans and a cap; and, once, loans to 32 nodes. That is
// more than ordinary rows need. It is no guarantee: a node may lend to all
// others at once in all budgets, and room for that would leave no room for a
// second budget. Such a row is not cut down, since a loan left out would be a
// loan recalled. It comes with a [TooLargeError] and goes by stream.
func BudgetsPerRow(n, k int) int {
	if n < 1 || n > MaxNodes || k < 1 || k > MaxClasses {
		return 0
	}
	others := n - 1
	free := MaxPacket - headBytes - tailBytes - (3*n+1)/2 - min(others, spreadLoans)*loanBytes
	each := ceilingBytes + k*demandBytes + 2 + min(others, 2)*loanBytes + min(others, 1)*capBytes
	if free < each {
		return 0
	}
	return min(free/each, MaxSections)
}
