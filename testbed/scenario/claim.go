package scenario

import (
	"time"

	"subak/internal/config"
	"subak/testbed/evidence"
)

// Claim is one figure against one bound.
type Claim struct {
	Kind ClaimKind `yaml:"kind"`
	// Variant whose run it is about. Default subak.
	Variant VariantName `yaml:"variant" default:"subak"`
	// Phase it looks at. Default the whole run.
	Phase string `yaml:"phase"`
	// Versus is the phase to compare with.
	Versus string `yaml:"versus"`
	// Fault it is about, by name.
	Fault string `yaml:"fault"`
	// Class and Nodes narrow it down. Default all.
	Class string   `yaml:"class"`
	Nodes []string `yaml:"nodes"`
	// Within, Least and Most are the bound, as the kind says; where the design
	// gives it, it need not be written.
	Within time.Duration  `yaml:"within" default:"0s"`
	P95    time.Duration  `yaml:"p95" default:"0s"`
	Least  config.Percent `yaml:"least" default:"0%"`
	Most   config.Percent `yaml:"most" default:"0%"`
	Count  int64          `yaml:"count" default:"0"`
	// Counter is a Prometheus counter, with labels as in the text format.
	Counter string `yaml:"counter"`
}

// ClaimKind is what is claimed.
type ClaimKind string

// The kinds. All of them fail when what they are about did not happen.
const (
	// BoundKept: in no window of any length did more reach the origin than the
	// limit in force allows.
	BoundKept ClaimKind = "bound-kept"
	// BoundBroken: it did, by Least at least. For baselines.
	BoundBroken ClaimKind = "bound-broken"
	// Served: of what was offered to nodes that were up, at least Least was
	// admitted (Class, Nodes, Phase).
	Served ClaimKind = "served"
	// Simulated: of what was offered of Class, at most Most less was admitted
	// than the allocation alone gives on the same trace, one cycle late.
	Simulated ClaimKind = "simulated"
	// Used: while a fault cuts nodes off from each other, each side serves at
	// least Least of what it is offered or can reach, whichever is less, and
	// enforces at least its own base. From one term after the cut on.
	Used ClaimKind = "used"
	// OwnBase: from one lease after the cut on, each of Nodes enforces at most its
	// own base.
	OwnBase ClaimKind = "own-base"
	// Unseen: nodes that are cut off from each other stop counting each other
	// as live Within. Default the live window and a tick.
	Unseen ClaimKind = "unseen"
	// Reconverged: Within after the end of Fault every node that is up sees all
	// others that are, and Least (default 99%) of what could be used is.
	Reconverged ClaimKind = "reconverged"
	// Live: Within after the end of Fault every node that is up sees all others
	// that are.
	Live ClaimKind = "live"
	// Digest: Within after the end of Fault the nodes have agreed on one view.
	Digest ClaimKind = "digest"
	// Reaction: the mean of the timed demand steps is at most Within, their
	// 95th percentile at most P95 (0: not judged).
	Reaction ClaimKind = "reaction"
	// Silence: no node that is up and is offered requests admits none for
	// longer than Within; after a restart for no longer than the design says.
	Silence ClaimKind = "silence"
	// Errors: at most Count requests to nodes that were up had no answer or
	// one of 500 and above.
	Errors ClaimKind = "errors"
	// Steady: at no time in Phase does the share of any of Nodes lie further
	// than Most from its median.
	Steady ClaimKind = "steady"
	// Changes: in Phase the share of none of Nodes changes by more than 1% of
	// its base more than Count times.
	Changes ClaimKind = "changes"
	// Latency: the 99th percentile of answers in Phase is at most Within; with
	// Versus, at most Within above that of the phase Versus.
	Latency ClaimKind = "latency"
	// Ready: each node that Fault restarted is ready Within of its start.
	// Default what the design says: a lease, and the proof.
	Ready ClaimKind = "ready"
	// InForce: what Fault applied is in force at every node Within.
	InForce ClaimKind = "in-force"
	// LeaveSeen: peers stop counting a node that Fault stops Within of the TERM.
	LeaveSeen ClaimKind = "leave-seen"
	// Exit: a node that Fault stops has ended Within of the TERM.
	Exit ClaimKind = "exit"
	// Reuse: what a killed node had borrowed is used by others after the term
	// and the guard, and not before.
	Reuse ClaimKind = "reuse"
	// Refused: everything that Fault sent was refused, and nothing came in force.
	Refused ClaimKind = "refused"
	// Doctored: subak doctor finds nothing to complain of.
	Doctored ClaimKind = "doctored"
	// CounterAtMost: the counter's sum over Nodes is at most Count.
	CounterAtMost ClaimKind = "counter-at-most"
	// CounterAtLeast: the counter's sum over Nodes is at least Count.
	CounterAtLeast ClaimKind = "counter-at-least"
	// Memory: the resident memory of every node stays at or below Count MB.
	Memory ClaimKind = "memory"
	// CPU: no node uses more than Most of a core in Phase.
	CPU ClaimKind = "cpu"
	// Gossip: no node sends more than Count bytes/s in Phase (0: reported only).
	Gossip ClaimKind = "gossip"
	// Idle: at most Most of the limit is left unused in Phase while more is
	// offered.
	Idle ClaimKind = "idle"
)

// Choices lists the kinds.
func (ClaimKind) Choices() []string {
	return []string{
		string(BoundKept), string(BoundBroken), string(Served), string(Simulated), string(Used), string(OwnBase), string(Unseen),
		string(Reconverged), string(Live), string(Digest), string(Reaction), string(Silence), string(Errors),
		string(Steady), string(Changes), string(Latency), string(Ready), string(InForce), string(LeaveSeen),
		string(Exit), string(Reuse), string(Refused), string(Doctored), string(CounterAtMost),
		string(CounterAtLeast), string(Memory), string(CPU), string(Gossip), string(Idle),
	}
}

// Of is the variant that the claim is about.
func (c *Claim) Of() evidence.Variant { return evidence.Variant(c.Variant) }
