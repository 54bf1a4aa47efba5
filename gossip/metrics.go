package gossip

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// Values of the label via of what is sent.
const (
	viaRowOut      = "row"      // published rows, straight to peers
	viaCopyOut     = "copy"     // second copies to lossy peers
	viaRelayOut    = "relay"    // on memberlist's own traffic
	viaUnicastOut  = "unicast"  // SendTo
	viaReliableOut = "reliable" // SendReliable
)

// Values of the label reason.
const (
	reasonFull        = "full"        // no room in the inbox
	reasonMalformed   = "malformed"   // not a frame
	reasonOversize    = "oversize"    // over MaxPacket or MaxState
	reasonFingerprint = "fingerprint" // of another set of budgets
	reasonProvisional = "provisional" // rows and state from or to a node that does not know its lineage yet
	reasonPanic       = "panic"       // recovered at the boundary: a defect, please report
	reasonMeta        = "meta"        // node metadata that cannot be read
	reasonName        = "name"        // node name that cannot be accepted
	reasonTable       = "table_full"  // peer table at its bound
	reasonLabel       = "label"       // of another cluster
	reasonKey         = "key"         // cannot be decrypted
	reasonError       = "error"       // the network said no
	reasonUnknownPeer = "unknown_peer"
	reasonClosed      = "closed"
	reasonBusy        = "busy" // too many at once
)

// metrics are all of this package's counters. Labels take the fixed values above.
type metrics struct {
	received    *prometheus.CounterVec // via
	dropped     *prometheus.CounterVec // reason
	duplicates  *prometheus.CounterVec // via
	sentPackets *prometheus.CounterVec // via
	sentBytes   *prometheus.CounterVec // via
	sendFailed  *prometheus.CounterVec // reason
	wireBytes   *prometheus.CounterVec // direction, proto
	relayQueued prometheus.Counter
	// datagramBytes is one of wireBytes, at hand for every datagram.
	datagramBytes prometheus.Counter
	relayDropped  prometheus.Counter
	resendQueued  prometheus.Counter
	resendLost    prometheus.Counter
	rejoins       *prometheus.CounterVec // result
	refused       *prometheus.CounterVec // reason
	conflicts     prometheus.Counter
	badPings      prometheus.Counter
	pings         *prometheus.CounterVec // result
	reports       *prometheus.CounterVec // reason
	moves         prometheus.Counter

	all []prometheus.Collector
	reg prometheus.Registerer
}

func newMetrics() *metrics {
	m := &metrics{}
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Namespace: "budget", Subsystem: "gossip", Name: name, Help: help})
		m.all = append(m.all, c)
		return c
	}
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "budget", Subsystem: "gossip", Name: name, Help: help}, labels)
		m.all = append(m.all, c)
		return c
	}
	m.received = vec("inbox_queued_total", "Packets put into the inbox.", "via")
	m.dropped = vec("inbox_dropped_total", "Incoming packets dropped, by reason; duplicates not included.", "reason")
	m.duplicates = vec("duplicates_total", "Incoming packets that were already seen or older than one seen.", "via")
	m.sentPackets = vec("sent_packets_total", "Packets of ours handed to the network.", "via")
	m.sentBytes = vec("sent_bytes_total", "Bytes of our frames handed to the network, without label and encryption.", "via")
	m.sendFailed = vec("send_failed_total", "Packets that could not be sent, by reason.", "reason")
	m.wireBytes = vec("wire_bytes_total", "All gossip bytes in datagrams and on streams, memberlist's own included, without IP, UDP and TCP headers.", "direction", "proto")
	m.datagramBytes = m.wireBytes.WithLabelValues("in", "udp")
	m.relayQueued = counter("relay_queued_total", "Packets queued for relay.")
	m.relayDropped = counter("relay_dropped_total", "Packets dropped from a full relay queue.")
	m.resendQueued = counter("resend_queued_total", "Changed rows queued to be sent again to lossy peers.")
	m.resendLost = counter("resend_dropped_total", "Re-sends dropped because too many were waiting.")
	m.rejoins = vec("rejoin_attempts_total", "Contacts to seeds and to members believed dead.", "result")
	m.refused = vec("refused_total", "Peers and messages refused by identity, by reason.", "reason")
	m.conflicts = counter("name_conflicts_total", "Times two nodes claimed one name.")
	m.badPings = counter("bad_coordinates_total", "Coordinates or round trips refused as invalid.")
	m.pings = vec("pings_total", "Direct pings, by result.", "result")
	m.reports = vec("memberlist_reports_total", "Warnings and errors of memberlist, by kind.", "kind")
	m.moves = counter("address_changes_total", "Times this node announced a new address.")
	return m
}

// gauge adds a value read at scrape time.
func (m *metrics) gauge(name, help string, read func() float64) {
	m.all = append(m.all, prometheus.NewGaugeFunc(
		prometheus.GaugeOpts{Namespace: "budget", Subsystem: "gossip", Name: name, Help: help}, read))
}

// register puts everything on reg, or nothing.
func (m *metrics) register(reg prometheus.Registerer) error {
	if reg == nil {
		return nil
	}
	var faults []error
	for _, c := range m.all {
		faults = append(faults, reg.Register(c))
	}
	m.reg = reg
	if err := errors.Join(faults...); err != nil {
		return err
	}
	return nil
}

func (m *metrics) unregister() {
	if m.reg == nil {
		return
	}
	for _, c := range m.all {
		m.reg.Unregister(c)
	}
}

func (m *metrics) sent(via string, bytes int) {
	m.sentPackets.WithLabelValues(via).Inc()
	m.sentBytes.WithLabelValues(via).Add(float64(bytes))
}
