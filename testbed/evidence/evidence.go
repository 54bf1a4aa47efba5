// Package evidence is what one run of a scenario leaves behind: everything that
// was offered, admitted, enforced, received and done, with its times. The runner
// writes it, claims are judged by it and the report is drawn from it, so that a
// claim can be judged again, or a plot drawn anew, without running anything.
//
// Units: times are time.Duration since the start of the load (negative before
// it), rates requests/s, counts requests unless a name says bytes. Series have
// one value for each bin of length Run.Bin, from time 0. Nodes and classes are
// named by their position in Run.Nodes and Run.Classes; -1 is "none in
// particular". A Run holds plain data and is written as JSON.
package evidence

import (
	"time"

	"subak/chaos/bound"
	"subak/testbed/load"
)

// Variant is how the nodes of a run share the budget.
type Variant string

// The product and what it is compared with.
const (
	// Subak is the product as people run it.
	Subak Variant = "subak"
	// Static gives every node its base for ever: nothing is lent.
	Static Variant = "static"
	// Naive gossip lets every node enforce the target that its own view gives,
	// among the nodes it believes alive, without loans.
	Naive Variant = "naive"
)

// Run is one scenario run once.
type Run struct {
	Scenario string    `json:"scenario"`
	Title    string    `json:"title"`
	Why      string    `json:"why,omitempty"`   // the scenario's reason
	Group    string    `json:"group,omitempty"` // the scenario's group
	Variant  Variant   `json:"variant"`
	Version  string    `json:"version"` // of the binary
	Started  time.Time `json:"started"`
	Seed     uint64    `json:"seed"`

	Topology string        `json:"topology"`
	MaxRTT   time.Duration `json:"max_rtt_ns"`
	Nodes    []string      `json:"nodes"` // also those that join later
	Weights  []int64       `json:"weights"`
	Classes  []string      `json:"classes"` // by priority
	Reserve  []int64       `json:"reserve_ppm"`
	Burst    time.Duration `json:"burst_ns"`
	Tick     time.Duration `json:"tick_ns"`
	Term     time.Duration `json:"term_ns"`
	Limit    int64         `json:"limit"`  // at the start
	Limits   []Limit       `json:"limits"` // changes of it, by time

	Length time.Duration `json:"length_ns"`
	Bin    time.Duration `json:"bin_ns"`
	Phases []Phase       `json:"phases"`
	Bands  []Band        `json:"bands"`  // faults as they really happened
	Events []Event       `json:"events"` // single instants

	// Load is what the generators saw: Load.Streams[class*len(Nodes)+node].
	Load load.Report `json:"load"`
	// Legit is what a trace says of the last class: how much of what was offered
	// was no flood, and as much of what was admitted, place by place and cycle by
	// cycle; nobody can tell the two apart.
	LegitOffered  float64 `json:"legit_offered,omitempty"`
	LegitAdmitted float64 `json:"legit_admitted,omitempty"`

	Origin Origin   `json:"origin"`
	Series []Series `json:"series"` // one for each node
	// Steps are the demand steps whose reaction was timed.
	Steps []Step `json:"steps,omitempty"`
	// Network counts what the emulated WAN did.
	Network map[string]int64 `json:"network,omitempty"`
	// Busy says in words how the machine was too slow for what was measured;
	// empty means that it was not.
	Busy []string `json:"busy,omitempty"`
	// Logs is the directory with the log of every node; empty when removed.
	Logs string `json:"logs,omitempty"`
}

// Limit is the budget after a change: To is in force at every node at In, and
// before At no node enforced it. Between the two the larger one binds.
type Limit struct {
	At    time.Duration `json:"at_ns"`
	In    time.Duration `json:"in_ns"`
	Limit int64         `json:"limit"`
}

// Phase is a part of the load.
type Phase struct {
	Name string        `json:"name"`
	From time.Duration `json:"from_ns"`
	To   time.Duration `json:"to_ns"`
}

// Band is a fault with a length. Groups are the sides of a partition, by node.
type Band struct {
	Kind   string        `json:"kind"` // partition, kill, pause, loss, ...
	Label  string        `json:"label"`
	Nodes  []int         `json:"nodes"`
	Groups [][]int       `json:"groups,omitempty"`
	From   time.Duration `json:"from_ns"`
	To     time.Duration `json:"to_ns"`
}

// Event is something done or seen at one instant.
type Event struct {
	At   time.Duration `json:"at_ns"`
	Node int           `json:"node"`
	Kind string        `json:"kind"` // start, ready, kill, stop, apply, in-force, exit, ...
	Text string        `json:"text"`
}

// Origin is the witness.
type Origin struct {
	// Arrivals counts [class][bin].
	Arrivals [][]uint32 `json:"arrivals"`
	// Bound judges the whole run by the limit in force (the larger one while a
	// change is under way), Spread being what was allowed for transit.
	Bound  bound.Report  `json:"bound"`
	Spread time.Duration `json:"spread_ns"`
	// Slower counts arrivals left out for a transit above the spread.
	Slower uint64 `json:"slower"`
	// Peaks are the most arrivals in any window of each length, by phase:
	// [phase][window], windows as in Windows.
	Windows []time.Duration `json:"windows_ns"`
	Peaks   [][]int         `json:"peaks"`
	// Over lists when and by how much the bound was broken, longest first; at
	// most 100.
	Over []Over `json:"over,omitempty"`
}

// Over is one window in which more came than the bound allows.
type Over struct {
	At      time.Duration `json:"at_ns"` // its start
	Window  time.Duration `json:"window_ns"`
	Arrived int64         `json:"arrived"`
	Allowed int64         `json:"allowed"`
}

// Series is one node over time. All slices have one value per bin; a bin in
// which a node did not answer repeats the last value, and Up is 0.
type Series struct {
	Up     []uint8   `json:"up"`    // 1: its process runs and answered
	Ready  []uint8   `json:"ready"` // 1: /readyz says so
	Share  []float64 `json:"share"`
	Target []float64 `json:"target"`
	// Shares split Share over the classes, as the node's status says.
	Shares [][]float64 `json:"shares,omitempty"` // [class][bin]
	Demand [][]float64 `json:"demand"`           // [class][bin], the product's own estimate
	// Offered, Admitted and Refused are what the generator saw, by intended time;
	// Errors are requests without an answer or with a status of 500 and above.
	// What clients would have sent to a node without a process is in none of them
	// (it is Away in Load).
	Offered  [][]uint32 `json:"offered"`  // [class][bin]
	Admitted [][]uint32 `json:"admitted"` // [class][bin]
	Refused  [][]uint32 `json:"refused"`  // [class][bin]
	Errors   [][]uint32 `json:"errors"`   // [class][bin]
	Live     []int      `json:"live"`     // members this node counts as live and that do not leave, itself included
	Digest   []string   `json:"digest"`   // of its view; "" while down
	Epoch    []uint64   `json:"epoch"`    // version active there
	// GossipSent and GossipReceived are bytes since the process started.
	GossipSent     []int64 `json:"gossip_sent_bytes"`
	GossipReceived []int64 `json:"gossip_received_bytes"`
	RSS            []int64 `json:"rss_bytes"`
	CPU            []int64 `json:"cpu_ns"` // used since the process started
	// Counters are the values at the end of Prometheus counters that claims name.
	Counters map[string]float64 `json:"counters,omitempty"`
}

// Step is one demand step: offered from At on, and how long until the node's
// enforced share reached 99 % of the target it had at the end.
type Step struct {
	Node   int           `json:"node"`
	At     time.Duration `json:"at_ns"`
	Before float64       `json:"before"` // share
	Target float64       `json:"target"`
	Took   time.Duration `json:"took_ns"` // -1: never
}

// Verdict is one claim judged.
type Verdict struct {
	Claim    string `json:"claim"`    // in words
	Measured string `json:"measured"` // figure with unit
	Bound    string `json:"bound"`    // what it is to be, with unit
	Kept     bool   `json:"kept"`
}

// Outcome is a run with its verdicts.
type Outcome struct {
	Run      Run       `json:"run"`
	Verdicts []Verdict `json:"verdicts"`
}

// Kept reports whether every claim was kept.
func (o *Outcome) Kept() bool {
	for _, v := range o.Verdicts {
		if !v.Kept {
			return false
		}
	}
	return true
}
