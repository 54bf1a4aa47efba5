package gossip

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/hashicorp/serf/coordinate"
)

// delegate is what memberlist calls. Its methods run on memberlist's goroutines,
// several of them with memberlist's lock held: they copy, enqueue and return,
// and never call memberlist.
type delegate struct{ g *Gossip }

var (
	_ memberlist.Delegate         = delegate{}
	_ memberlist.EventDelegate    = delegate{}
	_ memberlist.AliveDelegate    = delegate{}
	_ memberlist.PingDelegate     = delegate{}
	_ memberlist.ConflictDelegate = delegate{}
)

// NodeMeta is announced with our name and address.
func (d delegate) NodeMeta(limit int) []byte {
	m := encodeMeta(d.g.Fingerprint())
	return m[:min(limit, len(m))]
}

// NotifyMsg takes one frame, from a datagram or a stream. buf belongs to memberlist.
func (d delegate) NotifyMsg(buf []byte) {
	g := d.g
	defer g.recoverForeign()
	f, ok := g.open(buf, MaxLong)
	if !ok {
		return
	}
	switch f.kind {
	case kindState: // belongs in a push/pull only
		g.metrics.dropped.WithLabelValues(reasonMalformed).Inc()
	case kindUnicast:
		g.enqueue(&f, Direct)
	case kindLeave:
		g.peers.leaves(f.from, time.Now())
	case kindReach:
		g.takeReach(&f)
	default:
		if len(f.packet) > MaxPacket { // it would block the relay queue for ever
			g.metrics.dropped.WithLabelValues(reasonOversize).Inc()
			return
		}
		g.takeRow(&f)
	}
}

// takeRow delivers a published row once and passes it on.
func (g *Gossip) takeRow(f *frame) {
	via, now := Relay, time.Now()
	if f.kind == kindRow {
		via = Direct
		if f.from != g.cfg.Name && g.peers.rowArrived(f.from, f.counter, f.copied, now, pokeEvery) {
			g.askPoke(f.from)
		}
	}
	key, order, ok := g.cfg.Key(f.packet)
	if !ok || f.only {
		g.enqueue(f, via)
		return
	}
	switch g.seen.admit(key, order, now, func() bool { return g.enqueue(f, via) }) {
	case verdictDuplicate:
		g.metrics.duplicates.WithLabelValues(via.String()).Inc()
	case verdictRevived:
		if via == Relay { // it might go round for ever
			return
		}
		g.passOn(key, f)
	case verdictFresh:
		g.passOn(key, f)
	}
}

// passOn queues a row of another node for relay.
func (g *Gossip) passOn(key string, f *frame) {
	r := frame{kind: kindRelay, fingerprint: f.fingerprint, counter: f.counter, from: f.from, packet: f.packet}
	g.relay.add(key, r.encode())
}

// open parses and checks a frame. Its packet still aliases b.
func (g *Gossip) open(b []byte, limit int) (frame, bool) {
	f, err := parseFrame(b)
	related := relate(g.Fingerprint(), f.fingerprint)
	reason := ""
	switch {
	case err != nil:
		reason = reasonMalformed
	case related == foreign:
		reason = reasonFingerprint
		if f.kind != kindRelay && f.from != g.cfg.Name {
			g.refuse(f.from, nil, f.fingerprint, reasonFingerprint)
		}
	case !related.carries(f.kind): // what members piggyback for all; no fault of theirs
		g.metrics.dropped.WithLabelValues(reasonProvisional).Inc()
		return frame{}, false
	case len(f.packet) > limit:
		reason = reasonOversize
	default:
		return f, true
	}
	g.metrics.dropped.WithLabelValues(reason).Inc()
	if ok, suppressed := g.limit.allow("drop "+reason, time.Minute); ok {
		g.log.Warn("dropped an incoming packet", "reason", reason, "from", f.from, "bytes", len(b), "suppressed", suppressed)
	}
	return frame{}, false
}

// enqueue puts a copy of the packet into the inbox, if there is room.
func (g *Gossip) enqueue(f *frame, via Via) bool {
	select {
	case g.inbox <- Message{From: f.from, Fingerprint: f.fingerprint, Packet: append([]byte(nil), f.packet...), Via: via}:
		g.metrics.received.WithLabelValues(via.String()).Inc()
		return true
	default:
		g.metrics.dropped.WithLabelValues(reasonFull).Inc()
		if ok, suppressed := g.limit.allow("inbox", 10*time.Second); ok {
			g.log.Warn("inbox full: packet dropped", "length", g.cfg.QueueLen, "suppressed", suppressed)
		}
		return false
	}
}

// recoverForeign keeps a defect in reading foreign bytes from ending the process
// (lesson O13).
func (g *Gossip) recoverForeign() {
	r := recover()
	if r == nil {
		return
	}
	g.metrics.dropped.WithLabelValues(reasonPanic).Inc()
	if ok, suppressed := g.limit.allow("panic", time.Minute); ok {
		g.log.Error("panic while reading a message; it is dropped", "panic", fmt.Sprint(r), "stack", string(debug.Stack()), "suppressed", suppressed)
	}
}

// GetBroadcasts gives frames for relay.
func (d delegate) GetBroadcasts(overhead, limit int) [][]byte {
	return d.g.relay.take(overhead, limit)
}

// LocalState is handed out in push/pulls.
func (d delegate) LocalState(bool) []byte {
	p, fp := d.g.state.Load(), d.g.Fingerprint()
	if p == nil || fp == 0 {
		return nil
	}
	f := frame{kind: kindState, fingerprint: fp, from: d.g.cfg.Name, packet: *p}
	return f.encode()
}

// MergeRemoteState takes the other side's LocalState.
func (d delegate) MergeRemoteState(buf []byte, _ bool) {
	g := d.g
	defer g.recoverForeign()
	f, ok := g.open(buf, MaxState)
	if !ok {
		return
	}
	if f.kind != kindState {
		g.metrics.dropped.WithLabelValues(reasonMalformed).Inc()
		return
	}
	g.enqueue(&f, Sync)
}

// NotifyAlive decides whether a node is taken in at all.
func (d delegate) NotifyAlive(n *memberlist.Node) error {
	g := d.g
	if n.Name == g.cfg.Name {
		return nil // memberlist must see it, to refute it or report a conflict
	}
	if !validName(n.Name) {
		g.metrics.refused.WithLabelValues(reasonName).Inc()
		return fmt.Errorf("name of %d bytes is not acceptable", len(n.Name))
	}
	fp, ok := parseMeta(n.Meta)
	if !ok {
		g.refuse(n.Name, n, 0, reasonMeta)
		return fmt.Errorf("metadata cannot be read")
	}
	if relate(g.Fingerprint(), fp) == foreign {
		g.refuse(n.Name, n, fp, reasonFingerprint)
		return fmt.Errorf("fingerprint %016x is not ours", fp)
	}
	return nil
}

// refuse counts, and logs the first time per peer.
func (g *Gossip) refuse(name string, n *memberlist.Node, fp uint64, reason string) {
	g.metrics.refused.WithLabelValues(reason).Inc()
	text := "peer refused: it has another set of budgets"
	switch g.peers.refuse(name, n, fp, reason, time.Now()) {
	case refusedKnown:
		return
	case refusedClash:
		if ok, _ := g.limit.allow("clash "+name, refuseEvery); !ok {
			return
		}
		text = "stranger refused that bears a member's name: it has another set of budgets"
	}
	addr := ""
	if n != nil {
		addr = n.Address()
	}
	g.log.Warn(text, "peer", name, "addr", addr, "reason", reason,
		"fingerprint", fmt.Sprintf("%016x", fp), "ours", fmt.Sprintf("%016x", g.Fingerprint()))
}

// NotifyJoin and NotifyUpdate put a node into the table.
func (d delegate) NotifyJoin(n *memberlist.Node) {
	d.update(n)
	if n.Name != d.g.cfg.Name {
		d.g.log.Info("peer joined", "peer", n.Name, "addr", n.Address())
	}
}

// NotifyUpdate is called when metadata changes.
func (d delegate) NotifyUpdate(n *memberlist.Node) { d.update(n) }

func (d delegate) update(n *memberlist.Node) {
	if n.Name == d.g.cfg.Name {
		return
	}
	fp, _ := parseMeta(n.Meta) // NotifyAlive has checked it
	if !d.g.peers.joined(n, fp, time.Now()) {
		d.g.metrics.refused.WithLabelValues(reasonTable).Inc()
	}
}

// NotifyLeave is called for nodes that left and for nodes declared dead alike,
// and the Node does not say which; so a node that leaves also tells us itself.
func (d delegate) NotifyLeave(n *memberlist.Node) {
	if n.Name == d.g.cfg.Name {
		return
	}
	s := d.g.peers.gone(n.Name, time.Now())
	d.g.coords.ForgetNode(n.Name)
	d.g.log.Info("peer gone", "peer", n.Name, "addr", n.Address(), "state", s.String())
}

// AckPayload is our coordinate.
func (d delegate) AckPayload() []byte { return encodeCoord(d.g.coords.GetCoordinate()) }

// NotifyPingComplete learns from memberlist's own probes.
func (d delegate) NotifyPingComplete(other *memberlist.Node, rtt time.Duration, payload []byte) {
	g := d.g
	defer g.recoverForeign()
	g.peers.pinged(other.Name, rtt, true)
	c, err := parseCoord(payload)
	if err == nil {
		_, err = g.coords.Update(other.Name, c, rtt)
	}
	if err != nil {
		g.metrics.badPings.Inc()
		if ok, suppressed := g.limit.allow("coordinate", time.Minute); ok {
			g.log.Warn("coordinate of a peer refused", "peer", other.Name, "error", err, "suppressed", suppressed)
		}
		return
	}
	g.peers.setCoord(other.Name, c)
}

func (g *Gossip) distance(c *coordinate.Coordinate) time.Duration { return g.coords.DistanceTo(c) }

// NotifyConflict is called when a node announces a name that another, still
// live node holds.
func (d delegate) NotifyConflict(existing, other *memberlist.Node) {
	g := d.g
	g.metrics.conflicts.Inc()
	c := Conflict{Name: existing.Name, Addr: existing.Address(), Other: other.Address(), Last: time.Now()}
	g.conflicts.note(c)
	level := slog.LevelWarn
	if c.Name == g.cfg.Name {
		level = slog.LevelError
	}
	if ok, suppressed := g.limit.allow("conflict "+c.Name, time.Minute); ok {
		g.log.Log(g.bg, level, "two nodes claim one name", "name", c.Name, "addr", c.Addr, "other", c.Other, "suppressed", suppressed)
	}
}
