package timed

import "subak/chaos"

// What a run counts. The order is that of chaos.Result.Seen.
const (
	lost = iota
	cutOff
	duplicated
	cameLate
	staleRow
	relayed
	synced
	resent
	lapsed
	lapsedWhilePaused
	crashed
	crashedWithLoans
	diedInSave
	diedUnsent
	diedHalfSent
	forgot
	restored
	quarantined
	shortened
	unproved
	superseded
	paused
	cutInTwo
	stalled
	tookOver
	oldReading
	oldAdmitted
	notSaved
	froze
	left
	poisoned
	refused
	edgeUsed
	edited
	editRefused
	adoptedLent
	activated
	forced
	healed
	counterCount
)

func counters() []chaos.Counter {
	c := [counterCount]chaos.Counter{
		lost:              {Name: "packets lost", Must: true},
		cutOff:            {Name: "packets between nodes that are cut off", Must: true},
		duplicated:        {Name: "packets doubled", Must: true},
		cameLate:          {Name: "packets late", Must: true},
		staleRow:          {Name: "rows after a newer one", Must: true},
		relayed:           {Name: "rows by a detour", Must: true},
		synced:            {Name: "states by push/pull", Must: true},
		resent:            {Name: "changed rows sent twice", Must: true},
		lapsed:            {Name: "leases that ran out in use", Must: true},
		lapsedWhilePaused: {Name: "leases that ran out in use during a pause", Must: true},
		crashed:           {Name: "crashes", Must: true},
		crashedWithLoans:  {Name: "crashes with loans out", Must: true},
		diedInSave:        {Name: "crashes before the state was written", Must: true, Only: durable()},
		diedUnsent:        {Name: "crashes before the row left", Must: true},
		diedHalfSent:      {Name: "crashes with the row half sent", Must: true},
		forgot:            {Name: "restarts without memory", Must: true, Only: forgetful()},
		restored:          {Name: "restarts with memory", Must: true, Only: durable()},
		quarantined:       {Name: "quarantines after a restart", Must: true},
		shortened:         {Name: "quarantines ended early", Must: true, Only: durable()},
		unproved:          {Name: "quarantines over before the proof", Must: true, Only: forgetful()},
		superseded:        {Name: "own name seen higher"},
		paused:            {Name: "pauses", Must: true},
		cutInTwo:          {Name: "pauses between a reading of the clock and its use", Must: true},
		stalled:           {Name: "stalls of the loop", Must: true},
		tookOver:          {Name: "watchdogs that gave the base back", Must: true},
		oldReading:        {Name: "requests with a reading from before a pause", Must: true},
		oldAdmitted:       {Name: "of them admitted", Must: true},
		notSaved:          {Name: "rows held back by a full disk", Must: true, Only: durable()},
		froze:             {Name: "kill switches", Must: true},
		left:              {Name: "leaves", Must: true},
		poisoned:          {Name: "poisoned packets", Must: true},
		refused:           {Name: "packets refused", Must: true},
		edgeUsed:          {Name: "instants around the end of a lease", Must: true},
		edited:            {Name: "edits"},
		editRefused:       {Name: "edits refused"},
		adoptedLent:       {Name: "epochs adopted with loans out"},
		activated:         {Name: "epochs activated"},
		forced:            {Name: "nodes forced out"},
		healed:            {Name: "heals judged", Must: true},
	}
	return c[:]
}

// durable are the modes in which some node has a disk, forgetful those in which
// some memory is lost.
func durable() []chaos.Mode {
	return without(chaos.NoDurable)
}

func forgetful() []chaos.Mode { return without(chaos.FastQuarantine) }

func without(not chaos.Mode) (rest []chaos.Mode) {
	for _, m := range chaos.Modes() {
		if m != not {
			rest = append(rest, m)
		}
	}
	return rest
}
