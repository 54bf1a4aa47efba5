package core

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"subak/allocator/ledger"
	"subak/gossip/wire"
)

// How rows travel.
//
// A row that fits in a datagram goes as it is, one with more budgets than that
// as what changed (wire, "Deltas and copies"). A receiver that lacks the base
// holds the delta back, in case the base is only late, and asks the publisher.
//
// A node that lends nothing and borrows nothing is quiet: a row that asks for no
// change goes to a fifth of its peers in turn, but to those to whom rows get lost
// always, and every fullEvery-th row to everybody, by way of others too: in a live
// window of 15 ticks three rows of its own reach each peer, and one that also comes
// around.
//
// A quiet node that has had nothing else to say for a live window is still: it makes
// every quietEvery-th row only, which goes to everybody, and every other one of those
// by way of others too. Each peer gets as many, and half of what an idle node of 22
// costs is that rows wake it and its peers.
//
// From copiesFrom members on, the vector of what was heard is most of a row, and
// most rows of most nodes say nothing new to most peers. Then a row goes as copies
// with one entry of the vector:
//
//   - every fullEvery-th row is a full one, to everybody, and so is every row while
//     an epoch is under way: they prove and activate, and show agreement;
//   - peers that came to life lately get full rows, for their proof;
//   - a row that asks for a change goes to everybody at once, and any row to
//     those that lend here or borrow from here;
//   - all others get every restEvery-th row: at the default tick 5 in a live
//     window, so at 5 % loss none of them arrives once in 3 million windows.
//
// At 330 members and 5 rows/s, with 60 bytes around a packet, a full row of 430 and
// a copy of 90: 329 * 5/s * 8 * (11/12*(90+60)/3 + 1/12*(430+60)) = 1.1 Mbit/s, in
// place of 6.4. Rows that ask for a change come on top.
const (
	copiesFrom = 64
	fullEvery  = 12
	restEvery  = 3
	quietEvery = 5
	relayEvery = 2 * quietEvery
)

const (
	repairGap  = 300 * int64(time.Millisecond) // before the same peer is asked for its row again
	repairRest = 100 * int64(time.Millisecond) // between two answers to one peer
)

// EachOutbox is an [Outbox] that can send each peer a packet of its own. Rows go
// to all alike through one that is not.
type EachOutbox interface {
	// PublishEach sends the own row to every live peer, in the form that packet
	// returns for the peer of that name; nil is a peer that needs none now.
	// lossy says that rows on the way to the peer are often lost. changed is as in
	// Publish. The packets are not for relay, and are not kept. One over
	// wire.MaxPacket goes by stream.
	PublishEach(changed bool, packet func(name string, lossy bool) []byte)
	// Lossy reports whether rows on the way to any live peer are often lost.
	Lossy() bool
}

// traffic is the state of sending and receiving rows. All of it is bounded by
// the directory, and answered by wire.MaxNodes.
type traffic struct {
	own  *ledger.Row // newest row that was encoded
	size int         // bytes of its packet, of the copies if there were any
	at   int64       // when it was encoded, lease clock
	// toAll is when a row went to every peer, relayed when by way of others too.
	toAll, relayed int64
	// moved is when this node last said something new, or dealt with anybody.
	moved int64
	// packets holds the newest row of every other node as it arrived, rebuilt
	// those that arrived as a delta and were not encoded since: for push/pull.
	packets  map[ledger.NodeID][]byte
	rebuilt  map[ledger.NodeID]*ledger.Row
	held     map[ledger.NodeID]heldDelta
	asked    map[ledger.NodeID]int64 // when its row was asked for
	answered map[string]int64        // when its question for a row was answered
	lives    map[ledger.NodeID]life
}

// heldDelta is a delta whose base is not here yet.
type heldDelta struct {
	inc, base, seq uint64
	packet         []byte
}

// life is since when an incarnation of a peer is known.
type life struct {
	inc uint64
	at  int64
}

func newTraffic() traffic {
	return traffic{
		packets: map[ledger.NodeID][]byte{}, rebuilt: map[ledger.NodeID]*ledger.Row{}, held: map[ledger.NodeID]heldDelta{},
		asked: map[ledger.NodeID]int64{}, answered: map[string]int64{}, lives: map[ledger.NodeID]life{},
	}
}

// emit lets a row leave that was published under ep; quiet says that the node
// deals with nobody.
func (c *Core) emit(now int64, row *ledger.Row, ep *ledger.Epoch, changed, quiet bool) {
	// What is left of the row's share of bytes says again what it said before, for
	// those who lost it.
	share := rowBudget * min(now-c.traffic.at, c.cfg.Tick.Nanoseconds()) / c.cfg.Tick.Nanoseconds()
	c.enc.SetLimit(int(share) - around)
	packet, extra, err := c.enc.Row(row, ep)
	if packet == nil {
		c.cfg.CountDrop("row-" + wire.ReasonOf(err).String())
		return
	}
	c.traffic.own, c.traffic.size, c.traffic.at = row, len(packet), now
	for _, p := range extra {
		c.out.Spread(p)
	}
	if changed || !quiet {
		c.traffic.moved = now
	}
	each, ok := c.out.(EachOutbox)
	copies, still := len(ep.Roster) >= copiesFrom, c.still(now)
	inTurn := (row.Seq+uint64(c.pos+1))%fullEvery == 0
	if still && !copies {
		inTurn = c.ticksSince(now, c.traffic.relayed) >= relayEvery
	}
	if !ok || inTurn || c.underWay(now) || !copies && (changed || !quiet || !c.sparing()) {
		c.traffic.toAll, c.traffic.relayed = now, now
		c.out.Publish(packet, changed)
		return
	}
	full := slices.Clone(packet)
	if copies && c.enc.StartCopies(row, ep) != nil {
		c.out.Publish(full, changed)
		return
	}
	all := still && c.ticksSince(now, c.traffic.toAll) >= quietEvery
	if all {
		c.traffic.toAll = now
	}
	each.PublishEach(changed, func(name string, lossy bool) []byte {
		id, ok := c.dir.Lookup(name)
		if !ok || c.young(now, id) {
			return full
		}
		turn := row.Seq + uint64(id)
		switch {
		case copies && turn%restEvery != 0 && !changed && !c.led.Dealing(id):
			return nil
		case !copies && !all && !lossy && (still || turn%quietEvery != 0):
			return nil
		case !copies:
			return full
		}
		if p := c.enc.Copy(id); p != nil {
			c.traffic.size = len(p)
			return p
		}
		return full
	})
}

// spare reports whether a tick needs no row: the node is still, and nobody is due
// to get one.
func (c *Core) spare(now int64) bool {
	each, ok := c.out.(EachOutbox)
	if !ok || c.urgent || len(c.epoch.Roster) >= copiesFrom || !c.sparing() || !c.still(now) || !c.led.Quiet() ||
		each.Lossy() || c.ticksSince(now, c.traffic.toAll) >= quietEvery || c.underWay(now) {
		return false
	}
	return !slices.ContainsFunc(c.epoch.Roster, func(m ledger.Member) bool {
		return m.ID != c.self && c.led.Live(now, m.ID) && c.young(now, m.ID)
	})
}

// still reports whether there was nothing new to say for a live window.
func (c *Core) still(now int64) bool { return now-c.traffic.moved >= c.cfg.Live.Nanoseconds() }

// sparing reports whether a live window holds enough of the rows that a quiet node
// still sends.
func (c *Core) sparing() bool { return c.cfg.Live >= 3*quietEvery*c.cfg.Tick }

// ticksSince is how many ticks have gone by, to the nearest.
func (c *Core) ticksSince(now, at int64) int64 {
	tick := c.cfg.Tick.Nanoseconds()
	return (now - at + tick/2) / tick
}

// gap is how long after the newest row an urgent one may leave: GapMin, and so
// long that rows of many budgets, in which there is always something urgent, take
// rowBudget bytes a tick.
func (c *Core) gap() int64 {
	return max(c.cfg.GapMin.Nanoseconds(), c.cfg.Tick.Nanoseconds()*int64(c.traffic.size+around)/rowBudget)
}

const (
	rowBudget = 850 // bytes to each peer a tick, while changes come in small steps
	around    = 60  // bytes around a packet: frame, encryption, label
)

// underWay reports whether an epoch is under way here or at a live peer, or this
// node's life is not proved yet: everybody gets every row then.
func (c *Core) underWay(now int64) bool {
	s := c.led.Standing()
	if c.led.Active() != c.epoch.ID || !s.Acked || s.Recovering {
		return true
	}
	for _, m := range c.epoch.Roster {
		if r := c.led.PeerRow(m.ID); r != nil && r.Epoch != c.epoch.ID && c.led.Live(now, m.ID) {
			return true
		}
	}
	return false
}

// young reports whether a peer may still be waiting for proof.
func (c *Core) young(now int64, id ledger.NodeID) bool {
	l, ok := c.traffic.lives[id]
	r := c.led.PeerRow(id)
	return !ok || r == nil || !r.Acked || now-l.at < 2*c.cfg.Live.Nanoseconds()
}

// keep notes a row that was merged, for those who ask for all rows.
func (c *Core) keep(now int64, row *ledger.Row, packet []byte) {
	t := &c.traffic
	if l := t.lives[row.Node]; l.inc != row.Inc {
		t.lives[row.Node] = life{row.Inc, now}
	}
	if row.Only != nil {
		return // of no use to others
	}
	if h, err := wire.Peek(packet); err == nil && h.Kind == wire.KindRow {
		t.packets[row.Node] = slices.Clone(packet)
		delete(t.rebuilt, row.Node)
		return
	}
	t.rebuilt[row.Node] = row
}

// lost holds back a delta whose base is not here and asks for the row.
func (c *Core) lost(now int64, packet []byte, e *wire.LostBaseError) {
	t := &c.traffic
	if e.Node < 0 || e.Node == c.self {
		return
	}
	if h, ok := t.held[e.Node]; !ok || e.Inc > h.inc || e.Inc == h.inc && e.Seq > h.seq {
		t.held[e.Node] = heldDelta{e.Inc, e.Base, e.Seq, slices.Clone(packet)}
	}
	if at, ok := t.asked[e.Node]; ok && now-at < repairGap {
		return
	}
	t.asked[e.Node] = now
	c.sendTo(c.dir.Name(e.Node), c.enc.RowWanted(e.Inc, e.Have))
}

// release takes up the delta that waited for the row that was just merged.
func (c *Core) release(now int64, row *ledger.Row) {
	h, ok := c.traffic.held[row.Node]
	if !ok || row.Inc < h.inc || row.Inc == h.inc && row.Seq < h.base {
		return
	}
	delete(c.traffic.held, row.Node)
	if row.Inc == h.inc && row.Seq < h.seq {
		c.Receive(now, c.dir.Name(row.Node), h.packet)
	}
}

// repair answers a peer that has row have of the life inc of this node.
func (c *Core) repair(now int64, from string, inc, have uint64) {
	t := &c.traffic
	if at, ok := t.answered[from]; t.own == nil || ok && now-at < repairRest {
		return
	}
	if len(t.answered) >= wire.MaxNodes {
		clear(t.answered)
	}
	t.answered[from] = now
	packet, err := c.enc.Repair(c.lineage.epoch(t.own.Epoch), inc, have)
	if err != nil {
		c.cfg.CountDrop("row-" + wire.ReasonOf(err).String())
	}
	if packet != nil {
		c.sendTo(from, packet)
	}
}

// State is what push/pull hands out: the newest row of every node that says the
// same to all, whole.
func (c *Core) State() []byte {
	t := &c.traffic
	for id, row := range t.rebuilt {
		t.packets[id] = c.whole(row)
	}
	clear(t.rebuilt)
	if t.own != nil {
		t.packets[c.self] = c.whole(t.own)
	}
	var blob []byte
	for _, id := range slices.SortedFunc(maps.Keys(t.packets), cmp.Compare[ledger.NodeID]) {
		if len(t.packets[id]) == 0 {
			continue
		}
		longer, err := wire.AppendState(blob, t.packets[id])
		if err != nil {
			c.cfg.CountDrop("state-too-large")
			continue
		}
		blob = longer
	}
	return blob
}

// whole encodes a row with all its sections, nil if that cannot be.
func (c *Core) whole(row *ledger.Row) []byte {
	ep := c.lineage.epoch(row.Epoch)
	if ep == nil {
		return nil
	}
	packet, err := c.enc.Whole(row, ep)
	if err != nil {
		c.cfg.CountDrop("row-" + wire.ReasonOf(err).String())
		return nil
	}
	return slices.Clone(packet)
}
