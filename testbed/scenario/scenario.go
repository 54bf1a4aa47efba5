// Package scenario holds what the testbed plays: each scenario is one YAML file
// that tells where the nodes are, what is offered, what breaks when, and what is
// claimed of it.
//
// # Model
//
// A run has one time line that begins with the load (time 0) and is divided into
// phases. What is offered in a phase is the scenario's load plus the phase's own.
// A fault begins at an offset into a phase, or into the run, and lasts for a time
// or to the end of its phase. A scenario may be run in several variants, which
// are compared: the same story with nodes that share the budget in another way,
// often shorter. [Scenario.For] gives the story of one variant with every time,
// name and node written out; the runner plays that, and claims are judged by it.
//
// # Units
//
// Rates of load are requests/s over all nodes named, or a percentage of the
// budget's limit at the start. Times are since the start of the load.
//
// # Strictness
//
// [Parse] reports every fault of a file at once, each with its line, the field
// and the mend. A scenario that it returns can be played.
//
// The package is pure and holds no state; a Scenario is not written after Parse.
package scenario

import (
	"time"

	"subak/internal/config"
	"subak/testbed/evidence"
)

// Scenario is one story.
type Scenario struct {
	// Name is that of the file without .yaml. Required.
	Name string `yaml:"name"`
	// Title says in a line what happens. Required.
	Title string `yaml:"title"`
	// Why says what could go wrong here. Required.
	Why string `yaml:"why"`
	// Lessons are the field reports it tests, such as O12.
	Lessons []string `yaml:"lessons"`
	// Group is empty for the list that is run when nothing is named, else the
	// name by which a set of scenarios is asked for.
	Group string `yaml:"group"`
	// CI puts it into the short list that is run at every change.
	CI bool `yaml:"ci" default:"false"`
	// Topology is five, cities22 or the path of a CSV of round trips. Default
	// five.
	Topology string `yaml:"topology" default:"five"`
	// Replicas is how many nodes each place of the topology has; the second of
	// ams is ams2, and so on, each with the place's weight. Default 1.
	Replicas int `yaml:"replicas" default:"1"`
	// Seed of the load and of the network. Default 1.
	Seed int64 `yaml:"seed" default:"1"`
	// Variants are what is run and compared. Default subak only.
	Variants []Variant `yaml:"variants"`
	// Absent are nodes that neither run nor are listed at first: they join.
	Absent []string `yaml:"absent"`

	// Watch is how often the nodes are asked for their state. Default 0: as
	// often as the runner finds bearable. Where idle nodes are measured, asking
	// is most of what they do.
	Watch time.Duration `yaml:"watch" default:"0s"`

	Budget  Budget  `yaml:"budget"`
	Cluster Cluster `yaml:"cluster"`
	// Links is added to every link between two places for the whole run.
	Links Rule `yaml:"links"`

	// Load is offered throughout.
	Load []Load `yaml:"load"`
	// Phases divide the run. Required unless there is a Trace.
	Phases []Phase `yaml:"phases"`
	// Trace is a contention scenario, instead of Load and Phases. It becomes the
	// only phase, "trace".
	Trace *Trace `yaml:"trace,omitempty"`
	// Steps are demand steps to be timed, after the phases. They become the
	// phases "rest 1", "step 1", "rest 2" and so on.
	Steps  *Steps  `yaml:"steps,omitempty"`
	Faults []Fault `yaml:"faults"`
	Claims []Claim `yaml:"claims"`
}

// Variant is one way to run the scenario.
type Variant struct {
	// Name is subak, static or naive.
	Name VariantName `yaml:"name"`
	// Lengths replaces the lengths of phases, by name: a comparison needs less
	// time than a proof.
	Lengths map[string]time.Duration `yaml:"lengths"`
}

// VariantName is the name of an [evidence.Variant].
type VariantName string

// Choices lists the variants.
func (VariantName) Choices() []string {
	return []string{string(evidence.Subak), string(evidence.Static), string(evidence.Naive)}
}

// Budget is what the nodes share.
type Budget struct {
	// Limit in whole requests/s. Default 2000/s.
	Limit config.Amount `yaml:"limit" default:"2000/s"`
	// Burst is how long a bucket may save up. Default 500ms: the shorter, the
	// less room the bound leaves for a mistake.
	Burst time.Duration `yaml:"burst" default:"500ms"`
	// Insurance is headroom for the first class. Default 10%.
	Insurance config.Percent `yaml:"insurance" default:"10%"`
	// Classes by priority. Default confirmed 60%, uncleared 40%.
	Classes []Class `yaml:"classes"`
	// Extra is how many further budgets there are, with the same classes and
	// without any load. Default 0.
	Extra int `yaml:"extra" default:"0"`
}

// Class is one class of the budget.
type Class struct {
	Name    string         `yaml:"name"`
	Reserve config.Percent `yaml:"reserve"`
}

// Cluster is what a scenario varies in the configuration of its nodes.
type Cluster struct {
	Tick time.Duration `yaml:"tick" default:"200ms"`
	Term time.Duration `yaml:"term" default:"3s"`
	// Profile of failure detection: wan, lan or local. Default wan.
	Profile config.Profile `yaml:"profile" default:"wan"`
	// IPv6 lets all nodes use it for everything. Default false.
	IPv6 bool `yaml:"ipv6" default:"false"`
	// NAT are nodes behind a port-mapping router: they listen on one port and
	// are reached at another one of another address.
	NAT []string `yaml:"nat"`
	// Older nodes run the binary of another commit.
	Older *Older `yaml:"older,omitempty"`
}

// Older is a part of the nodes that runs another version.
type Older struct {
	Commit string   `yaml:"commit"`
	Nodes  []string `yaml:"nodes"`
}

// Rule is what happens to packets of a link, beyond the topology's delay.
type Rule struct {
	Delay     time.Duration  `yaml:"delay" default:"0s"`  // added
	Jitter    time.Duration  `yaml:"jitter" default:"0s"` // up to so much more, each packet
	Loss      config.Percent `yaml:"loss" default:"0%"`
	Duplicate config.Percent `yaml:"duplicate" default:"0%"`
	Reorder   config.Percent `yaml:"reorder" default:"0%"`
}

// Phase is a part of the run.
type Phase struct {
	Name   string        `yaml:"name"`
	Length time.Duration `yaml:"length"` // a whole number of bins of 100 ms
	Load   []Load        `yaml:"load"`   // beside what is offered throughout
}

// Load is requests of one class.
type Load struct {
	Class string `yaml:"class"`
	// Nodes whose clients send it. Default all that are not absent.
	Nodes []string `yaml:"nodes"`
	// Rate over all of Nodes: a percentage of the limit, or such as 800/s.
	Rate config.Portion `yaml:"rate"`
	// Spread is how Nodes divide it: weight (default) or equal.
	Spread Spread `yaml:"spread" default:"weight"`
	// Even spaces the requests evenly. Default false: independent clients.
	Even bool `yaml:"even" default:"false"`
}

// Spread is how nodes divide a load.
type Spread string

// The two ways.
const (
	ByWeight Spread = "weight"
	Equally  Spread = "equal"
)

// Choices lists them.
func (Spread) Choices() []string { return []string{string(ByWeight), string(Equally)} }

// Trace is a contention scenario of the evaluation, as load.
type Trace struct {
	Name   string        `yaml:"name"`              // as internal/contention lists them
	Cycle  time.Duration `yaml:"cycle"`             // how long each cycle of the trace is offered
	Cycles int           `yaml:"cycles"`            // how many of them
	First  int           `yaml:"first" default:"0"` // cycle to begin with
	// Hasten lets the slow shapes (S5, S7) run so many times faster. Default 1.
	Hasten int `yaml:"hasten" default:"1"`
}

// Each stands for every contention scenario.
const Each = "each"

// Steps are demand steps: after Rest, one of Nodes after the other is offered Rate
// of Class for Gap, beside what is offered throughout. Only the rise is timed.
type Steps struct {
	Count int            `yaml:"count"`
	Gap   time.Duration  `yaml:"gap"`
	Rest  time.Duration  `yaml:"rest"`
	Nodes []string       `yaml:"nodes"` // taken in turn
	Class string         `yaml:"class"`
	Rate  config.Portion `yaml:"rate"`
}
