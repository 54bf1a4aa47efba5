package gossip

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/hashicorp/serf/coordinate"
	"github.com/prometheus/client_golang/prometheus"
	"pgregory.net/rapid"
)

func TestFrameSurvivesARoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := frame{
			kind:        kind(rapid.IntRange(int(kindRow), int(kindReach)).Draw(t, "kind")),
			copied:      rapid.Bool().Draw(t, "copied"),
			fingerprint: rapid.Uint64().Draw(t, "fingerprint"),
			counter:     rapid.Uint16().Draw(t, "counter"),
			from:        rapid.StringMatching(`[a-z0-9.-]{1,64}`).Draw(t, "from"),
			packet:      rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "packet"),
		}
		got, err := parseFrame(want.encode())
		if err != nil {
			t.Fatal(err)
		}
		if got.kind != want.kind || got.copied != want.copied || got.fingerprint != want.fingerprint ||
			got.counter != want.counter || got.from != want.from || string(got.packet) != string(want.packet) {
			t.Fatalf("got %+v, want %+v", got, want)
		}
	})
}

func TestBadFramesAreRefused(t *testing.T) {
	f := frame{kind: kindRow, from: "n", packet: []byte("p")}
	good := f.encode()
	edit := func(i int, b byte) []byte {
		c := append([]byte(nil), good...)
		c[i] = b
		return c
	}
	tests := []struct {
		name string
		in   []byte
		want error
	}{
		{"empty", nil, errFrameShort},
		{"cut", good[:frameFixed-1], errFrameShort},
		{"name longer than the rest", edit(12, 200), errFrameShort},
		{"no name", edit(12, 0), errFrameName},
		{"control character in the name", edit(13, '\n'), errFrameName},
		{"later version", edit(0, 2), errFrameVersion},
		{"kind 0", edit(1, 0), errFrameKind},
		{"kind of the future", edit(1, 9), errFrameKind},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := parseFrame(tt.in); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

func TestMetaOfALaterVersionStillGivesTheFingerprint(t *testing.T) {
	m := append(encodeMeta(77), "more"...)
	m[0] = 9
	if got, ok := parseMeta(m); !ok || got != 77 {
		t.Errorf("got %d %v, want 77", got, ok)
	}
	if len(encodeMeta(1)) > memberlist.MetaMaxSize {
		t.Error("memberlist panics on metadata over its limit")
	}
}

func TestSeenTableGivesWayToWhatAPublisherKeepsSaying(t *testing.T) {
	s := newSeenTable(8)
	now := time.Unix(0, 0)
	yes := func() bool { return true }
	steps := []struct {
		name  string
		after time.Duration
		order [2]uint64
		want  verdict
	}{
		{"first", 0, [2]uint64{1, 5}, verdictFresh},
		{"same again", 0, [2]uint64{1, 5}, verdictDuplicate},
		{"older", 0, [2]uint64{1, 4}, verdictDuplicate},
		{"newer", 0, [2]uint64{1, 6}, verdictFresh},
		{"next life with a low sequence", 0, [2]uint64{2, 1}, verdictFresh},
		{"forged, from the far future", 0, [2]uint64{math.MaxUint64, math.MaxUint64}, verdictFresh},
		{"the real one, at once", time.Second, [2]uint64{2, 2}, verdictDuplicate},
		{"the real one, later", seenFor, [2]uint64{2, 30}, verdictRevived},
		{"and on", time.Second, [2]uint64{2, 31}, verdictFresh},
	}
	for _, st := range steps {
		now = now.Add(st.after)
		if got := s.admit("k", st.order, now, yes); got != st.want {
			t.Errorf("%s: verdict %d, want %d", st.name, got, st.want)
		}
	}
}

func TestSeenTableIsBoundedAndForgetsTheOldest(t *testing.T) {
	s := newSeenTable(3)
	now := time.Unix(0, 0)
	yes := func() bool { return true }
	for _, k := range []string{"a", "b", "c", "a", "d"} { // a is renewed, so b goes
		s.admit(k, [2]uint64{1, uint64(now.Unix() + 1)}, now, yes)
		now = now.Add(time.Second)
	}
	if s.len() != 3 {
		t.Fatalf("%d keys, want 3", s.len())
	}
	if got := s.admit("a", [2]uint64{1, 1}, now, yes); got != verdictDuplicate {
		t.Error("a was forgotten though it was renewed")
	}
	if got := s.admit("b", [2]uint64{1, 1}, now, yes); got != verdictFresh {
		t.Error("b should have been forgotten")
	}
}

// The loss window against a plain list of what arrived.
func TestRowLossAgreesWithAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l rowLoss
		start := rapid.Uint16().Draw(t, "start")
		arrived := map[int]bool{0: true}
		l.add(start)
		head := 0
		for range rapid.IntRange(1, 300).Draw(t, "rows") {
			n := max(head+rapid.IntRange(-30, 40).Draw(t, "step"), 0)
			arrived[n] = true
			head = max(head, n)
			l.add(start + uint16(n))
		}
		width, got := min(head+1, rowWindow), 0
		for n := head; n > head-width; n-- {
			if arrived[n] {
				got++
			}
		}
		lost, ok := l.estimate()
		if ok != (width >= rowMin) || ok && lost != (width-got)*ppm/width {
			t.Fatalf("estimate %d %v, want %d of %d arrived", lost, ok, got, width)
		}
	})
}

func TestLossThresholdHasHysteresis(t *testing.T) {
	rows := func(lost int) *rowLoss {
		var l rowLoss
		for i := range rowWindow {
			if i == 0 || i == rowWindow-1 || i > lost {
				l.add(uint16(i))
			}
		}
		return &l
	}
	var none pingLoss
	tests := []struct {
		lost int // of 128
		was  bool
		want bool
	}{
		{0, false, false}, {6, false, false}, {7, false, true}, {7, true, true}, {4, true, true}, {3, true, false}, {0, true, false},
	}
	for _, tt := range tests {
		if _, got := lossy(tt.was, rows(tt.lost), &none); got != tt.want {
			t.Errorf("%d of 128 lost, was %v: lossy %v, want %v", tt.lost, tt.was, got, tt.want)
		}
	}
}

func TestPingLossCountsHalfAndStreaks(t *testing.T) {
	var l pingLoss
	for i := range 32 {
		l.add(i >= 8 && i < 28) // 8 old failures, 4 new
	}
	if got := l.estimate(); got != 12*ppm/32/2 {
		t.Errorf("estimate %d", got)
	}
	if got := l.streak(); got != 4 {
		t.Errorf("streak %d, want 4", got)
	}
	var all pingLoss
	all.add(false)
	if got := all.streak(); got != 1 {
		t.Errorf("streak %d of one failed ping", got)
	}
}

func TestMedianIgnoresTwoOutliersOfFive(t *testing.T) {
	table := newPeerTable(1)
	now := time.Unix(0, 0)
	table.joined(&memberlist.Node{Name: "p"}, 1, now)
	for _, ms := range []int{20, 900, 21, 1, 22, 23, 800} {
		table.pinged("p", time.Duration(ms)*time.Millisecond, true)
	}
	if got, _ := table.roundTrip("p", nil); got != 22*time.Millisecond {
		t.Errorf("median %v, want 22ms (of 21, 1, 22, 23, 800)", got)
	}
	table.pinged("p", -time.Second, true) // a hostile or broken clock
	table.pinged("p", time.Hour, true)
	if got, _ := table.roundTrip("p", nil); got != 22*time.Millisecond {
		t.Errorf("median %v after impossible values", got)
	}
}

func TestPeerTableIsBoundedAndKeepsMembers(t *testing.T) {
	table := newPeerTable(1)
	now := time.Unix(0, 0)
	table.joined(&memberlist.Node{Name: "member"}, 1, now)
	for i := range maxPeers + 50 {
		table.refuse("stranger"+strings.Repeat("x", i%7)+time.Duration(i).String(), nil, 9, reasonFingerprint, now.Add(time.Duration(i)))
	}
	if got := len(table.byName); got > maxPeers {
		t.Errorf("%d entries, bound is %d", got, maxPeers)
	}
	if _, ok := table.find("member"); !ok {
		t.Error("a live member was thrown out for strangers")
	}
	table.expire(now.Add(forgetAfter + time.Hour))
	if got := len(table.byName); got != 1 {
		t.Errorf("%d entries after expiry, want the member only", got)
	}
}

func TestRefusalOfAMemberRunsOut(t *testing.T) {
	table := newPeerTable(1)
	now := time.Unix(0, 0)
	table.joined(&memberlist.Node{Name: "p"}, 1, now)
	there := &memberlist.Node{Name: "p", Port: 1}
	if got := table.refuse("p", there, 2, reasonFingerprint, now); got != refusedClash {
		t.Errorf("a stranger of that name elsewhere: %d", got)
	}
	if _, ok := table.find("p"); !ok {
		t.Error("a stranger of the same name has cut off the member")
	}
	here := &memberlist.Node{Name: "p"}
	if table.refuse("p", here, 2, reasonFingerprint, now) != refusedNews || table.refuse("p", here, 2, reasonFingerprint, now) != refusedKnown {
		t.Error("a refusal is news once")
	}
	if _, ok := table.find("p"); ok {
		t.Error("refused, but still sent to")
	}
	table.expire(now.Add(refusedFor + time.Second))
	if _, ok := table.find("p"); !ok {
		t.Error("refusal without further proof must run out")
	}
}

func TestConfigReportsAllFaultsAtOnce(t *testing.T) {
	c := Config{
		Cluster: strings.Repeat("x", 65), Name: "a b", Listen: "nowhere", Advertise: "h:99999", Seeds: []string{"host"},
		Keys: [][]byte{make([]byte, 16), make([]byte, 16)}, Profile: 9, RejoinInterval: time.Hour, QueueLen: -1,
	}
	err := c.Validate()
	for _, want := range []string{"cluster", "node name", "listen", "advertise", "seed 0", "key 0", "key 1: 16", "same as key 0", "profile", "rejoin", "queue", "key function"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no fault that says %q in: %v", want, err)
		}
	}
	if _, err := New(c, discard(), nil); err == nil {
		t.Error("New takes a faulty configuration")
	}
	ok := Config{Cluster: "c", Name: "n", Listen: "127.0.0.1:0", Key: rowKey}
	if err := ok.Validate(); err != nil {
		t.Errorf("the least configuration: %v", err)
	}
}

func TestProfilesHaveNamesAndNoCompression(t *testing.T) {
	for _, p := range []Profile{LAN, WAN, Local} {
		got, err := ParseProfile(p.String())
		if err != nil || got != p {
			t.Errorf("%v: %v %v", p, got, err)
		}
		c := Config{Cluster: "c", Name: "n", Profile: p}
		m, err := c.memberlist()
		if err != nil || m.EnableCompression || m.Label != "c" || m.UDPBufferSize != datagramBytes {
			t.Errorf("%v: %+v %v", p, m, err)
		}
	}
	if _, err := ParseProfile("moon"); err == nil {
		t.Error("moon is no profile")
	}
}

// The relay queue must be able to send the largest packet under the longest
// names: memberlist keeps what does not fit for ever, silently.
func TestLargestRelayFrameFitsADatagram(t *testing.T) {
	g := &Gossip{cfg: Config{Cluster: strings.Repeat("c", MaxName), Name: strings.Repeat("n", MaxName), Keys: [][]byte{nil}}}
	const compound = 2 + 2 // memberlist's header and its overhead per message
	if got := MaxPacket + g.Overhead() - 5 + compound; got > datagramBytes {
		t.Errorf("%d bytes, limit %d", got, datagramBytes)
	}
	q := newRelayQueue(1, func() int { return 1 }, newMetrics())
	q.add("k", make([]byte, MaxPacket+frameFixed+MaxName))
	// What memberlist offers beside label and encryption.
	if got := q.take(2+1, datagramBytes-2-(2+MaxName)-29); len(got) != 1 {
		t.Error("memberlist would never send it")
	}
}

func TestRelayQueueReplacesByKeyAndIsBounded(t *testing.T) {
	q := newRelayQueue(3, func() int { return 5 }, newMetrics())
	q.add("a", []byte("old"))
	q.add("a", []byte("new"))
	got := q.take(0, 1000)
	if len(got) != 1 || string(got[0]) != "new" {
		t.Errorf("got %q, want only the new one", got)
	}
	for i := range maxRelay + 100 {
		q.add(time.Duration(i).String(), []byte("x"))
	}
	if n := q.q.NumQueued(); n > maxRelay {
		t.Errorf("%d queued, bound is %d", n, maxRelay)
	}
	if counter(q.metrics.relayDropped) == 0 {
		t.Error("what the bound cost is not counted")
	}
}

func TestCoordinateSurvivesARoundTripAndHostileOnesAreRefused(t *testing.T) {
	c := coordinate.NewCoordinate(coordinate.DefaultConfig())
	c.Vec[3], c.Height, c.Adjustment = 0.25, 0.01, -0.002
	good := encodeCoord(c)
	got, err := parseCoord(append(good, "of a later version"...))
	if err != nil || got.Vec[3] != 0.25 || got.Height != 0.01 || got.Adjustment != -0.002 || got.Error != c.Error {
		t.Fatalf("got %+v %v", got, err)
	}
	for name, v := range map[string]float64{"NaN": math.NaN(), "inf": math.Inf(-1), "huge": 1e300, "11 s": 11} {
		bad := coordinate.NewCoordinate(coordinate.DefaultConfig())
		bad.Vec[7] = v
		if _, err := parseCoord(encodeCoord(bad)); err == nil {
			t.Errorf("%s accepted", name)
		}
	}
	bad := coordinate.NewCoordinate(coordinate.DefaultConfig())
	bad.Height = -1
	if _, err := parseCoord(encodeCoord(bad)); err == nil {
		t.Error("negative height accepted")
	}
	if _, err := parseCoord(good[:coordBytes-1]); err == nil {
		t.Error("cut payload accepted")
	}
}

func TestAddressesAreSplitAndChecked(t *testing.T) {
	tests := []struct {
		in   string
		def  int
		host string
		port uint16
		ok   bool
	}{
		{"10.0.0.1:7946", -1, "10.0.0.1", 7946, true},
		{"[2001:db8::1]:7946", -1, "2001:db8::1", 7946, true},
		{"ams.example:1", -1, "ams.example", 1, true},
		{":7946", -1, "", 7946, true},
		{"ams.example", 7946, "ams.example", 7946, true},
		{"2001:db8::1", 7946, "2001:db8::1", 7946, true},
		{"ams.example", -1, "", 0, false},
		{"ams.example:70000", -1, "", 0, false},
		{"a:b:c", 1, "", 0, false},
		{"", 1, "", 0, false},
	}
	for _, tt := range tests {
		host, port, err := splitHostPort(tt.in, tt.def)
		if (err == nil) != tt.ok || host != tt.host || port != tt.port {
			t.Errorf("%q: got %q %d %v", tt.in, host, port, err)
		}
	}
}

func TestAdvertisedAddress(t *testing.T) {
	lookup := func(_ context.Context, host string) ([]netip.Addr, error) {
		switch host {
		case "two":
			return []netip.Addr{netip.MustParseAddr("2001:db8::7"), netip.MustParseAddr("10.9.0.9"), netip.MustParseAddr("10.9.0.2")}, nil
		case "any":
			return []netip.Addr{netip.IPv4Unspecified()}, nil
		}
		return nil, errors.New("no such host")
	}
	all := netip.MustParseAddrPort("0.0.0.0:7946")
	tests := []struct {
		name, advertise string
		bound           netip.AddrPort
		want            string // "" is an error
	}{
		{"bound to one", "", netip.MustParseAddrPort("10.1.1.1:7000"), "10.1.1.1:7000"},
		{"explicit behind NAT, another port", "203.0.113.5:9000", all, "203.0.113.5:9000"},
		{"without port", "203.0.113.5", all, "203.0.113.5:7946"},
		{"v6", "[2001:db8::1]:9", all, "[2001:db8::1]:9"},
		{"name: family of the socket, then the least", "two:9", all, "10.9.0.2:9"},
		{"unknown name", "nope:9", all, ""},
		{"useless address", "any:9", all, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := advertised(context.Background(), lookup, tt.advertise, tt.bound)
			if tt.want == "" {
				if err == nil {
					t.Errorf("got %v, want an error", got)
				}
				return
			}
			if err != nil || got.String() != tt.want {
				t.Errorf("got %v %v, want %s", got, err, tt.want)
			}
		})
	}
}

func TestHostAddressPrefersPrivateAndSaysWhenThereIsNone(t *testing.T) {
	parse := func(s ...string) (out []netip.Addr) {
		for _, a := range s {
			out = append(out, netip.MustParseAddr(a))
		}
		return out
	}
	v4, v6 := netip.IPv4Unspecified(), netip.IPv6Unspecified()
	if got, _ := bestHostAddress(parse("127.0.0.1", "203.0.113.1", "10.0.0.4", "fe80::1"), v4); got.String() != "10.0.0.4" {
		t.Errorf("got %v", got)
	}
	if got, _ := bestHostAddress(parse("::1", "fe80::1", "2001:db8::5", "fd00::5"), v6); got.String() != "fd00::5" {
		t.Errorf("got %v", got)
	}
	if _, err := bestHostAddress(parse("127.0.0.1", "169.254.1.1", "::1", "2001:db8::5"), v4); !errors.Is(err, errNoAddress) {
		t.Errorf("got %v, want the clear error", err)
	}
}

func TestMemberlistLogIsLevelledCountedAndLimited(t *testing.T) {
	logs, m := &logText{}, newMetrics()
	h := slog.New(slog.NewTextHandler(logs, nil))
	l := log.New(&logBridge{log: h, metrics: m, limit: newLogLimit()}, "", 0)
	for range 1000 {
		l.Printf("[ERR] memberlist: discarding packet with unacceptable label %q: from=1.2.3.4:5", "x")
		l.Printf("[ERR] memberlist: Decrypt packet failed: No installed keys could decrypt the message from=1.2.3.4:5")
		l.Printf("[DEBUG] memberlist: Stream connection from=1.2.3.4:5")
		l.Printf("[WARN] memberlist: never seen before %s", strings.Repeat("\xff", 4000))
	}
	if got := logs.count(""); got != 3 {
		t.Errorf("%d lines for 4000 messages of three kinds, want 3", got)
	}
	for reason, want := range map[string]float64{reasonLabel: 1000, reasonKey: 1000} {
		if got := counter(m.refused.WithLabelValues(reason)); got != want {
			t.Errorf("%s: counted %v, want %v", reason, got, want)
		}
	}
}

func TestLogLimitIsBounded(t *testing.T) {
	l := newLogLimit()
	for i := range 10 * maxLimitKeys {
		l.allow(time.Duration(i).String(), time.Hour)
	}
	if len(l.last) > maxLimitKeys+1 {
		t.Errorf("%d keys", len(l.last))
	}
}

func TestPacketsOverTheLimitAreRefused(t *testing.T) {
	g := quietGossip(t)
	big := make([]byte, MaxPacket+1)
	g.Publish(big, true)
	g.SendReliable("x", make([]byte, MaxLong+1))
	if err := g.SendTo("x", big); !errors.Is(err, ErrOversize) {
		t.Errorf("got %v", err)
	}
	g.SetState([]byte("good"))
	g.SetState(make([]byte, MaxState+1))
	if got := string(*g.state.Load()); got != "good" {
		t.Error("an oversized state replaced the good one")
	}
	if got := counter(g.metrics.sendFailed.WithLabelValues(reasonOversize)); got != 4 {
		t.Errorf("%v counted, want 4", got)
	}
	unicast := frame{kind: kindUnicast, fingerprint: 42, from: "p", packet: make([]byte, MaxLong+1)}
	row := frame{kind: kindRow, fingerprint: 42, from: "p", packet: big}
	delegate{g}.NotifyMsg(unicast.encode())
	delegate{g}.NotifyMsg(row.encode())
	if got := counter(g.metrics.dropped.WithLabelValues(reasonOversize)); got != 2 {
		t.Errorf("incoming: %v counted, want 2", got)
	}
}

func TestPanicInTheKeyFunctionIsContained(t *testing.T) {
	g := quietGossip(t)
	g.cfg.Key = func([]byte) (string, [2]uint64, bool) { panic("defect") }
	f := frame{kind: kindRow, fingerprint: 42, from: "p", packet: []byte("x")}
	delegate{g}.NotifyMsg(f.encode())
	if got := counter(g.metrics.dropped.WithLabelValues(reasonPanic)); got != 1 {
		t.Errorf("%v counted, want 1", got)
	}
}

func TestMetricsGoAwayWithTheNode(t *testing.T) {
	reg := prometheus.NewRegistry()
	net := newFakeNet(1)
	for range 2 { // a second node on the same registry must be possible after the first
		cfg := Config{Cluster: "c", Name: "n", Key: rowKey, Transport: net.attach(addrOf(0))}
		g, err := New(cfg, discard(), reg)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := reg.Gather(); err != nil || len(got) == 0 {
			t.Errorf("gathered %d families, %v", len(got), err)
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}
	waitForGoroutines(t)
}

func TestStreamsAreBoundedInNumberAndLength(t *testing.T) {
	fake := newFakeNet(1).attach(addrOf(0))
	tr := newTransport(fake, netip.AddrPort{}, newMetrics())
	var open []net.Conn
	for range maxInbound + 5 {
		near, far := net.Pipe()
		defer near.Close()
		if c, err := tr.track(far, true); err == nil {
			open = append(open, c)
		}
	}
	if len(open) != maxInbound || counter(tr.metrics.refused.WithLabelValues(reasonBusy)) != 5 {
		t.Errorf("%d streams taken in, want %d", len(open), maxInbound)
	}
	for range 2 {
		_ = open[0].Close()
	}
	near, far := net.Pipe()
	defer near.Close()
	c, err := tr.track(far, true)
	if err != nil {
		t.Fatal("no room after a stream has ended")
	}
	c.left = 3
	go func() { _, _ = near.Write([]byte("12345")) }()
	if got, err := io.ReadAll(c); len(got) != 3 || !errors.Is(err, errStreamTooLong) {
		t.Errorf("read %d bytes, %v", len(got), err)
	}
	if err := tr.Shutdown(); err != nil {
		t.Error(err)
	}
}

func BenchmarkPublish(b *testing.B) {
	for _, peers := range []int{21, 99} {
		b.Run(fmt.Sprintf("peers=%d", peers), func(b *testing.B) {
			net := newFakeNet(1)
			net.setRule(func(string, string) link { return link{cut: true} })
			g, err := New(Config{Cluster: "c", Name: "n", Fingerprint: 42, Key: rowKey, Transport: net.attach(addrOf(0)), Keys: [][]byte{make([]byte, 32)}}, discard(), nil)
			if err != nil {
				b.Fatal(err)
			}
			for i := range peers {
				g.peers.joined(&memberlist.Node{Name: nameOf(i), Addr: []byte{10, 0, 0, 1}, Port: 7946, PMax: 5}, 42, time.Now())
			}
			seq := uint64(0)
			b.ReportAllocs()
			for b.Loop() {
				seq++
				g.Publish(row("n", 1, seq), false)
			}
			if err := g.Close(); err != nil {
				b.Error(err)
			}
		})
	}
}

func BenchmarkReceive(b *testing.B) {
	g := quietGossip(b)
	d := delegate{g}
	g.peers.joined(&memberlist.Node{Name: "peer"}, 42, time.Now())
	f := frame{kind: kindRow, fingerprint: 42, from: "peer"}
	seq := uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		seq++
		f.packet, f.counter = row("peer", 1, seq), uint16(seq)
		d.NotifyMsg(f.encode())
		<-g.inbox
	}
}
