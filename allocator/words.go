package allocator

import (
	"fmt"
	"strconv"
	"strings"
)

// Words says the explanation in plain English, one sentence to a line, for the
// command line, the dashboard and the debug header. perSecond writes a rate; nil
// writes units per second.
func (e Explanation) Words(perSecond func(Rate) string) []string {
	if perSecond == nil {
		perSecond = plainPerSecond
	}
	lines := []string{e.wordsAsked(perSecond)}
	if e.Taken > 0 {
		lines = append(lines, fmt.Sprintf("It kept %s of its own base of %s; preemption by a higher class took %s that it needed.",
			perSecond(e.Kept), perSecond(e.Base), perSecond(e.Taken)))
	} else {
		lines = append(lines, fmt.Sprintf("It kept %s of its own base of %s.", perSecond(e.Kept), perSecond(e.Base)))
	}
	say := func(amount Rate, format string) {
		if amount > 0 {
			lines = append(lines, fmt.Sprintf(format, perSecond(amount)))
		}
	}
	say(e.InClass, "It got %s of the unused base of other locations in its class.")
	lines = append(lines, wordsFlows(perSecond, e.Borrowed, "It borrowed %s from class %s.")...)
	lines = append(lines, wordsFlows(perSecond, e.Seized, "It took %s from class %s by preemption.")...)
	say(e.Insurance, "Insurance added %s above its demand.")
	say(e.Headroom, "Headroom that nobody asked for added %s.")
	say(e.GivenInClass, "Of its unused base, %s went to other locations in its class.")
	for _, f := range e.Lent {
		if f.Class == e.Class { // its insurance is a class of its own, counted as this one
			lines = append(lines, fmt.Sprintf("Of its unused base, %s went to the insurance of its class.", perSecond(f.Amount)))
		} else {
			lines = append(lines, wordsFlows(perSecond, []Flow{f}, "Of its unused base, %s was lent to class %s.")...)
		}
	}
	say(e.Idle, "Of its unused base, %s went to the headroom of the class.")
	return append(lines, fmt.Sprintf("Its target is %s: %s", perSecond(e.Target), e.Reason.Words()))
}

func (e Explanation) wordsAsked(perSecond func(Rate) string) string {
	asked := "It asked for " + perSecond(e.Demand)
	switch {
	case e.Asked > e.Demand:
		return fmt.Sprintf("%s; its floor raised that to %s.", asked, perSecond(e.Asked))
	case e.Asked < e.Demand:
		return fmt.Sprintf("%s; its cap cut that to %s.", asked, perSecond(e.Asked))
	default:
		return asked + "."
	}
}

func wordsFlows(perSecond func(Rate) string, flows []Flow, format string) (lines []string) {
	for _, f := range flows {
		name := f.Name
		if name == "" {
			name = strconv.Itoa(f.Class)
		}
		lines = append(lines, fmt.Sprintf(format, perSecond(f.Amount), name))
	}
	return lines
}

// Words says the reason as the end of a sentence.
func (r Reason) Words() string {
	switch r {
	case DemandMet:
		return "all it asked for."
	case CapReached:
		return "no more, because its cap is reached."
	case BorrowLimitReached:
		return "no more, because its class borrows all it may."
	case LendLimitReached:
		return "no more, because other classes may not lend what they have to spare."
	case BudgetUsed:
		return "no more, because the whole budget is in use and its class has shared out its part."
	case Preempted:
		return "no more, because a higher class preempted its class."
	default:
		return "unknown reason " + strconv.Itoa(int(r)) + "."
	}
}

// plainPerSecond formats a rate in units per second for people: exactly below one
// unit, else to about four digits.
func plainPerSecond(r Rate) string {
	decimals := 6
	switch {
	case r >= 1000*Unit:
		decimals = 0
	case r >= 10*Unit:
		decimals = 1
	case r >= Unit:
		decimals = 2
	}
	step := Unit
	for range decimals {
		step /= 10
	}
	r += step / 2
	r -= r % step
	text := fmt.Sprintf("%d.%06d", r/Unit, r%Unit)
	return strings.TrimRight(strings.TrimRight(text, "0"), ".") + "/s"
}
