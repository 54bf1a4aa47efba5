package enforce

// Reason says why a request was refused, or would have been in shadow mode.
type Reason uint8

// The reasons. Their names are label values: they do not change.
const (
	Admitted      Reason = iota // nothing to complain about
	ClassEmpty                  // the class's share is spent
	BudgetEmpty                 // the node's share is spent
	CostOverBurst               // the cost is above what the bucket can ever hold
	NoShare                     // the share is 0
	UnknownClass                // no such class
	BadCost                     // cost under 1
	TenantEmpty                 // the tenant's part of the class is spent
	Sibling                     // another charge of the same call was refused
	Reasons       = iota
)

// String returns the reason's name as used in metrics and headers.
func (r Reason) String() string {
	switch r {
	case Admitted:
		return "admitted"
	case ClassEmpty:
		return "class-empty"
	case BudgetEmpty:
		return "budget-empty"
	case CostOverBurst:
		return "cost-over-burst"
	case NoShare:
		return "no-share"
	case UnknownClass:
		return "unknown-class"
	case BadCost:
		return "bad-cost"
	case TenantEmpty:
		return "tenant-empty"
	case Sibling:
		return "sibling-refused"
	}
	return "unknown"
}
