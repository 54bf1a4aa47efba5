package node

import (
	"fmt"
	"time"

	"subak/internal/api"
	"subak/internal/drift"
)

// Alarms are what does not mend itself: a second process of this name, a clock
// that leases cannot rely on, a disk that takes nothing, a memory that was an old
// copy. Each is logged when it begins, once a minute while it lasts, and when it
// is over, and shows in status, metrics and, where traffic should go elsewhere,
// in the readiness.

// alarmEvery is the time between two log lines of one alarm.
const alarmEvery = int64(time.Minute)

// alarmKey tells alarms apart.
type alarmKey struct {
	kind  api.AlarmKind
	peer  string
	worse bool // this process gave way to its twin
}

// alarms lists what stands now: on the loop.
func (n *Node) alarms(now int64) (list []api.Alarm) {
	if words := n.twinWords(now); words != "" {
		list = append(list, api.Alarm{Kind: api.AlarmTwin, Words: words})
	}
	if words := n.memoryWords(now); words != "" {
		list = append(list, api.Alarm{Kind: api.AlarmMemory, Words: words})
	}
	if words := n.diskWords(); words != "" {
		list = append(list, api.Alarm{Kind: api.AlarmDisk, Words: words})
	}
	return append(list, n.clockAlarms(now)...)
}

// logAlarms logs what began, lasts or is over: on the loop.
func (n *Node) logAlarms(now int64) {
	stands := map[alarmKey]int64{} // when it was logged last
	for _, a := range n.alarms(now) {
		if a.Kind == api.AlarmDisk {
			continue // logSaving does, with the system's error
		}
		key := alarmKey{a.Kind, a.Peer, a.Kind == api.AlarmTwin && n.core.Twin().Yielded}
		at, known := n.alarmed[key]
		if !known || now-at >= alarmEvery {
			at = now
			n.log.Error("alarm", "kind", string(a.Kind), "peer", a.Peer, "what", a.Words)
		}
		stands[key] = at
	}
	for key := range n.alarmed {
		other := key
		other.worse = !key.worse
		_, same := stands[key]
		_, turned := stands[other]
		if !same && !turned {
			n.log.Info("alarm is over", "kind", string(key.kind), "peer", key.peer)
		}
	}
	n.alarmed = stands
}

// twinWords says that another process uses this node's name.
func (n *Node) twinWords(now int64) string {
	t := n.core.Twin()
	if !t.Yielded && !t.Recent(now) {
		return ""
	}
	where := "its address is not known here"
	for _, c := range n.gossip.Conflicts() {
		if c.Name == n.cfg.Node.Name {
			where = "it is at " + c.Other
		}
	}
	seen := fmt.Sprintf("another process uses the name %s, last seen %s ago; %s",
		n.cfg.Node.Name, time.Duration(now-t.Last).Round(time.Second), where)
	if t.Yielded {
		return seen + ". This one gave way: it enforces 0 and says nothing; mend: stop the process that should not run, then restart the one that should"
	}
	return seen + ". This one began a new life above it; mend: stop one of the two, or give it a node.name of its own"
}

// memoryWords says that the data directory held an old copy.
func (n *Node) memoryWords(now int64) string {
	if !n.core.MemoryOld(now) {
		return ""
	}
	return fmt.Sprintf("the durable state in %s was an old copy: peers know a later life of this node. It was put aside; the base comes back, or came back, once a majority of the other nodes had heard of this life; mend: do not restore backups of cluster.data_dir", n.cfg.Cluster.DataDir)
}

// diskWords says that the durable state cannot be saved.
func (n *Node) diskWords() string {
	failing, silent := n.core.Unsaved()
	if !failing {
		return ""
	}
	does := "what is in force goes on; no loans to new names, no new life of a peer and no new configuration are taken up"
	if silent {
		does = "no row leaves, so this node serves on its own base, unseen by the others"
	}
	return fmt.Sprintf("cannot save the durable state in %s: %s; mend: free or replace the disk of cluster.data_dir", n.cfg.Cluster.DataDir, does)
}

// clockAlarms names the peers whose clocks are proven wrong.
func (n *Node) clockAlarms(now int64) (list []api.Alarm) {
	known := 0
	for _, m := range n.core.Epoch().Roster {
		b := n.core.Clock(now, m.ID)
		if b.LowPPM != drift.NoLow {
			known++
		}
		if b.Verdict != drift.Within {
			name := n.core.NodeName(m.ID)
			list = append(list, api.Alarm{Kind: api.AlarmClock, Peer: name, Words: n.clockWords(name, b)})
		}
	}
	if len(list) == known && known > 1 {
		for i := range list {
			list[i].Words += " (all peers look alike: it is likely this node's own clock)"
		}
	}
	return list
}

func (n *Node) clockWords(peer string, b drift.Bounds) string {
	least := b.LowPPM
	if b.Verdict == drift.Slow {
		least = -b.HighPPM
	}
	return fmt.Sprintf("the clock of %s runs at least %.2f %% %s against this node's, and protocol.eps allows for %v: no loans with it while that lasts; "+
		"mend: that machine's clock, or raise protocol.eps above it on all nodes", peer, float64(least)/10_000, b.Verdict, n.cfg.Protocol.Eps)
}

// clockOf is a member's clock for the status, nil while nothing is known of it.
func clockOf(b drift.Bounds) *api.Clock {
	if b.LowPPM == drift.NoLow || b.HighPPM == drift.NoHigh {
		return nil
	}
	return &api.Clock{LowPPM: b.LowPPM, HighPPM: b.HighPPM, Verdict: b.Verdict.String()}
}
