package config

import "time"

// Budget is one capacity that all nodes share.
type Budget struct {
	// Name of the budget, shown in metrics and named by rules. Required, unique.
	Name string `yaml:"name"`
	// Limit is what all nodes together may admit: requests (20000/s, 600/min)
	// or bytes (5MB/s, 100Mbit/s). Above 0. Required.
	Limit Amount `yaml:"limit"`
	// Burst is how many seconds of its rate a bucket holds: in any window of w
	// seconds at most limit * (w + burst) is admitted. Range 10ms to 1h.
	// Default 1s. Raising it lets longer bursts through to the origin.
	Burst time.Duration `yaml:"burst" default:"1s"`
	// Mode is the order in which unused base is shared. pool-first: all unused
	// base is one pool, taken by class priority. paper: a class first evens out
	// among its own nodes, then classes lend to each other. Default pool-first.
	Mode Mode `yaml:"mode" default:"pool-first"`
	// Headroom is where capacity beyond all demand goes: by-base, owner-keeps
	// (it stays where it is: busy nodes get no slack) or by-demand. Default
	// by-base.
	Headroom Headroom `yaml:"headroom" default:"by-base"`
	// Insurance is headroom for the first class, as a percentage of its demand,
	// served after all its demand and before what lower classes miss. Range 0%
	// to 100%. Default 0%: none. Raising it takes from lower classes.
	Insurance Percent `yaml:"insurance" default:"0%"`
	// Revocable lets a class use tokens that another class of the same node
	// leaves unused, until that one wants them. Default true. False leaves them
	// unused.
	Revocable bool `yaml:"revocable" default:"true"`
	// Shadow decides and counts but never refuses. Default false. While true
	// the origin is not protected.
	Shadow bool `yaml:"shadow" default:"false"`
	// Classes in priority order, highest first; two to 64. Required.
	Classes []Class `yaml:"classes"`
	// Cells bound what single classes get on single nodes. Default none.
	Cells []Cell `yaml:"cells"`
}

// Mode is a budget's mode.
type Mode string

// The two modes.
const (
	PoolFirst Mode = "pool-first"
	Paper     Mode = "paper"
)

func (Mode) Choices() []string { return []string{string(PoolFirst), string(Paper)} }

// Headroom is a budget's headroom rule.
type Headroom string

// The three rules.
const (
	ByBase     Headroom = "by-base"
	OwnerKeeps Headroom = "owner-keeps"
	ByDemand   Headroom = "by-demand"
)

func (Headroom) Choices() []string {
	return []string{string(ByBase), string(OwnerKeeps), string(ByDemand)}
}

// Class is one class of a budget.
type Class struct {
	// Name of the class, shown in metrics and named by rules. Required, unique
	// in its budget.
	Name string `yaml:"name"`
	// Reserve is the part of the limit that is this class's own, as a
	// percentage or as a rate; all classes of a budget use the same form and
	// add up to the limit exactly. May be 0%: the class then lives on what
	// others leave. Required.
	Reserve Portion `yaml:"reserve"`
	// Level1 is how nodes share within the class: proportional to what they
	// lack, or maxmin (a node gains nothing by overstating its demand). Default
	// proportional for the first class and maxmin for the others; in mode paper
	// with three classes or more (insurance counts as one), proportional for all.
	Level1 Rule `yaml:"level1"`
	// Lend is how much of its reservation the class may lend to others. Range
	// 0% to 100%. Default 100%. Lowering it leaves capacity idle.
	Lend Percent `yaml:"lend" default:"100%"`
	// Borrow is the most the class may borrow, as a percentage of its
	// reservation, or unlimited. 0% never borrows. Default unlimited.
	Borrow Percent `yaml:"borrow" default:"unlimited"`
	// Protect is the part of the reservation that higher classes with preempts
	// cannot take away. Range 0% to 100%. Default 100%: all of it.
	Protect Percent `yaml:"protect" default:"100%"`
	// Preempts lets the class take from lower ones what those hold above their
	// protected part, even while they use it. Default false. True gives up the
	// promise that a reservation is kept.
	Preempts bool `yaml:"preempts" default:"false"`
	// Tenants bounds each tenant (API key, customer, client address: whatever
	// the doors' tenant says) inside the class, at each node by itself. Default
	// none: one tenant may use the whole class.
	Tenants *Tenants `yaml:"tenants,omitempty"`
}

// Tenants bounds the tenants of one class.
type Tenants struct {
	// Each is what one tenant gets: a percentage of the class's share at the node
	// or of the class's base there, whichever is more, so that over all nodes it
	// gets about that part of the class at most; or a rate at each node, in the
	// unit of the limit. A class without a reservation has no base and takes
	// a rate only. Above 0. Required.
	Each Portion `yaml:"each"`
	// Burst is how many seconds of its rate a tenant's bucket holds, at least
	// two requests. Range 10ms to 1h. Default 0s, which means the budget's
	// burst. Raising it lets a tenant save up more.
	Burst time.Duration `yaml:"burst" default:"0s"`
	// Keys is how many tenants the node tells apart at once in this class, 1 to
	// 16,000,000, at 64 bytes each. Default 100000. With more, those that
	// use the least of what they have are forgotten, and begin anew with one
	// request.
	Keys int `yaml:"keys" default:"100000"`
}

// Rule is a class's level1 rule.
type Rule string

// The two rules.
const (
	Proportional Rule = "proportional"
	MaxMin       Rule = "maxmin"
)

func (Rule) Choices() []string { return []string{string(Proportional), string(MaxMin)} }

// Cell bounds one class on one node.
type Cell struct {
	// Node is the name of an entry of nodes. Required.
	Node string `yaml:"node"`
	// Class is the name of a class of this budget. Required.
	Class string `yaml:"class"`
	// Floor is what the cell keeps even without demand. Default 0/s: none. The
	// floors of a class must fit its reservation. Raising it idles capacity.
	Floor *Amount `yaml:"floor,omitempty"`
	// Cap is the most the cell may get. Not below floor; 0/s means nothing.
	// Default none. What no cap can hold stays unused.
	Cap *Amount `yaml:"cap,omitempty"`
}
