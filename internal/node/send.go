package node

import (
	"time"

	"subak/allocator/ledger"
	"subak/gossip"
	"subak/gossip/wire"
)

// sender is the core's way to the world.
type sender struct{ n *Node }

func (s sender) Publish(packet []byte, changed bool) {
	switch {
	case s.n.muted.Load():
	case len(packet) > wire.MaxPacket:
		s.n.drops.count("row-by-stream") // whole, but slower: not a loss
		s.each(func(name string) { s.n.gossip.SendReliable(name, packet) })
	default:
		s.n.gossip.Publish(packet, changed)
	}
}

func (s sender) Spread(packet []byte) {
	s.each(func(name string) {
		if err := s.n.gossip.SendTo(name, packet); err != nil {
			s.n.drops.count("not-sent")
		}
	})
}

func (s sender) each(send func(name string)) {
	if s.n.muted.Load() {
		return
	}
	for _, m := range s.n.gossip.Members() {
		if m.Refused == "" && !m.Provisional && (m.State == gossip.Alive || m.State == gossip.Suspect) {
			send(m.Name)
		}
	}
}

// PublishEach lets the core send every peer a row of its own.
func (s sender) PublishEach(changed bool, packet func(name string, lossy bool) []byte) {
	if !s.n.muted.Load() {
		s.n.gossip.PublishEach(changed, packet)
	}
}

// Lossy implements core.EachOutbox.
func (s sender) Lossy() bool { return s.n.gossip.Lossy() }

func (s sender) SendTo(name string, packet []byte) error {
	if len(packet) > wire.MaxPacket {
		s.n.gossip.SendReliable(name, packet)
		return nil
	}
	return s.n.gossip.SendTo(name, packet)
}

// Save writes the durable state. Without a data directory nothing is promised.
func (s sender) Save(st ledger.Stored) error {
	if s.n.state == nil {
		return nil
	}
	err := s.n.state.Save(st)
	s.n.logSaving(err)
	return err
}

// logSaving says once that the durable state cannot be saved, again each minute,
// and when it is over.
func (n *Node) logSaving(err error) {
	switch {
	case err == nil && n.unsaved.IsZero():
	case err == nil:
		n.unsaved = time.Time{}
		n.log.Info("the durable state is saved again")
	case time.Since(n.unsaved) >= time.Minute:
		n.unsaved = time.Now()
		n.log.Error("cannot save the durable state; free or replace the disk of cluster.data_dir", "err", err)
	}
}
