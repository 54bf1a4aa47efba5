package core

import (
	"errors"
	"slices"
	"time"

	"subak/allocator/ledger"
	"subak/gossip/wire"
)

const (
	askedMax = 256                         // vectors asked for at a time
	askGap   = int64(time.Second)          // before the same one is asked for again
	dropGap  = 8 * int64(time.Millisecond) // between two answers that cost many packets
)

// Receive takes one packet from a peer. Whatever the bytes are, it returns at
// once; what cannot be used is counted and counts as lost, which is always safe.
func (c *Core) Receive(now int64, from string, packet []byte) {
	m, err := c.dec.Decode(packet)
	if err != nil {
		c.cfg.CountDrop(wire.ReasonOf(err).String())
		c.askFor(now, from, err)
		return
	}
	switch m.Kind {
	case wire.KindRow:
		c.merge(now, m.Row, packet)
	case wire.KindVectorWanted:
		c.answer(now, from, c.enc.Vector(m.Digest))
	case wire.KindEpochWanted:
		c.tell(now, from, c.epochs[m.ID])
	case wire.KindLineageWanted:
		c.tell(now, from, c.epoch)
	case wire.KindVector, wire.KindUnknown:
	case wire.KindEpoch:
		if m.Epoch != nil {
			c.cfg.CountDrop("epoch-refused") // a running node keeps the epoch it started under
		}
	}
}

func (c *Core) merge(now int64, row *ledger.Row, packet []byte) {
	switch outcome := c.led.Merge(now, row); outcome {
	case ledger.Applied:
		c.packets[row.Node] = slices.Clone(packet)
		c.compare(now, row)
	case ledger.Stale:
	case ledger.OwnNameHigher:
		c.beginAgain(now)
	default:
		c.cfg.CountDrop(outcome.String())
	}
}

// beginAgain starts a new life: the own name was seen above us, so a later
// process of this name ran or runs.
func (c *Core) beginAgain(now int64) {
	inc, err := c.cfg.NewLife(c.led.HighestOwn())
	if err == nil {
		err = c.led.Restart(now, inc)
	}
	c.install(now) // superseded or in quarantine: either way the own part is 0
	if err != nil {
		c.cfg.CountDrop("no-new-life")
	}
	c.cfg.CountDrop("own-name-higher")
}

// askFor asks for what a packet needed to be read.
func (c *Core) askFor(now int64, from string, err error) {
	var vector *wire.UnknownVectorError
	var unknown *wire.UnknownEpochError
	switch {
	case errors.As(err, &vector):
		if c.mayAsk(now, vector.Digest) {
			c.sendTo(from, c.enc.VectorWanted(vector.Digest))
		}
	case errors.As(err, &unknown):
		if c.mayAsk(now, unknown.ID.Hash) {
			c.sendTo(from, c.enc.EpochWanted(unknown.ID))
		}
	}
}

// mayAsk limits how often the same thing is asked for, and how many are.
func (c *Core) mayAsk(now int64, what uint64) bool {
	if at, ok := c.asked[what]; ok && now-at < askGap {
		return false
	}
	if len(c.asked) >= askedMax {
		clear(c.asked)
	}
	c.asked[what] = now
	return true
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

// State is what push/pull hands out: the newest row of every node.
func (c *Core) State() []byte {
	var blob []byte
	for _, p := range c.packets {
		longer, err := wire.AppendState(blob, p)
		if err != nil {
			c.cfg.CountDrop("state-too-large")
			continue
		}
		blob = longer
	}
	return blob
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
