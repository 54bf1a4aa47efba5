package scenario

import (
	"time"

	"subak/internal/config"
)

// Fault is one thing that is done to the cluster: something breaks, or somebody
// operates it.
//
// The runner leaves in the evidence, for each fault, one [evidence.Band] with the
// fault's kind and its name as label, from when it began to when it ended (for
// what is over at once, when it was done); and Events of the kinds that the
// kind's comment names, with the fault's name as the first word of the text.
type Fault struct {
	// Name by which claims refer to it. Default the kind; unique.
	Name string    `yaml:"name"`
	Kind FaultKind `yaml:"kind"`
	// In is the phase it happens in; At counts from that phase's start, or
	// from the run's without In.
	In string        `yaml:"in"`
	At time.Duration `yaml:"at" default:"0s"`
	// For is how long it lasts. Default to the end of its phase, or of the run
	// without In. Not for kinds that are over at once.
	For time.Duration `yaml:"for" default:"0s"`
	// Through is the last phase it lasts through, instead of For.
	Through string `yaml:"through"`
	// Nodes that it befalls. Default all, where the kind allows that.
	Nodes []string `yaml:"nodes"`
	// Groups are the sides of a partition; nodes in none of them form one more.
	Groups [][]string `yaml:"groups"`
	// From and To are the ends of the links it befalls. Default all.
	From []string `yaml:"from"`
	To   []string `yaml:"to"`
	// Rule of the kind links.
	Rule Rule `yaml:"rule"`
	// CPU that a slow node has left, of one core.
	CPU config.Percent `yaml:"cpu" default:"0%"`
	// Signal of a restart: kill (-9) or term. Default term.
	Signal Signal `yaml:"signal" default:"term"`
	// Every is the time between two nodes of a rolling restart, or between
	// two steps of a key rotation. 0: all at once.
	Every time.Duration `yaml:"every" default:"0s"`
	// Rest is how long a restarted node stays down. Default 0.
	Rest time.Duration `yaml:"rest" default:"0s"`
	// Via is the node that an operator asks. Default the first that is up.
	Via string `yaml:"via"`
	// Edit of the kind apply.
	Edit Edit `yaml:"edit"`
	// Poison of the kind poison.
	Poison []Poison `yaml:"poison"`
	// Class of the endless stream.
	Class string `yaml:"class"`
}

// FaultKind is what kind of fault it is.
type FaultKind string

// The kinds. "Lasts" means that the kind takes For.
const (
	// Partition cuts all links between different groups. Lasts.
	Partition FaultKind = "partition"
	// Cut takes away the links From-To in both directions. Lasts.
	Cut FaultKind = "cut"
	// OneWay takes away the links From-To in that direction only. Lasts.
	OneWay FaultKind = "one-way"
	// Isolate cuts each of Nodes off from everybody. Lasts.
	Isolate FaultKind = "isolate"
	// Links adds Rule to the links between From and To, both directions. Lasts.
	Links FaultKind = "links"
	// Kill ends the processes of Nodes by kill -9; they are started again when
	// it ends, unless it lasts to the end of the run. Events: kill, start,
	// ready. Lasts.
	Kill FaultKind = "kill"
	// Stop ends the processes of Nodes by TERM; they are started again when it
	// ends, unless it lasts to the end of the run. Events: stop (when TERM is
	// sent), exit, start, ready. Lasts.
	Stop FaultKind = "stop"
	// Restart ends each of Nodes by Signal and starts it again after Rest, one
	// each Every. Events: kill or stop, exit, start, ready. Over at once: the
	// band ends when the last one is started.
	Restart FaultKind = "restart"
	// Pause stops the processes by SIGSTOP and continues them. Lasts.
	Pause FaultKind = "pause"
	// Slow limits the processes to CPU. Lasts.
	Slow FaultKind = "slow"
	// Join starts absent Nodes and applies the roster with them. Events: start,
	// apply, in-force, ready. Over at once.
	Join FaultKind = "join"
	// Leave applies the roster without Nodes and then stops these. Events:
	// apply, in-force, stop, exit. Over at once.
	Leave FaultKind = "leave"
	// Forget applies the roster without the dead Nodes by `subak forget`.
	// Events: apply, in-force. Over at once.
	Forget FaultKind = "forget"
	// Apply puts Edit in force. Events: apply, in-force. Over at once.
	Apply FaultKind = "apply"
	// Rotate gives the cluster another key in three steps, one each Every: the
	// new one last everywhere, the new one first everywhere, the old one gone
	// everywhere. Each is a restart of one node after the other. Events: stop,
	// exit, start, ready. Over at once: the band ends with the last step.
	Rotate FaultKind = "rotate"
	// PoisonKind sends what Poison lists. Events: refused or accepted, with
	// what it was. Over at once.
	PoisonKind FaultKind = "poison"
	// Stream opens a request of Class at each of Nodes whose answer never
	// ends, and closes it at its end. Events: exit, when it breaks. Lasts.
	Stream FaultKind = "stream"
	// Doctor runs `subak doctor` for each of Nodes. Events: doctor, with ok or
	// what it complains of. Over at once.
	Doctor FaultKind = "doctor"
)

// Choices lists the kinds.
func (FaultKind) Choices() []string {
	return []string{
		string(Partition), string(Cut), string(OneWay), string(Isolate), string(Links), string(Kill), string(Stop),
		string(Restart), string(Pause), string(Slow), string(Join), string(Leave), string(Forget), string(Apply),
		string(Rotate), string(PoisonKind), string(Stream), string(Doctor),
	}
}

// Signal is how a process is ended.
type Signal string

// The two ways.
const (
	SIGTERM Signal = "term"
	SIGKILL Signal = "kill"
)

// Choices lists them.
func (Signal) Choices() []string { return []string{string(SIGTERM), string(SIGKILL)} }

// Edit is a change of what all nodes agree on. Empty parts stay as they are.
type Edit struct {
	Limit   config.Amount `yaml:"limit" default:"0/s"`
	Classes []Class       `yaml:"classes"`
}

// Poison is one thing that must be refused.
type Poison string

// What can be sent.
const (
	// Garbage is hostile bytes to the gossip port of every node: noise, and
	// packets that are almost right. "refused" if all nodes still answer.
	Garbage Poison = "garbage"
	// BrokenFile is a configuration with faults.
	BrokenFile Poison = "broken-file"
	// ForeignFile is a sound one of another cluster.
	ForeignFile Poison = "foreign-file"
	// OldFile is a content that was in force before.
	OldFile Poison = "old-file"
	// Conflict is two different edits applied at two nodes at once: one wins.
	Conflict Poison = "conflict"
)

// Choices lists them.
func (Poison) Choices() []string {
	return []string{string(Garbage), string(BrokenFile), string(ForeignFile), string(OldFile), string(Conflict)}
}
