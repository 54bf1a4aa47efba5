package timed

import "subak/chaos"

// place is how far apart the nodes are.
type place uint8

const (
	sameRack place = iota // microseconds
	sameLand              // up to 10 ms
	apart                 // up to 140 ms, any triangle
	around                // cities of the world
)

// profile is how an adversary behaves. Lists are choices of which a seed takes
// one.
type profile struct {
	name   string
	share  int // of the seeds, relative to the others
	nodes  []int
	places []place
	sharp  int // chance (%) of clocks at the extremes, no guard, all at the instants of expiry
	// gap is the mean time between two faults and span the mean length of one, in ms.
	gap, span int64
	// faults and their weights.
	faults faultWeights
}

func profiles() []profile {
	small := []int{3, 3, 4, 5, 5, 7}
	return []profile{
		{
			name: "storm", share: 12, nodes: []int{3, 4, 5, 7, 9, 12}, places: []place{sameRack, sameLand, apart, around}, sharp: 20, gap: 300, span: 2500,
			faults: weights(40, Demand, Demand, Demand).and(10, Loss, Duplicates, Late, Jitter, Split, OneWay, Link, Flap, Deaf, Mute, Slow,
				Crash, DieInPublish, Pause, Stall, Drift, Wall, DiskFull, Burst, Freeze, Leave, Poison, Edit),
		},
		{
			// Loans end at the very instant at which their lenders take them back:
			// busy lenders do not hear their borrowers, or are not heard.
			name: "edges", share: 12, nodes: small, places: []place{sameRack}, sharp: 100, gap: 400, span: 4000,
			faults: weights(60, Demand).and(25, Deaf, Mute, OneWay, Split).and(10, Link, Pause, Stall, Drift, Burst, Late).and(4, Crash, DieInPublish, Edit),
		},
		{
			name: "restarts", share: 9, nodes: small, places: []place{sameRack, sameLand, apart}, sharp: 30, gap: 350, span: 1500,
			faults: weights(40, Demand).and(30, Crash, DieInPublish).and(10, Leave, Loss, Split, Deaf, Mute, DiskFull, Wall, Pause, Edit),
		},
		{
			name: "pauses", share: 9, nodes: small, places: []place{sameRack, sameLand}, sharp: 50, gap: 400, span: 3000,
			faults: weights(40, Demand).and(40, Pause, Stall).and(10, Slow, Drift, Burst, Loss, Crash, Deaf, Mute),
		},
		{
			// Old news everywhere: minutes late, twice, by detours.
			name: "stale", share: 9, nodes: small, places: []place{sameLand, apart}, sharp: 0, gap: 400, span: 5000,
			faults: weights(40, Demand).and(30, Late, Jitter, Duplicates).and(15, Link, Flap, OneWay, Split).and(10, Crash, Pause, Loss, Edit),
		},
		{
			name: "edits", share: 9, nodes: small, places: []place{sameRack, sameLand, apart}, sharp: 20, gap: 400, span: 1500,
			faults: weights(40, Demand).and(30, Edit).and(8, Crash, DieInPublish, Split, OneWay, Deaf, Mute, Loss, Pause, Late),
		},
		{
			name: "world", share: 2, nodes: []int{22}, places: []place{around}, sharp: 0, gap: 700, span: 4000,
			faults: weights(40, Demand).and(10, Loss, Split, Link, Flap, Deaf, Mute, Crash, Pause, Slow, Late, Edit),
		},
		{
			name: "many", share: 1, nodes: []int{30, 45, 60}, places: []place{sameLand, apart, around}, sharp: 0, gap: 250, span: 1500,
			faults: weights(30, Demand).and(10, Loss, Split, Crash, Pause, Deaf, Late, Leave, Edit),
		},
	}
}

type faultWeights [faultKinds]int

func weights(each int, kinds ...FaultKind) faultWeights { return faultWeights{}.and(each, kinds...) }

func (w faultWeights) and(each int, kinds ...FaultKind) faultWeights {
	for _, k := range kinds {
		w[k] += each
	}
	return w
}

func chooseProfile(r *chaos.Rand) *profile {
	all := profiles()
	sum := 0
	for i := range all {
		sum += all[i].share
	}
	x := r.IntN(sum)
	for i := range all {
		if x -= all[i].share; x < 0 {
			return &all[i]
		}
	}
	return &all[0]
}
