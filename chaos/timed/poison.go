package timed

import (
	"slices"
	"subak/allocator/ledger"
	"subak/chaos"
	"subak/gossip/wire"
	"subak/internal/epoch"
)

const samplesMax = 64

// guard reads all that is on the wires. Nothing that it can read and no node
// made may be let loose: that would be forgery, which the key ring keeps out
// (A1).
type guard struct {
	dir    *ledger.Directory
	epochs map[ledger.EpochID]*ledger.Epoch
	dec    *wire.Decoder
	encs   []*wire.Encoder // by node, for rows that are made anew on their way
}

func newGuard(w *world) *guard {
	g := &guard{dir: ledger.NewDirectory(), epochs: map[ledger.EpochID]*ledger.Epoch{}}
	e, err := epoch.Root(w.setup.document(), g.dir)
	if err != nil {
		panic(err)
	}
	g.epochs[e.ID] = e
	w.greatest = e.ID
	g.dec = wire.NewDecoder(e.Root, g.dir, wire.NewVectors(), func(id ledger.EpochID) *ledger.Epoch { return g.epochs[id] })
	for range w.hosts {
		g.encs = append(g.encs, wire.NewEncoder(e.Root, g.dir, wire.NewVectors()))
	}
	return g
}

// know takes in an epoch.
func (g *guard) know(e *ledger.Epoch) {
	if r, err := epoch.Decode(e.ID, e.Body, g.dir); err == nil && g.epochs[e.ID] == nil {
		g.epochs[e.ID] = r.Epoch
	}
}

// learn takes in what rows need to be read.
func (g *guard) learn(packet []byte) { _, _ = g.dec.Decode(packet) }

// disguise is what a mode does to a row on its way out.
func (w *world) disguise(h *host, packet []byte) []byte {
	switch w.setup.Mode {
	case chaos.NoRelease:
		return w.withoutReleases(h, packet)
	case chaos.MixedVersions:
		if h.id%2 == 0 {
			return w.guard.newer(packet)
		}
	}
	return packet
}

// withoutReleases takes the releases out of a row: rule L7 only saves time.
func (w *world) withoutReleases(h *host, packet []byte) []byte {
	m, err := w.guard.dec.Decode(packet)
	if err != nil || m.Row == nil {
		return packet
	}
	any := false
	m.Row.Sections = slices.Clone(m.Row.Sections)
	for i := range m.Row.Sections {
		any = any || len(m.Row.Sections[i].Caps) > 0
		m.Row.Sections[i].Caps = nil
	}
	if !any {
		return packet
	}
	p, extra, err := w.guard.encs[h.id].Row(m.Row, w.guard.epochs[m.Row.Epoch])
	if p == nil || err != nil {
		return packet
	}
	for _, x := range extra {
		w.spread(h, x)
	}
	return append([]byte(nil), p...)
}

// newer is a row as a later minor version might write it, with fields that this
// one does not know, if it reads the same.
func (g *guard) newer(packet []byte) []byte {
	before, err := g.dec.Decode(packet)
	if err != nil || len(packet) < 4 || packet[0]&0xf0 != 0x90 && packet[0] != 0xdc {
		return packet
	}
	fields, rest := int(packet[0]&0xf), packet[1:]
	if packet[0] == 0xdc {
		fields, rest = int(packet[1])<<8|int(packet[2]), packet[3:]
	}
	p := append([]byte{0xdc, byte((fields + 2) >> 8), byte(fields + 2)}, rest...)
	p[3]++ // the minor version
	p = append(p, 0xa3, 'n', 'e', 'w', 7)
	after, err := g.dec.Decode(p)
	if err != nil || after.Row == nil || before.Row == nil || !sameRow(before.Row, after.Row) {
		return packet
	}
	return p
}

func sameRow(a, b *ledger.Row) bool {
	if a.Node != b.Node || a.Inc != b.Inc || a.Seq != b.Seq || len(a.Heard) != len(b.Heard) || len(a.Extra) != len(b.Extra) || len(a.Sections) != len(b.Sections) {
		return false
	}
	for i := range a.Heard {
		if a.Heard[i] != b.Heard[i] {
			return false
		}
	}
	return a.Clock == b.Clock
}

// sample keeps some of what was sent, for the attacker.
func (w *world) sample(packet []byte) {
	if len(w.samples) < samplesMax {
		w.samples = append(w.samples, packet)
	} else {
		w.samples[w.rng.IntN(samplesMax)] = packet
	}
}

// poison sends one packet that no node made to the victim of fault i.
func (w *world) poison(i int) {
	f := w.schedule[i]
	if w.state[i] != inForce || len(w.samples) == 0 {
		return
	}
	w.queue.add(event{at: w.now + max(f.Arg, 1), kind: poisons, to: -1, gen: uint32(i)})
	h := w.hosts[f.Who]
	p := w.venom(h)
	if p == nil {
		return
	}
	w.seen[poisoned]++
	w.lapse(h)
	h.deliver(parcel{as: w.hosts[w.rng.IntN(len(w.hosts))], packet: p})
}

// venom makes a poisoned packet for h, nil where a try would have been forgery.
func (w *world) venom(h *host) []byte {
	p := append([]byte(nil), w.samples[w.rng.IntN(len(w.samples))]...)
	switch w.rng.IntN(6) {
	case 0: // noise
		p = make([]byte, w.rng.IntN(1400))
		for i := range p {
			p[i] = byte(w.rng.Uint64())
		}
	case 1:
		p = p[:w.rng.IntN(len(p))]
	case 2: // another cluster's, with this one's names
		if m, err := w.guard.dec.Decode(p); err != nil || m.Row == nil {
			return nil
		}
		for i := 4; i < min(9, len(p)); i++ {
			p[i] ^= 0x55
		}
	case 3:
		return w.hugeClaim(h, p)
	default:
		for range 1 + w.rng.IntN(4) {
			p[w.rng.IntN(len(p))] = byte(w.rng.Uint64())
		}
	}
	if _, err := w.guard.dec.Decode(p); readable(err) {
		return nil
	}
	return p
}

// readable reports whether a node may read what the guard answered so: the guard lacks
// only what a node may have, another row before it or an epoch.
func readable(err error) bool {
	switch wire.ReasonOf(err) {
	case wire.ReasonNone, wire.ReasonUnknownEpoch, wire.ReasonUnknownVector, wire.ReasonLostBase, wire.ReasonStale:
		return true
	}
	return false
}

// hugeClaim is a row whose demands add up to more than any row may say. One in
// h's own name would tell it of a twin.
func (w *world) hugeClaim(h *host, p []byte) []byte {
	m, err := w.guard.dec.Decode(p)
	if err != nil || m.Row == nil || len(m.Row.Sections) == 0 || w.guard.dir.Name(m.Row.Node) == h.name {
		return nil
	}
	e := w.guard.epochs[m.Row.Epoch]
	m.Row.Sections = slices.Clone(m.Row.Sections)
	s := &m.Row.Sections[0]
	s.Demand = slices.Clone(s.Demand)
	for k := range s.Demand {
		s.Demand[k] = ledger.MaxRate - ledger.MaxRate%ledger.DemandGrain
	}
	s.Ceiling = ledger.MaxRate
	m.Row.Seq++
	forged, _, err := wire.NewEncoder(e.Root, w.guard.dir, wire.NewVectors()).Row(m.Row, e)
	if err != nil || forged == nil || len(s.Demand) < 2 {
		return nil
	}
	return append([]byte(nil), forged...)
}
