package gossip

import (
	"bytes"
	"io"
	"log"
	"net"
	"net/netip"
	"testing"
)

func opened(t *testing.T, bind string) *sockets {
	t.Helper()
	s, err := openSockets(netip.MustParseAddrPort(bind), log.New(io.Discard, "", 0))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Shutdown(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestDatagramsArriveWholeAndInMemoryOfTheirOwn(t *testing.T) {
	a, b := opened(t, "0.0.0.0:0"), opened(t, "127.0.0.41:0")
	to := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.41"), b.port()).String()
	var kept [][]byte
	for _, n := range []int{1, 100, 1400, 9000} {
		if _, err := a.WriteTo(bytes.Repeat([]byte{byte(n)}, n), to); err != nil {
			t.Fatal(err)
		}
		p := <-b.PacketCh()
		if len(p.Buf) != n || cap(p.Buf) > 2*n+16 || p.Timestamp.IsZero() || p.From.(*net.UDPAddr).Port != int(a.port()) {
			t.Errorf("%d bytes sent: got %d of %d bytes from %v", n, len(p.Buf), cap(p.Buf), p.From)
		}
		kept = append(kept, p.Buf)
	}
	for _, k := range kept {
		if !bytes.Equal(k, bytes.Repeat([]byte{byte(len(k))}, len(k))) {
			t.Errorf("a datagram of %d bytes was overwritten by a later one", len(k))
		}
	}
	if _, err := a.WriteTo([]byte("x"), "name.example:1"); err == nil {
		t.Error("a name is taken for an address")
	}
}

func TestSocketsCloseWithNewsThatNobodyTook(t *testing.T) {
	s := opened(t, "127.0.0.1:0")
	addr := s.tcp.Addr().String()
	c, err := s.DialTimeout(addr, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := s.WriteTo([]byte("x"), addr); err != nil {
		t.Fatal(err)
	}
	if err := s.Shutdown(); err != nil {
		t.Error(err)
	}
	if err := s.Shutdown(); err != nil {
		t.Error(err)
	}
	if _, err := openSockets(netip.MustParseAddrPort("192.0.2.77:0"), s.logger); err == nil {
		t.Error("listens on an address of another machine")
	}
}
