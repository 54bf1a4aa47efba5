package gossip

import (
	"fmt"
	"slices"
	"time"
)

type resend struct {
	due    time.Time
	frames [][]byte // one for each peer, or one for all
	to     []target
}

func (g *Gossip) sendAgain(r resend) {
	if len(r.frames) == 1 {
		g.sendAll(r.frames[0], r.to, viaCopyOut)
		return
	}
	for i, f := range r.frames {
		g.sendAll(f, r.to[i:i+1], viaCopyOut)
	}
}

// Overhead is the number of bytes around a packet in a datagram, without IP and
// UDP headers. A caller that must fit an MTU of 1280 keeps packets under
// 1280 - 48 - Overhead.
func (g *Gossip) Overhead() int {
	n := frameFixed + len(g.cfg.Name) + 1 /* user message */ + 5 /* checksum */ + 2 + len(g.cfg.Cluster)
	if len(g.cfg.Keys) > 0 {
		n += 29 // version, nonce, tag
	}
	return n
}

// Publish sends this node's row to every live peer now, and queues it for relay
// in place of the one before. If changed, lossy peers get it again 25 ms later
// (see "Loss" in the package comment). A packet over MaxPacket is counted
// and refused. A provisional node publishes nothing. packet is not kept.
func (g *Gossip) Publish(packet []byte, changed bool) {
	if g.Fingerprint() == 0 || !g.fits(packet, MaxPacket) {
		return
	}
	key, order, keyed := g.cfg.Key(packet)
	if keyed {
		g.seen.record(key, order, time.Now())
	}
	f := frame{kind: kindRow, fingerprint: g.Fingerprint(), from: g.cfg.Name, packet: packet}
	targets := *g.peers.targets.Load()
	g.sendRow(f.encode(), targets)
	if keyed {
		g.passOn(key, &f)
	}
	if changed {
		g.queueResend(&f, targets)
	}
}

// PublishEach sends this node's row to every live peer now, in the form that
// packet returns for it: nil is a peer that needs none now, and one over MaxPacket
// goes by stream. lossy tells packet that rows to the peer are often lost (see
// "Loss"). Nothing is relayed, since a form is of use to its peer only. changed
// is as in Publish. What packet returns is not kept beyond its next call.
func (g *Gossip) PublishEach(changed bool, packet func(name string, lossy bool) []byte) {
	if g.Fingerprint() == 0 {
		return
	}
	again := resend{due: time.Now().Add(resendAfter)}
	f := frame{kind: kindRow, only: true, fingerprint: g.Fingerprint(), from: g.cfg.Name}
	var b []byte
	for _, t := range *g.peers.targets.Load() {
		f.packet = packet(t.name, t.lossy)
		switch {
		case f.packet == nil:
			continue
		case len(f.packet) > MaxPacket:
			g.SendReliable(t.name, f.packet)
			continue
		}
		b = f.append(b[:0])
		g.sendRow(b, []target{t})
		if changed && t.lossy {
			f.copied = true
			again.frames = append(again.frames, f.encode())
			again.to = append(again.to, t)
			f.copied = false
		}
	}
	g.queue(again)
}

// Lossy reports whether rows to any live peer are often lost (see "Loss").
func (g *Gossip) Lossy() bool {
	return slices.ContainsFunc(*g.peers.targets.Load(), func(t target) bool { return t.lossy })
}

// sendRow sends a row's frame with each peer's own count of rows, so that a row
// that a peer is spared is not taken for lost. memberlist copies the frame.
func (g *Gossip) sendRow(b []byte, to []target) {
	ml := g.ml.Load()
	for _, t := range to {
		setCounter(b, uint16(t.rows.Add(1)))
		if err := ml.SendBestEffort(t.node, b); err != nil {
			g.sendFailed(t.name, err)
			continue
		}
		g.metrics.sent(viaRowOut, len(b))
	}
}

func (g *Gossip) queueResend(f *frame, targets []target) {
	r := resend{due: time.Now().Add(resendAfter)}
	for _, t := range targets {
		if t.lossy {
			r.to = append(r.to, t)
		}
	}
	f.copied = true
	r.frames = [][]byte{f.encode()}
	g.queue(r)
}

// queue leaves a re-send to its loop.
func (g *Gossip) queue(r resend) {
	if len(r.to) == 0 {
		return
	}
	select {
	case g.resends <- r:
		g.metrics.resendQueued.Inc()
	default:
		g.metrics.resendLost.Inc()
	}
}

func (g *Gossip) sendAll(frame []byte, to []target, via string) {
	ml := g.ml.Load()
	for _, t := range to {
		if err := ml.SendBestEffort(t.node, frame); err != nil {
			g.sendFailed(t.name, err)
			continue
		}
		g.metrics.sent(via, len(frame))
	}
}

// SendTo sends a packet to one live peer, provisional or not, in one datagram. It may be lost, is not
// relayed and never counts as a duplicate. The error is ErrOversize,
// ErrUnknownPeer (also for refused peers) or what the network said.
func (g *Gossip) SendTo(name string, packet []byte) error {
	if !g.fits(packet, MaxPacket) {
		return ErrOversize
	}
	t, ok := g.peers.find(name)
	if !ok {
		g.metrics.sendFailed.WithLabelValues(reasonUnknownPeer).Inc()
		return fmt.Errorf("send to %q: %w", name, ErrUnknownPeer)
	}
	f := g.unicast(packet)
	if err := g.ml.Load().SendBestEffort(t.node, f); err != nil {
		g.sendFailed(name, err)
		return fmt.Errorf("send to %q: %w", name, err)
	}
	g.metrics.sent(viaUnicastOut, len(f))
	return nil
}

// SendReliable sends a packet to one live peer over TCP, in the background. What
// cannot be sent is counted: over MaxLong, unknown peer, more than streamsMax under
// way, network error.
func (g *Gossip) SendReliable(name string, packet []byte) {
	if !g.fits(packet, MaxLong) {
		return
	}
	t, ok := g.peers.find(name)
	if !ok {
		g.metrics.sendFailed.WithLabelValues(reasonUnknownPeer).Inc()
		return
	}
	g.life.RLock()
	defer g.life.RUnlock()
	if g.closed {
		g.metrics.sendFailed.WithLabelValues(reasonClosed).Inc()
		return
	}
	select {
	case g.streams <- struct{}{}:
	default:
		g.metrics.sendFailed.WithLabelValues(reasonBusy).Inc()
		return
	}
	f := g.unicast(packet)
	g.wg.Go(func() {
		defer func() { <-g.streams }()
		if err := g.ml.Load().SendReliable(t.node, f); err != nil {
			g.sendFailed(name, err)
			return
		}
		g.metrics.sent(viaReliableOut, len(f))
	})
}

func (g *Gossip) unicast(packet []byte) []byte {
	f := frame{kind: kindUnicast, fingerprint: g.Fingerprint(), from: g.cfg.Name, packet: packet}
	return f.encode()
}

func (g *Gossip) fits(packet []byte, limit int) bool {
	if len(packet) <= limit {
		return true
	}
	g.metrics.sendFailed.WithLabelValues(reasonOversize).Inc()
	if ok, suppressed := g.limit.allow("oversize", time.Minute); ok {
		g.log.Error("packet over the limit is not sent", "bytes", len(packet), "limit", limit, "suppressed", suppressed)
	}
	return false
}

func (g *Gossip) sendFailed(peer string, err error) {
	g.metrics.sendFailed.WithLabelValues(reasonError).Inc()
	if ok, suppressed := g.limit.allow("send", 10*time.Second); ok {
		g.log.Warn("cannot send", "peer", peer, "error", err, "suppressed", suppressed)
	}
}

// SetState sets the blob handed out in push/pulls. One over MaxState is
// counted and refused, and the one before stays. blob is kept: do not change it.
func (g *Gossip) SetState(blob []byte) {
	if len(blob) > MaxState {
		g.metrics.sendFailed.WithLabelValues(reasonOversize).Inc()
		if ok, suppressed := g.limit.allow("state", time.Minute); ok {
			g.log.Error("state over the limit is not handed out", "bytes", len(blob), "limit", MaxState, "suppressed", suppressed)
		}
		return
	}
	g.state.Store(&blob)
}
