package schedule

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Kind is what an action does.
type Kind uint8

// The kinds of action. Node is whom it happens to.
const (
	// Publish: the process makes its cycle and sends a row. Arg is a sum of the
	// flags below. The row is known by the action's ID.
	Publish Kind = iota
	// Deliver: the row of action Ref arrives at Node, with the body of an epoch:
	// Arg is the ID of the action that made it, or one of the marks below.
	Deliver
	// Pass: Arg ns of true time pass.
	Pass
	// Wake: time passes until the process's ledger has something to do, at most
	// Arg ns, and it does that.
	Wake
	// Control: the process does what time allows; its data plane follows.
	Control
	// Demand of the process for budget Ref becomes Arg micro-units/s.
	Demand
	// Skew: the process's clock runs at 1 + Arg/1,000,000 from now on.
	Skew
	// Pause stops the process's control; its data plane goes on. Resume ends it.
	Pause
	Resume
	// Watchdog: the process's control stands still, and its watchdog enforces the
	// share that needs no peer, if that is safe by its clock.
	Watchdog
	// Crash ends the process.
	Crash
	// Hang makes the process a ghost: its control never comes back, its data plane
	// goes on, and its name may be started again.
	Hang
	// Lose deletes the disk of the name, whose process does not run.
	Lose
	// Fill makes the disk of the name refuse all writes; Empty ends that.
	Fill
	Empty
	// Start starts the name with the config of the epoch made by action Ref. Arg
	// seeds the details; odd: the wall clock was set back.
	Start
	// Amnesia starts the name as if for the first time, which is not true: the
	// operator forgot the flag.
	Amnesia
	// Edit: the operator changes the config at the process. Arg seeds the
	// details, Ref is a sum of the flags below.
	Edit
	// Freeze and Thaw are the operator's kill switch.
	Freeze
	Thaw
	// Heal: all faults end and everybody talks. It is the last action.
	Heal

	kindCount
)

// String returns the word for k in a schedule.
func (k Kind) String() string {
	switch k {
	case Publish:
		return "publish"
	case Deliver:
		return "deliver"
	case Pass:
		return "pass"
	case Wake:
		return "wake"
	case Control:
		return "control"
	case Demand:
		return "demand"
	case Skew:
		return "skew"
	case Pause:
		return "pause"
	case Resume:
		return "resume"
	case Watchdog:
		return "watchdog"
	case Crash:
		return "crash"
	case Hang:
		return "hang"
	case Lose:
		return "lose"
	case Fill:
		return "fill"
	case Empty:
		return "empty"
	case Start:
		return "start"
	case Amnesia:
		return "amnesia"
	case Edit:
		return "edit"
	case Freeze:
		return "freeze"
	case Thaw:
		return "thaw"
	case Heal:
		return "heal"
	}
	return "unknown"
}

// Flags of Publish.
const (
	LowerFirst   = 1 << iota // the data plane also follows the settlement before the row is made
	DieUnwritten             // crash after Publish, before state is written
	DieUnsent                // crash after state is written, before the row leaves
)

// Flags of Deliver, in Ref's place of the epoch.
const (
	NoBody  = -1 // the row comes without any epoch's body
	OwnBody = -2 // with the body of the epoch it was published at
)

// Flags of Edit.
const (
	ForceOut   = 1 << iota // force out whoever is truly gone
	Roster                 // members join and leave
	Budgets                // budgets come and go
	OnTop                  // the version is above the adopted epoch's, not only the parent's
	DropForced             // forced members leave the roster
	Heavy                  // one member gets nearly everything
)

// leaves, added to a name in Action.Then, makes an edit leave it out.
const leaves = 128

// Action is one event of a schedule.
type Action struct {
	// ID is unique in a schedule and stays when others are taken out. Rows and
	// epochs are known by the ID of the action that made them. IDs start at 1;
	// epoch 0 is the first one.
	ID   int32
	Ref  int32
	Arg  int64
	Kind Kind
	Node uint8
	// Then is how a row is delivered, a sum of the flags below; or which name, less
	// one, an edit takes in (or, with leaves added, leaves out).
	Then uint8
}

// How a row is delivered.
const (
	thenControl = 1 << iota // then the process does what the news allows
	thenInstall             // then its data plane follows
	learnOnly               // the epoch is remembered and not adopted, as one on trial elsewhere
	copyForOne              // as a copy that carries only what the publisher heard of Node
)

// String returns the action as one line: ID, kind, node, ref, arg, then.
func (a Action) String() string {
	return fmt.Sprintf("%d %s n%d %d %d %d", a.ID, a.Kind, a.Node, a.Ref, a.Arg, a.Then)
}

// Format returns a schedule as text, one action a line.
func Format(schedule []Action) string {
	var b strings.Builder
	for _, a := range schedule {
		b.WriteString(a.String())
		b.WriteByte('\n')
	}
	return b.String()
}

// Parse reads what Format wrote. Empty lines and lines that start with # are
// skipped. The error names the line.
func Parse(text string) ([]Action, error) {
	var schedule []Action
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		a, err := parseAction(line)
		if err != nil {
			return nil, fmt.Errorf("line %d, %q: %w", i+1, line, err)
		}
		schedule = append(schedule, a)
	}
	return schedule, nil
}

func parseAction(line string) (a Action, err error) {
	f := strings.Fields(line)
	if len(f) != 6 {
		return a, errors.New("not six fields")
	}
	for a.Kind.String() != f[1] {
		if a.Kind++; a.Kind == kindCount {
			return a, errors.New("unknown kind")
		}
	}
	number := func(s string, bits int) int64 {
		v, e := strconv.ParseInt(s, 10, bits)
		err = errors.Join(err, e)
		return v
	}
	small := func(s string) uint8 {
		v, e := strconv.ParseUint(s, 10, 8)
		err = errors.Join(err, e)
		return uint8(v)
	}
	a.ID = int32(number(f[0], 32))
	a.Node = small(strings.TrimPrefix(f[2], "n"))
	a.Ref = int32(number(f[3], 32))
	a.Arg = number(f[4], 64)
	a.Then = small(f[5])
	return a, err
}
