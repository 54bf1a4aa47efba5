package timed

import "time"

// resendAfter and lossyFrom are the gossip shell's: a row that asks for a change
// is sent twice to peers behind a lossy link.
const (
	resendAfter = int64(25 * time.Millisecond)
	lossyFrom   = 50_000
)

// network is the state of the wires. It is computed anew from the faults in
// force whenever one begins or ends.
type network struct {
	loss, duplicates int64   // ppm
	late, jitter     int64   // ns
	cut              []Fault // what keeps packets from arriving
}

// rewire computes the network from the faults in force.
func (w *world) rewire() {
	n := network{jitter: w.setup.Jitter, cut: w.net.cut[:0]}
	if w.now >= w.quietEnd { // quiet times have no faults at all
		n.loss, n.duplicates = w.setup.LossPPM, w.setup.DuplicatePPM
	}
	for _, i := range w.active {
		f := w.schedule[i]
		switch f.Kind {
		case Loss:
			n.loss = max(n.loss, f.Arg)
		case Duplicates:
			n.duplicates = max(n.duplicates, f.Arg)
		case Late:
			n.late = max(n.late, min(f.Arg, lateMost))
		case Jitter:
			n.jitter = max(n.jitter, min(f.Arg, lateMost))
		case Split, OneWay, Link, Flap, Deaf, Mute:
			n.cut = append(n.cut, f)
		}
	}
	w.net = n
}

// blocked reports whether a packet sent now between two nodes is lost for sure.
func (w *world) blocked(from, to int) bool {
	for i := range w.net.cut {
		c := &w.net.cut[i]
		a, b := c.Arg>>from&1 == 1, c.Arg>>to&1 == 1
		switch c.Kind {
		case Split:
			if a != b {
				return true
			}
		case OneWay:
			if a && !b {
				return true
			}
		case Flap:
			if (w.now-c.At)/max(c.Arg, 1)%2 == 1 {
				continue
			}
			fallthrough
		case Link:
			if int(c.Who) == from && int(c.With) == to || int(c.Who) == to && int(c.With) == from {
				return true
			}
		case Deaf:
			if int(c.Who) == to {
				return true
			}
		case Mute:
			if int(c.Who) == from {
				return true
			}
		}
	}
	return false
}

// carry lets a packet of node from travel to node to, or not. as is who the
// receiver takes for the sender; a relay passes on as if it were him. after
// delays the sending.
func (w *world) carry(from, as, to *host, packet []byte, after int64) {
	w.sent++
	if from == to {
		return
	}
	if w.blocked(from.id, to.id) {
		w.seen[cutOff]++
		return
	}
	r := &from.rng
	if w.net.loss > 0 && r.Int64N(1_000_000) < w.net.loss {
		w.seen[lost]++
		return
	}
	for range 2 {
		d := after + w.delay[from.id][to.id]
		if w.net.jitter > 0 {
			d += r.Int64N(w.net.jitter)
		}
		if w.setup.Swing > 0 {
			d += r.Int64N(d/100*w.setup.Swing + 1)
		}
		if w.net.late > 0 && r.IntN(10) == 0 {
			d += r.Int64N(w.net.late)
			w.seen[cameLate]++
		}
		w.queue.add(event{at: w.now + d, kind: arrives, from: int16(as.id), to: int16(to.id), data: packet})
		if w.net.duplicates == 0 || r.Int64N(1_000_000) >= w.net.duplicates {
			return
		}
		w.seen[duplicated]++
	}
}

// sendRow is what the gossip shell does with a row: to everybody, and a second
// time where the link is lossy and the row asks for a change.
func (w *world) sendRow(h *host, packet []byte, changed bool, every int) {
	again := changed && w.net.loss >= lossyFrom
	for i, to := range w.hosts {
		if i%every != 0 {
			continue
		}
		w.carry(h, h, to, packet, 0)
		if again {
			w.seen[resent]++
			w.carry(h, h, to, packet, resendAfter)
		}
	}
}

// relay passes an arrived row on to a random peer, as gossip does.
func (w *world) relay(h, as *host, packet []byte) {
	if w.setup.RelayPPM > 0 && h.rng.Int64N(1_000_000) < w.setup.RelayPPM {
		if to := w.hosts[h.rng.IntN(len(w.hosts))]; to != as && to != h {
			w.seen[relayed]++
			w.carry(h, as, to, packet, 0)
		}
	}
}
