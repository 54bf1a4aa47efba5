package timed

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// FaultKind is what a fault does. Who is the node it happens to, For how long it
// lasts, Arg its size.
type FaultKind uint8

// The kinds of fault. Rates of packets are in parts per million.
const (
	// Loss, Duplicates, Late, Jitter: of all packets Arg ppm are lost or come
	// twice; one in ten comes up to Arg ns late; all come up to Arg ns late, and so
	// in another order.
	Loss FaultKind = iota
	Duplicates
	Late
	Jitter
	// Split: the nodes whose bit is set in Arg and the others do not hear each
	// other. OneWay: the others do not hear those.
	Split
	OneWay
	// Link: Who and With do not hear each other. Flap: every Arg ns that changes.
	// Deaf: Who hears nothing. Mute: nobody hears Who.
	Link
	Flap
	Deaf
	Mute
	// Slow: Who acts on news and timers up to Arg ns late.
	Slow
	// Crash ends the process of Who, and a new one starts after For. Arg is a sum
	// of the flags below.
	Crash
	// DieInPublish is a Crash inside Who's next publication: With is the stage.
	DieInPublish
	// Pause stops the whole process of Who, its requests too (SIGSTOP, a machine
	// suspended). Arg is a sum of the flags below.
	Pause
	// Stall stops Who's decision loop only; its data plane goes on, and its
	// watchdog looks if Arg is above 0, that long after the begin.
	Stall
	// Drift: Who's clocks run at 1 + Arg ppm from now on. Wall: its wall clock
	// jumps by Arg ms.
	Drift
	Wall
	// DiskFull: nothing can be saved at Who.
	DiskFull
	// Demand: from now on Arg milli-units/s of class With%8 of budget With/8
	// arrive at Who.
	Demand
	// Burst: Arg requests at once, of all classes and budgets, at Who.
	Burst
	// Freeze is the operator's kill switch at Who.
	Freeze
	// Leave: Who takes leave, its process ends a second later, and a new one starts
	// after For.
	Leave
	// Poison: every Arg ns somebody sends Who bytes that no node made.
	Poison
	// Edit: an operator changes the config at Who. Arg seeds what.
	Edit
	// Heal: all faults end; for the time For the checkers of quiet times look.
	Heal

	faultKinds
)

var faultNames = [faultKinds]string{
	"loss", "duplicates", "late", "jitter", "split", "one-way", "link", "flap", "deaf", "mute", "slow",
	"crash", "die-in-publish", "pause", "stall", "drift", "wall", "disk-full", "demand", "burst", "freeze", "leave", "poison", "edit", "heal",
}

// String returns the kind's name in a schedule.
func (k FaultKind) String() string {
	if k < faultKinds {
		return faultNames[k]
	}
	return fmt.Sprintf("fault(%d)", uint8(k))
}

// Flags of Crash.
const (
	LoseDisk = 1 << iota // what was saved is gone, where A6 allows it
	Reboot               // the machine's lease clock starts anew
	SetBack              // the wall clock is an hour behind after it
)

// Stages of DieInPublish.
const (
	BeforeSave = iota // dies in the write: the old state stands, the row does not leave
	AfterSave         // the row does not leave
	HalfSent          // every second peer gets the row
	dieStages
)

// Flags of Pause.
const (
	// CutDelivery: the pause falls between the reading of the clock for a packet
	// and its use. CutTurn: between the reading and the turn of the loop. In both
	// cases it begins at the next such moment.
	CutDelivery = 1 << iota
	CutTurn
	// InboxLost: what arrives meanwhile is lost, not queued.
	InboxLost
)

// Fault is one element of a schedule.
type Fault struct {
	At   int64 // ns of true time
	For  int64 // ns
	Arg  int64
	Kind FaultKind
	Who  int16 // -1 for nobody in particular
	With int16
}

// String returns the fault as one line: instant, kind, who, with, duration, size.
func (f Fault) String() string {
	return fmt.Sprintf("%s %s n%d %d %s %d", time.Duration(f.At), f.Kind, f.Who, f.With, time.Duration(f.For), f.Arg)
}

// Format returns a schedule as text, one fault a line.
func Format(schedule []Fault) string {
	var b strings.Builder
	for _, f := range schedule {
		b.WriteString(f.String())
		b.WriteByte('\n')
	}
	return b.String()
}

// Parse reads what Format wrote. Empty lines and lines that start with # are
// skipped. The error names the line.
func Parse(text string) ([]Fault, error) {
	var schedule []Fault
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		f, err := parseFault(line)
		if err != nil {
			return nil, fmt.Errorf("line %d, %q: %w", i+1, line, err)
		}
		schedule = append(schedule, f)
	}
	return schedule, nil
}

func parseFault(line string) (f Fault, err error) {
	w := strings.Fields(line)
	if len(w) != 6 {
		return f, errors.New("not six fields")
	}
	f.Kind = faultKinds
	for k, name := range faultNames {
		if w[1] == name {
			f.Kind = FaultKind(k)
		}
	}
	if f.Kind == faultKinds {
		return f, errors.New("unknown kind")
	}
	number := func(s string, size int) int64 {
		v, e := strconv.ParseInt(s, 10, size)
		err = errors.Join(err, e)
		return v
	}
	span := func(s string) int64 {
		d, e := time.ParseDuration(s)
		err = errors.Join(err, e)
		return int64(d)
	}
	f.At, f.For = span(w[0]), span(w[4])
	f.Who, f.With = int16(number(strings.TrimPrefix(w[2], "n"), 16)), int16(number(w[3], 16))
	f.Arg = number(w[5], 64)
	return f, err
}
