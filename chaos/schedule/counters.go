package schedule

import "subak/chaos"

// What a run may meet.
const (
	sawPublished = iota
	sawLent
	sawApplied
	sawStale
	sawBelowFloor
	sawUnknownEpoch
	sawMalformed
	sawOwnHigher
	sawLapsed
	sawWhole
	sawReleased
	sawReleaseInFlight
	sawEpochWithLoans
	sawSibling
	sawActivated
	sawForced
	sawForcedBack
	sawAckWithheld
	sawProvedMemory
	sawProvedAmnesia
	sawRefusedRecovering
	sawRefusedEpoch
	sawQuarantineCut
	sawQuarantineFull
	sawUnwritten
	sawUnsent
	sawLentRestart
	sawFallback
	sawFrozen
	sawRegress
	sawWoke
	sawExtra
	sawBudgetAdded
	sawBudgetDropped
	sawJoined
	sawAmnesia
	sawDiskLost
	sawTwinEdit
	sawUnsaved
	sawUnknownLife
	sawHealed
	sawHealChecked
	sawHung

	counterCount
)

func counters() []chaos.Counter {
	must := func(name string) chaos.Counter {
		return chaos.Counter{Name: name, Must: true}
	}
	except := func(name string, not ...chaos.Mode) chaos.Counter {
		c := chaos.Counter{Name: name, Must: true}
		for _, m := range chaos.Modes() {
			out := false
			for _, n := range not {
				out = out || m == n
			}
			if !out {
				c.Only = append(c.Only, m)
			}
		}
		return c
	}
	list := [counterCount]chaos.Counter{
		sawPublished:         must("row published"),
		sawLent:              must("row with a loan published"),
		sawApplied:           must("row applied"),
		sawStale:             must("stale row after a newer one"),
		sawBelowFloor:        must("row of a life that is over refused"),
		sawUnknownEpoch:      must("row of an unknown epoch"),
		sawMalformed:         {Name: "row refused as malformed"},
		sawOwnHigher:         must("own name seen higher"),
		sawLapsed:            must("lease lapsed with a loan out"),
		sawWhole:             must("sum was the whole budget"),
		sawReleased:          must("loan released"),
		sawReleaseInFlight:   except("release met loans in flight", chaos.NoRelease),
		sawEpochWithLoans:    must("epoch changed with loans out"),
		sawSibling:           must("epoch refused for a greater one"),
		sawActivated:         must("epoch activated"),
		sawForced:            must("activated with a member forced out"),
		sawForcedBack:        must("forced-out name came back"),
		sawAckWithheld:       must("acknowledgement withheld while lent over base"),
		sawProvedMemory:      except("proved with memory", chaos.NoDurable, chaos.MajorityProof),
		sawProvedAmnesia:     except("proved without memory", chaos.FastQuarantine),
		sawRefusedRecovering: must("witness refused: without memory itself"),
		sawRefusedEpoch:      must("witness refused: at another epoch"),
		sawQuarantineCut:     except("quarantine cut short", chaos.NoDurable),
		sawQuarantineFull:    must("quarantine sat out"),
		sawUnwritten:         must("crashed before state was written"),
		sawUnsent:            must("crashed before the row left"),
		sawLentRestart:       must("crashed with loans out"),
		sawFallback:          must("fallback enforced by a watchdog"),
		sawFrozen:            must("frozen with loans"),
		sawRegress:           except("started with a lower incarnation", chaos.FastQuarantine),
		sawWoke:              must("woke at the very instant"),
		sawExtra:             must("wait set beyond both rosters"),
		sawBudgetAdded:       must("budget added"),
		sawBudgetDropped:     must("budget dropped with loans out"),
		sawJoined:            must("base received by activation"),
		sawAmnesia:           except("first start claimed wrongly", chaos.FastQuarantine),
		sawDiskLost:          except("disk lost", chaos.NoDurable),
		sawTwinEdit:          must("two operators at once"),
		sawUnsaved:           except("row kept back by a full disk", chaos.NoDurable),
		sawUnknownLife:       except("new life not heard, for a full disk", chaos.NoDurable),
		sawHealed:            must("healed"),
		sawHealChecked:       must("healed and served in full"),
		sawHung:              must("hung with loans and was replaced"),
	}
	return list[:]
}
