package schedule

import (
	"testing"

	"subak/chaos"
)

func TestScratch(t *testing.T) {
	for _, p := range Profiles() {
		r := New(p.Name)
		var seen [counterCount]int64
		var acts, steps int64
		for seed := uint64(1); seed <= 70; seed++ {
			res := r.Run(seed, chaos.ModeOf(seed), 1000)
			acts += res.Actions
			steps += res.Steps
			for i, n := range res.Seen {
				seen[i] += n
			}
		}
		t.Logf("%-12s acts/step %.2f pub %d lent %.3f applied %d act %d forced %d ackheld %d cut %d full %d epochwithloans %d proved %d/%d recref %d epref %d lapsed %d", p.Name, float64(acts)/float64(steps), seen[sawPublished], float64(seen[sawLent])/float64(seen[sawPublished]), seen[sawApplied], seen[sawActivated], seen[sawForced], seen[sawAckWithheld], seen[sawQuarantineCut], seen[sawQuarantineFull], seen[sawEpochWithLoans], seen[sawProvedMemory], seen[sawProvedAmnesia], seen[sawRefusedRecovering], seen[sawRefusedEpoch], seen[sawLapsed])
	}
}
