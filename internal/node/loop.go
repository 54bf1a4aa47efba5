package node

import (
	"context"
	"time"

	"subak/gossip"
)

const (
	batchMax    = 256                    // packets merged before the next pass
	stateEvery  = time.Second            // between two blobs for push/pull
	statusEvery = 250 * time.Millisecond // between two snapshots, at the least
)

// loop owns the core: everything that reads or changes it happens here.
func (n *Node) loop(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var at schedule
	n.watchdog.last.Store(n.clock.Now()) // what the start took is no stall
	inbox := n.gossip.Inbox()
	for {
		news := false
		select {
		case <-ctx.Done():
			return
		case m := <-inbox:
			n.receive(m)
			n.drain(inbox)
			news = true
		case call := <-n.calls:
			call()
			news = true
		case <-timer.C:
		}
		timer.Reset(n.turn(&at, news))
	}
}

// schedule holds when the shell's own periodic work is due, on the lease clock.
type schedule struct{ state, status, trial int64 }

// turn does what is due and returns how long to wait for the next.
func (n *Node) turn(at *schedule, news bool) time.Duration {
	now := n.clock.Now()
	if stall := n.watchdog.beat(now); stall > 0 {
		n.log.Error("the decision loop stood still: too little CPU, or the process was paused", "for", stall)
	}
	next := n.act(now, news)
	n.noteEpoch()
	if now >= at.state {
		at.state = now + stateEvery.Nanoseconds()
		n.gossip.SetState(n.core.State())
		n.logReadiness(now)
		n.logAlarms(now)
	}
	if n.trial.canary != "" && now >= at.trial {
		at.trial = now + trialEvery.Nanoseconds()
		n.tryCanary(now)
	}
	if now >= at.status && n.wanted.Swap(false) {
		at.status = now + statusEvery.Nanoseconds()
		n.snapshot(now)
	}
	return time.Duration(max(next-n.clock.Now(), 0))
}

func (n *Node) drain(inbox <-chan gossip.Message) {
	for range batchMax {
		select {
		case m := <-inbox:
			n.receive(m)
		default:
			return
		}
	}
}

func (n *Node) receive(m gossip.Message) {
	defer n.contain()
	if n.joiner != nil {
		if drop := n.joiner.receive(n.clock.Now(), m); drop != "" {
			n.drops.count(drop)
		}
		return
	}
	if !n.mayReceive(m) {
		n.drops.count("provisional")
		return
	}
	if m.Via == gossip.Sync {
		n.core.ReceiveState(n.clock.Now(), m.From, m.Packet)
		return
	}
	n.core.Receive(n.clock.Now(), m.From, m.Packet)
}

// contain turns a panic over a peer's bytes into a counted drop: one poisoned
// message must not take down every location at once (lesson O13). The codec and
// the ledger validate before they change anything.
func (n *Node) contain() {
	if r := recover(); r != nil {
		n.drops.count("panic")
		n.log.Error("a packet made the decoder panic; it was dropped", "panic", r)
	}
}

// ask runs f on the loop and waits for it, for at most patience.
func (n *Node) ask(f func()) bool {
	done := make(chan struct{})
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case n.calls <- func() { f(); close(done) }:
	case <-limit.C:
		return false
	}
	select {
	case <-done:
		return true
	case <-limit.C:
		return false
	}
}

// answered runs f on the loop and returns what it returns, or ErrBusy.
func answered[T any](n *Node, f func(now int64) (T, error)) (T, error) {
	var v T
	var err error
	if !n.ask(func() { v, err = f(n.clock.Now()) }) {
		var none T
		return none, ErrBusy // v may still be written
	}
	return v, err
}

// patience bounds how long an admin request waits for the loop.
const patience = 2 * time.Second

// seqOrigin is the instant from which sequence numbers are counted, so that they
// stay small: 2024-01-01 UTC. Nothing but their size hangs on it.
const seqOrigin = 1_704_067_200_000

func wallMillis() uint64 { return uint64(max(time.Now().UnixMilli()-seqOrigin, 1)) }
