package core

import (
	"errors"
	"slices"
	"time"

	"subak/allocator"
	"subak/allocator/ledger"
	"subak/gossip/wire"
)

const (
	askedMax = 256                         // vectors asked for at a time
	askGap   = int64(time.Second)          // before the same one is asked for again
	epochGap = 3 * askGap / 10             // likewise for an epoch, which many can answer for
	dropGap  = 8 * int64(time.Millisecond) // between two answers that cost many packets
)

// Receive takes one packet from a peer. Whatever the bytes are, it returns at
// once; what cannot be used is counted and counts as lost, which is always safe.
func (c *Core) Receive(now int64, from string, packet []byte) {
	m, err := c.dec.Decode(packet)
	if err != nil {
		if wire.ReasonOf(err) != wire.ReasonStale {
			c.cfg.CountDrop(wire.ReasonOf(err).String())
			c.askFor(now, from, packet, err)
		}
		return
	}
	switch m.Kind {
	case wire.KindRow, wire.KindDelta, wire.KindCopy:
		c.merge(now, m.Row, packet)
	case wire.KindRowWanted:
		c.repair(now, from, m.Inc, m.Have)
	case wire.KindVectorWanted:
		c.answer(now, from, c.enc.Vector(m.Digest))
	case wire.KindEpochWanted:
		c.tell(now, from, c.lineage.epoch(m.ID))
	case wire.KindLineageWanted:
		c.tell(now, from, c.settled())
	case wire.KindVector, wire.KindUnknown:
	case wire.KindEpoch:
		if m.Epoch != nil {
			c.receiveEpoch(now, m.Epoch)
		}
	}
}

func (c *Core) merge(now int64, row *ledger.Row, packet []byte) {
	if c.comesLate(now, row, packet) {
		return
	}
	underWay := c.led.Active() != c.epoch.ID
	var held allocator.Rate
	if underWay {
		held = c.led.HeldFrom(row.Node)
	}
	back := c.led.NewLife(row)
	if back {
		c.probe(now)
	}
	if age := c.led.Age(now, row.Node); age < 0 || age > c.cfg.Live.Nanoseconds() {
		back = true
	}
	before := c.led.PeerRow(row.Node)
	switch outcome := c.led.Merge(now, row); outcome {
	case ledger.Applied:
		c.markRow(before, row)
		c.keep(now, row, packet)
		c.compare(now, row)
		c.observe(now, row)
		if underWay && c.led.HeldFrom(row.Node) < held {
			c.urgent = true // the lender cannot acknowledge before it hears this
		}
		if back {
			c.urgent = true // it takes part only once it hears that it is heard
		}
		c.release(now, row)
	case ledger.Stale:
	case ledger.OwnNameHigher:
		c.beginAgain(now)
	default:
		c.cfg.CountDrop(outcome.String())
	}
}

// askFor asks for what a packet needed to be read.
func (c *Core) askFor(now int64, from string, packet []byte, err error) {
	var lost *wire.LostBaseError
	var vector *wire.UnknownVectorError
	var unknown *wire.UnknownEpochError
	switch {
	case errors.As(err, &lost):
		c.lost(now, packet, lost)
	case errors.As(err, &vector):
		if c.mayAsk(now, vector.Digest, askGap) {
			c.sendTo(from, c.enc.VectorWanted(vector.Digest))
		}
	case errors.As(err, &unknown):
		if c.refused.id == unknown.ID && now < c.refused.until {
			return // it would be refused again
		}
		if c.mayAsk(now, unknown.ID.Hash, epochGap) {
			c.sendTo(from, c.enc.EpochWanted(unknown.ID))
		}
	}
}

// mayAsk limits how often the same thing is asked for, and how many are.
func (c *Core) mayAsk(now int64, what uint64, gap int64) bool {
	if at, ok := c.asked[what]; ok && now-at < gap {
		return false
	}
	if len(c.asked) >= askedMax {
		clear(c.asked)
	}
	c.asked[what] = now
	return true
}

// settled is the epoch to tell who knows none: not one that this node tries out.
func (c *Core) settled() *ledger.Epoch {
	if r := c.onTrial(); r != nil && r == c.lineage.cur {
		if parent := c.lineage.epoch(r.Epoch.Parent); parent != nil {
			return parent
		}
	}
	return c.epoch
}

// tell answers with an epoch, if it is known here.
func (c *Core) tell(now int64, to string, e *ledger.Epoch) {
	if e == nil {
		return
	}
	if packets, err := c.enc.Epoch(e); err == nil {
		c.answer(now, to, packets)
	}
}

// answer sends packets that a peer asked for, but not faster than dropGap, so
// that forged questions cannot make a node flood its peers.
func (c *Core) answer(now int64, to string, packets [][]byte) {
	if len(packets) == 0 || now-c.answered < dropGap {
		return
	}
	c.answered = now
	for _, p := range packets {
		c.sendTo(to, p)
	}
}

func (c *Core) sendTo(name string, packet []byte) {
	if name == "" {
		return
	}
	if err := c.out.SendTo(name, slices.Clone(packet)); err != nil {
		c.cfg.CountDrop("not-sent")
	}
}

// ReceiveState takes a push/pull blob apart.
func (c *Core) ReceiveState(now int64, from string, blob []byte) {
	for p, err := range wire.Packets(blob) {
		if err != nil {
			c.cfg.CountDrop("state-" + wire.ReasonOf(err).String())
			return
		}
		c.Receive(now, from, p)
	}
}
