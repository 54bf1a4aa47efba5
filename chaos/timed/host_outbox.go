package timed

import (
	"errors"

	"subak/allocator/ledger"
)

// Publish sends a row to everybody. It belongs to core.Outbox, as do the others.
func (h *host) Publish(packet []byte, changed bool) {
	if h.dying {
		return
	}
	every := 1
	switch h.stage {
	case AfterSave:
		h.dying = true
		return
	case HalfSent:
		h.dying = true
		every = 2
	}
	h.w.publish(h, packet, changed, every)
}

// Spread sends a packet to everybody.
func (h *host) Spread(packet []byte) {
	if !h.dying {
		h.w.spread(h, packet)
	}
}

// SendTo sends a packet to one node.
func (h *host) SendTo(name string, packet []byte) error {
	for _, to := range h.w.hosts {
		if to.name == name && !h.dying {
			h.w.carry(h, h, to, packet, 0)
			return nil
		}
	}
	return errors.New("no such node")
}

// Save writes the state, if there is a disk and it has room.
func (h *host) Save(s ledger.Stored) error {
	switch {
	case h.dying:
		return errors.New("dead")
	case h.stage == BeforeSave && h.has:
		h.dying = true
		return errors.New("dies in the write")
	case h.full && h.has:
		return errors.New("disk full")
	}
	if h.has {
		h.disk = &s
	}
	return nil
}
