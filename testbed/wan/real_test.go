//go:build linux

package wan

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		os.Exit(play(role))
	}
	// A fuzz worker talks to its parent through file descriptors that Isolate would
	// not pass on; it needs no network.
	fuzzing := slices.ContainsFunc(os.Args, func(a string) bool {
		return strings.HasPrefix(a, "-test.fuzz=") || a == "-test.fuzzworker"
	})
	if fuzzing {
		os.Exit(m.Run())
	}
	if err := Isolate(); err != nil {
		// Every test that needs a network says so by itself.
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(m.Run())
}

// needIsolation skips a test, with what is missing, where Isolate failed.
func needIsolation(t testing.TB) {
	t.Helper()
	if os.Getenv(readyVariable) != strconv.Itoa(os.Getpid()) {
		t.Skipf("no namespaces of our own here: %s", strings.Join(Check(), "; "))
	}
}

// patience is how long a test waits for what must come: far more than it takes.
const patience = 20 * time.Second

// network builds a network for a test, or skips the test with what is missing.
func network(t testing.TB, cfg Config) *Net {
	t.Helper()
	needIsolation(t)
	n, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

func families(h *Host) map[string]netip.Addr {
	return map[string]netip.Addr{"4": h.V4, "6": h.V6}
}

func address(a netip.Addr, port int) string {
	return netip.AddrPortFrom(a, uint16(port)).String()
}

// packetSocket opens a UDP socket in a host, on a port of the kernel's choice.
func packetSocket(t testing.TB, h *Host, a netip.Addr) *net.UDPConn {
	t.Helper()
	c, err := h.ListenPacket("udp", address(a, 0))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c.(*net.UDPConn)
}

// expect reads one datagram and checks what it says.
func expect(t testing.TB, c *net.UDPConn, want string) {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 2048)
	n, err := c.Read(b)
	if err != nil || string(b[:n]) != want {
		t.Fatalf("got %q, %v, want %q", b[:n], err, want)
	}
}

func send(t testing.TB, from, to *net.UDPConn, text string) {
	t.Helper()
	if _, err := from.WriteTo([]byte(text), to.LocalAddr()); err != nil {
		t.Fatal(err)
	}
}

// settled waits until the switch has dealt with so many packets.
func settled(t testing.TB, n *Net, received int64) Stats {
	t.Helper()
	for end := time.Now().Add(patience); ; {
		s := n.Stats()
		if s.Received >= received && s.InFlight == 0 && ended(s) == s.Received+s.Duplicated {
			return s
		}
		if time.Now().After(end) {
			t.Fatalf("the switch has not dealt with %d packets: %+v", received, s)
		}
		<-time.After(time.Millisecond)
	}
}

func TestTCPAndUDPGoThroughOverBothFamilies(t *testing.T) {
	n := network(t, Config{Hosts: []string{"ams", "fra"}})
	a, b := n.Hosts()[0], n.Hosts()[1]
	for family, addr := range families(b) {
		t.Run("tcp"+family, func(t *testing.T) {
			l, err := b.Listen("tcp"+family, address(addr, 8080))
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			go func() {
				c, err := l.Accept()
				if err != nil {
					return
				}
				defer c.Close()
				_, _ = io.Copy(c, c)
			}()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			c, err := a.DialContext(ctx, "tcp", address(addr, 8080))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			want := bytes.Repeat([]byte("0123456789abcdef"), 1<<15)
			go func() {
				_, _ = c.Write(want)
				_ = c.(*net.TCPConn).CloseWrite()
			}()
			got, err := io.ReadAll(c)
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%d of %d bytes came back whole: %v", len(got), len(want), err)
			}
			if from := c.LocalAddr().(*net.TCPAddr).AddrPort().Addr(); from != families(a)[family] {
				t.Errorf("dialled from %s, want the address of the host", from)
			}
		})
		t.Run("udp"+family, func(t *testing.T) {
			x, y := packetSocket(t, a, families(a)[family]), packetSocket(t, b, addr)
			send(t, x, y, "ping")
			expect(t, y, "ping")
			send(t, y, x, "pong")
			expect(t, x, "pong")
		})
	}
	if s := n.Stats(); s.Malformed+s.Refused+s.Unroutable+s.HostDrop != 0 {
		t.Errorf("a packet did not fit: %+v", s)
	}
}

func TestBlockCutsOneDirectionOnlyAndWhatIsInFlight(t *testing.T) {
	n := network(t, Config{Hosts: []string{"ams", "fra"}})
	x := packetSocket(t, n.Hosts()[0], n.Hosts()[0].V4)
	y := packetSocket(t, n.Hosts()[1], n.Hosts()[1].V4)
	n.Set(func(src, dst int, r *Rule) { r.Block = src == 0 })
	send(t, x, y, "cut on entry")
	send(t, y, x, "the other way")
	expect(t, x, "the other way")
	if s := settled(t, n, 2); s.Blocked != 1 || s.Delivered != 1 {
		t.Errorf("%+v, want one blocked and one delivered", s)
	}

	n.Set(func(src, dst int, r *Rule) { *r = Rule{Delay: time.Second} })
	send(t, x, y, "cut in flight")
	for end := time.Now().Add(patience); n.Stats().InFlight == 0; {
		if time.Now().After(end) {
			t.Fatal("the packet was never seen in flight")
		}
	}
	n.Set(func(src, dst int, r *Rule) { r.Block = src == 0 })
	n.Set(func(src, dst int, r *Rule) { *r = Rule{} }) // healed before it was due
	send(t, x, y, "after")
	expect(t, y, "after")
	if s := settled(t, n, 4); s.Blocked != 2 || s.Delivered != 2 {
		t.Errorf("%+v, want two blocked and two delivered", s)
	}
}

func TestABlockedHostKeepsItsLoopbackAndUnixSockets(t *testing.T) {
	n := network(t, Config{Hosts: []string{"ams", "fra"}})
	n.Set(func(src, dst int, r *Rule) { r.Block = true })
	h := n.Hosts()[0]
	for network, addr := range map[string]string{
		"tcp4": "127.0.0.1:80", "tcp6": "[::1]:80", "tcp": address(h.V4, 81),
		"unix": filepath.Join(t.TempDir(), "admin.sock"),
	} {
		l, err := h.Listen(network, addr)
		if err != nil {
			t.Fatal(err)
		}
		c, err := h.DialContext(t.Context(), network, addr)
		if err != nil {
			t.Errorf("%s %s: %v", network, addr, err)
		} else {
			c.Close()
		}
		l.Close()
	}
}

// fates sends numbered datagrams one way under a rule and returns what became
// of them.
func fates(t *testing.T, seed uint64, packets int) (Stats, []string) {
	n := network(t, Config{Hosts: []string{"ams", "fra"}, Seed: seed})
	n.Set(func(src, dst int, r *Rule) {
		*r = Rule{Loss: 200_000, Duplicate: 100_000, Reorder: 50_000, Jitter: time.Millisecond}
	})
	x := packetSocket(t, n.Hosts()[0], n.Hosts()[0].V6)
	y := packetSocket(t, n.Hosts()[1], n.Hosts()[1].V6)
	if err := y.SetReadBuffer(1 << 20); err != nil {
		t.Fatal(err)
	}
	for i := range packets {
		send(t, x, y, fmt.Sprint(i))
	}
	s := settled(t, n, int64(packets))
	var got []string
	b := make([]byte, 100)
	for range s.Delivered {
		if err := y.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		k, err := y.Read(b)
		if err != nil {
			t.Fatalf("after %d of %d: %v", len(got), s.Delivered, err)
		}
		got = append(got, string(b[:k]))
	}
	slices.Sort(got)
	return s, got
}

func TestTheSameSeedGivesTheSameFates(t *testing.T) {
	const packets = 400
	one, first := fates(t, 7, packets)
	two, second := fates(t, 7, packets)
	other, third := fates(t, 8, packets)
	if one.Lost != two.Lost || one.Duplicated != two.Duplicated || one.Reordered != two.Reordered ||
		!slices.Equal(first, second) {
		t.Errorf("seed 7 twice: %+v and %+v", one, two)
	}
	if slices.Equal(first, third) {
		t.Errorf("seed 8 is as seed 7: %+v", other)
	}
	if one.Lost < packets/10 || one.Lost > packets*3/10 || one.Duplicated == 0 || one.Reordered == 0 {
		t.Errorf("the rule did not bite as asked: %+v", one)
	}
}

func TestProcessesOfAHostSeeItsNetworkOnly(t *testing.T) {
	n := network(t, Config{Hosts: []string{"ams", "fra"}})
	for _, h := range n.Hosts() {
		cmd := exec.Command("cat", "/proc/net/fib_trie")
		var out strings.Builder
		cmd.Stdout = &out
		if err := h.Start(cmd); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
		for _, other := range n.Hosts() {
			local := strings.Contains(out.String(), "-- "+other.V4.String()+"\n")
			if local != (h == other) {
				t.Errorf("%s has the address of %s: %v", h.Name, other.Name, local)
			}
		}
	}
}

func TestCloseLeavesNothingBehind(t *testing.T) {
	n := network(t, Config{Hosts: []string{"warm"}}) // what the runtime opens once is open now
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	open := func() int {
		files, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(files)
	}
	mounts := func() string {
		b, err := os.ReadFile("/proc/self/mounts")
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	files, mounted := open(), mounts()
	n = network(t, Config{Hosts: []string{"ams", "fra", "iad"}})
	child := exec.Command("sleep", "1000")
	child.SysProcAttr = dieWithParent()
	if err := n.Hosts()[0].Start(child); err != nil {
		t.Fatal(err)
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	if err := child.Wait(); err == nil {
		t.Error("a process that was to die with its host ended well")
	}
	if got := open(); got != files {
		t.Errorf("%d files are open, %d before", got, files)
	}
	if got := mounts(); got != mounted {
		t.Errorf("mounts are\n%s\nbefore\n%s", got, mounted)
	}
	if err := n.Close(); err != nil {
		t.Errorf("closed twice: %v", err)
	}
	if err := n.Hosts()[0].Do(func() error { return nil }); err == nil {
		t.Error("a closed host still works")
	}
}

func TestEveryOneOf22HostsReachesEveryOther(t *testing.T) {
	const hosts = 22
	var cfg Config
	for i := range hosts {
		cfg.Hosts = append(cfg.Hosts, fmt.Sprintf("pop-%d", i))
	}
	n := network(t, cfg)
	n.Set(func(src, dst int, r *Rule) { r.Delay = time.Duration(src+dst) * time.Millisecond })
	for _, family := range []string{"4", "6"} {
		var sockets []*net.UDPConn
		for _, h := range n.Hosts() {
			sockets = append(sockets, packetSocket(t, h, families(h)[family]))
		}
		for src, x := range sockets {
			for dst, y := range sockets {
				if src != dst {
					send(t, x, y, fmt.Sprint(src))
				}
			}
		}
		b := make([]byte, 10)
		for dst, y := range sockets {
			heard := map[string]bool{}
			for len(heard) < hosts-1 {
				if err := y.SetReadDeadline(time.Now().Add(patience)); err != nil {
					t.Fatal(err)
				}
				k, err := y.Read(b)
				if err != nil {
					t.Fatalf("IPv%s: host %d heard only %v: %v", family, dst, heard, err)
				}
				heard[string(b[:k])] = true
			}
		}
	}
}

func TestADeadSwitchIsTold(t *testing.T) {
	needIsolation(t)
	n, err := New(Config{Hosts: []string{"ams", "fra"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.proc.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-n.proc.ended
	n.Set(func(src, dst int, r *Rule) { r.Block = true })
	n.Stats()
	if err := n.Close(); err == nil || !strings.Contains(err.Error(), "had ended: signal: killed") {
		t.Errorf("got %v, want how the switch ended", err)
	}
}

func TestNamesAreNotLookedUp(t *testing.T) {
	n := network(t, Config{Hosts: []string{"ams"}})
	for _, addr := range []string{"localhost:80", "127.0.0.1:http", "127.0.0.1", "[::1]"} {
		if _, err := n.Hosts()[0].DialContext(t.Context(), "tcp", addr); err == nil ||
			!strings.HasPrefix(err.Error(), "wan: ") {
			t.Errorf("%s: got %v, want a refusal", addr, err)
		}
	}
}
