// Package api holds the JSON of the admin interface: what /v1/status and the
// other routes say, and what the command line, the dashboard and the demo read.
// Rates are whole or fractional units per second here, for people and plots;
// nothing decides by them.
package api

import "time"

// Status is one node's view of itself, its peers and its budgets.
type Status struct {
	Time    time.Time `json:"time"`
	Node    string    `json:"node"`
	Cluster string    `json:"cluster"`
	Version string    `json:"version"`
	// Baseline names what this node is in place of the product, in builds for
	// comparisons: "static" or "naive". A naive one does not keep the budget.
	Baseline   string    `json:"baseline,omitempty"`
	Uptime     float64   `json:"uptime_seconds"`
	Ready      bool      `json:"ready"`
	Reason     string    `json:"reason"` // why not ready, or what ready rests on
	Join       JoinState `json:"join"`
	Frozen     bool      `json:"frozen"`
	Quarantine float64   `json:"quarantine_seconds"` // left; 0 when over
	Proved     bool      `json:"proved"`
	Epoch      Epoch     `json:"epoch"` // zero while Provisional
	// Provisional: started without memory, this node does not know yet what is in
	// force. It enforces 0 and asks its peers.
	Provisional bool `json:"provisional"`
	// Member: the epoch lists this node. One that is not enforces 0.
	Member bool `json:"member"`
	// FileDiffers says what this node's file would change in the epoch.
	FileDiffers []string `json:"file_differs,omitempty"`
	// Change says in words what is under way: an epoch that is not in force here
	// yet, or on trial at a node. Empty for nothing.
	Change     string  `json:"change,omitempty"`
	TickMillis float64 `json:"tick_ms"`
	TermMillis float64 `json:"term_ms"`
	// Alarms are what does not mend itself.
	Alarms []Alarm `json:"alarms,omitempty"`
	// Digests counts the distinct view digests among live peers, this node
	// included: 1 is agreement.
	Digests int      `json:"digests"`
	Members []Member `json:"members"`
	Budgets []Budget `json:"budgets"`
	// Dropped counts foreign bytes refused and queue overflow, by reason.
	Dropped map[string]uint64 `json:"dropped"`
}

// JoinState says whether this node has ever met its peers.
type JoinState string

// The three states of lesson O1, and the explicit single-node set-up.
const (
	NeverJoined JoinState = "never-joined"
	Joined      JoinState = "joined"
	LostPeers   JoinState = "lost-peers"
	Alone       JoinState = "alone"
)

// Epoch is the config epoch a node works under.
type Epoch struct {
	Version     uint64 `json:"version"`
	Hash        string `json:"hash"`
	Fingerprint string `json:"fingerprint"`
	Acked       bool   `json:"acked"`
	Active      bool   `json:"active"`
}

// Member is one node of the roster, or a stranger that gossip met.
type Member struct {
	Name        string  `json:"name"`
	Address     string  `json:"address"`
	Self        bool    `json:"self"`
	Listed      bool    `json:"listed"` // in the roster of the epoch
	Weight      int64   `json:"weight"`
	Gossip      string  `json:"gossip"` // alive, suspect, dead, left, unknown
	Live        bool    `json:"live"`   // fresh rows both ways: takes part in the allocation
	AgeMillis   float64 `json:"age_ms"` // of its newest row; -1 when none
	RTTMillis   float64 `json:"rtt_ms"` // -1 when unknown
	Incarnation string  `json:"incarnation"`
	Sequence    uint64  `json:"sequence"`
	Digest      string  `json:"digest"`
	Agrees      bool    `json:"agrees"` // its digest equals this node's
	Refused     string  `json:"refused,omitempty"`
	Clock       *Clock  `json:"clock,omitempty"`       // nil while nothing is known of it
	Provisional bool    `json:"provisional,omitempty"` // does not know yet what is in force
}

// Budget is one budget as this node sees it.
type Budget struct {
	Name         string  `json:"name"`
	Unit         string  `json:"unit"` // "/s" or "B/s"
	Limit        float64 `json:"limit"`
	BurstSeconds float64 `json:"burst_seconds"`
	Mode         string  `json:"mode"`
	Shadow       bool    `json:"shadow"`
	// This node's own figures.
	Base    float64 `json:"base"`
	Ceiling float64 `json:"ceiling"`
	Share   float64 `json:"share"` // enforced now
	Target  float64 `json:"target"`
	Lent    float64 `json:"lent"`     // outstanding bound, not just the newest row
	Borrow  float64 `json:"borrowed"` // in force now
	// Live sums over live nodes: demand, and what the view says they enforce.
	SumDemand float64    `json:"sum_demand"`
	SumShare  float64    `json:"sum_share"`
	Classes   []Class    `json:"classes"` // this node
	Cells     []Location `json:"cells"`   // every roster node
	Loans     []Loan     `json:"loans"`
}

// Class is one class of one budget on this node.
type Class struct {
	Name        string  `json:"name"`
	Reservation float64 `json:"reservation"`
	Demand      float64 `json:"demand"`
	Target      float64 `json:"target"`
	Share       float64 `json:"share"`
	Offered     uint64  `json:"offered_total"`
	Admitted    uint64  `json:"admitted_total"`
	Refused     uint64  `json:"refused_total"`
	Borrowed    uint64  `json:"borrowed_total"` // admitted on another class's unused tokens
	RefusedRate float64 `json:"refused_rate"`   // over the last second or two
}

// Location is one node's column of a budget: per class demand, target.
type Location struct {
	Node    string    `json:"node"`
	Live    bool      `json:"live"`
	Ceiling float64   `json:"ceiling"` // 0 for another node that is outside the pool: frozen, or without a base after a restart
	Share   float64   `json:"share"`   // ceiling - lent + borrowed, by the rows seen
	Demand  []float64 `json:"demand"`
	Target  []float64 `json:"target"`
	Refused []float64 `json:"refused"` // counted on this node; max(0, demand - target), an estimate, for others
}

// Loan is one loan seen in the rows.
type Loan struct {
	From   string  `json:"from"`
	To     string  `json:"to"`
	Amount float64 `json:"amount"`
}

// Explanation says in figures and words why a cell got what it got.
type Explanation struct {
	Budget   string   `json:"budget"`
	Class    string   `json:"class"`
	Node     string   `json:"node"`
	Demand   float64  `json:"demand"`
	Base     float64  `json:"base"`
	Kept     float64  `json:"kept"`     // of its own base
	Level1   float64  `json:"level1"`   // from its classmates' unused base
	Borrowed float64  `json:"borrowed"` // from other classes
	Lent     float64  `json:"lent"`     // to other classes and cells
	Headroom float64  `json:"headroom"`
	Target   float64  `json:"target"`
	Share    float64  `json:"share"` // enforced; known for the answering node only, else -1
	Words    []string `json:"words"`
}

// Error is the JSON body of every refusal of the admin interface.
type Error struct {
	Error string `json:"error"`
}
