//go:build linux

package wan

import (
	"encoding/binary"
	"fmt"
	"net"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// BenchmarkDelay says how late packets of a 20 ms link arrive: at rest, with
// both cores kept busy by other processes, and by goroutines of this one.
func BenchmarkDelay(b *testing.B) {
	b.Run("idle", func(b *testing.B) { delays(b, func(testing.TB) {}) })
	b.Run("processes", func(b *testing.B) { delays(b, burnProcesses) })
	b.Run("goroutines", func(b *testing.B) { delays(b, burnGoroutines) })
}

// delays sends a datagram each millisecond and reports the travel times, up to
// when the receiving kernel got it: when a reader gets to run is not the wire's.
func delays(b *testing.B, burn func(testing.TB)) {
	n := network(b, Config{Hosts: []string{"ams", "fra"}})
	n.Set(func(src, dst int, r *Rule) { r.Delay = 20 * time.Millisecond })
	x := packetSocket(b, n.Hosts()[0], n.Hosts()[0].V4)
	y := packetSocket(b, n.Hosts()[1], n.Hosts()[1].V4)
	stamp(b, y)
	burn(b)
	got := make([]time.Duration, 0, b.N)
	var wait sync.WaitGroup
	wait.Go(func() {
		p, control := make([]byte, 100), make([]byte, 100)
		for range b.N {
			if y.SetReadDeadline(time.Now().Add(patience)) != nil {
				return
			}
			_, k, _, _, err := y.ReadMsgUDP(p, control)
			if err != nil {
				return
			}
			sent := time.Unix(0, int64(binary.BigEndian.Uint64(p)))
			got = append(got, stamped(b, control[:k]).Sub(sent))
		}
	})
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	var p [100]byte
	to := y.LocalAddr().(*net.UDPAddr).AddrPort()
	b.ResetTimer()
	for range b.N {
		<-tick.C
		binary.BigEndian.PutUint64(p[:], uint64(time.Now().UnixNano()))
		if _, err := x.WriteToUDPAddrPort(p[:], to); err != nil {
			b.Fatal(err)
		}
	}
	wait.Wait()
	if len(got) != b.N {
		b.Fatalf("%d of %d datagrams came", len(got), b.N)
	}
	slices.Sort(got)
	at := func(part float64) float64 { return float64(got[int(part*float64(len(got)-1))]) / 1e6 }
	b.ReportMetric(at(.5), "p50-ms")
	b.ReportMetric(at(.99), "p99-ms")
	b.ReportMetric(at(.999), "p99.9-ms")
	b.ReportMetric(n.Stats().LateMax.Seconds()*1000, "switch-max-ms")
}

// stamp asks the kernel to say when it received each datagram; stamped reads it.
func stamp(b *testing.B, c *net.UDPConn) {
	raw, err := c.SyscallConn()
	if err != nil {
		b.Fatal(err)
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)
	})
	if err != nil || failed != nil {
		b.Fatal(err, failed)
	}
}

func stamped(b *testing.B, control []byte) time.Time {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil || len(messages) != 1 || len(messages[0].Data) < 16 {
		b.Errorf("no time stamp: %v, %v", messages, err)
		return time.Time{}
	}
	data := messages[0].Data
	return time.Unix(int64(binary.NativeEndian.Uint64(data)), int64(binary.NativeEndian.Uint64(data[8:])))
}

// burnProcesses keeps every core busy from outside this process.
func burnProcesses(b testing.TB) {
	for range runtime.NumCPU() {
		burner(b)
	}
}

// burnGoroutines keeps every core busy from within.
func burnGoroutines(b testing.TB) {
	stop := make(chan struct{})
	var wait sync.WaitGroup
	for range runtime.NumCPU() {
		wait.Go(func() {
			for x := uint64(1); ; x = mix(x) {
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	b.Cleanup(func() { close(stop); wait.Wait() })
}

// BenchmarkPackets is how many small datagrams the switch carries per second,
// sender and receiver included.
func BenchmarkPackets(b *testing.B) {
	n := network(b, Config{Hosts: []string{"ams", "fra", "iad", "sin"}})
	n.Set(func(src, dst int, r *Rule) { r.Delay = time.Millisecond })
	// The receivers read nothing: the kernel drops what their sockets cannot hold,
	// after the switch has delivered it.
	var wait sync.WaitGroup
	b.ResetTimer()
	for pair := range 2 {
		x := packetSocket(b, n.Hosts()[pair], n.Hosts()[pair].V4)
		y := packetSocket(b, n.Hosts()[2+pair], n.Hosts()[2+pair].V4)
		to := y.LocalAddr().(*net.UDPAddr).AddrPort()
		wait.Go(func() {
			var p [100]byte
			for range b.N / 2 {
				if _, err := x.WriteToUDPAddrPort(p[:], to); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wait.Wait()
	sent := int64(b.N/2) * 2
	for s := n.Stats(); s.Received+s.HostDrop < sent || s.InFlight > 0; s = n.Stats() {
		<-time.After(time.Millisecond)
	}
	s := n.Stats()
	b.ReportMetric(float64(s.Delivered)/b.Elapsed().Seconds(), "delivered/s")
	b.ReportMetric(float64(s.HostDrop)*100/float64(sent), "host-drop-%")
}

// BenchmarkNew is how long 22 hosts take to come and go.
func BenchmarkNew(b *testing.B) {
	needIsolation(b)
	var cfg Config
	for i := range 22 {
		cfg.Hosts = append(cfg.Hosts, fmt.Sprintf("pop-%d", i))
	}
	for range b.N {
		n, err := New(cfg)
		if err != nil {
			b.Fatal(err)
		}
		if err := n.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSet is how long a new table of 22 hosts takes until it is in force.
func BenchmarkSet(b *testing.B) {
	var cfg Config
	for i := range 22 {
		cfg.Hosts = append(cfg.Hosts, fmt.Sprintf("pop-%d", i))
	}
	n := network(b, cfg)
	b.ResetTimer()
	for i := range b.N {
		n.Set(func(src, dst int, r *Rule) { r.Delay = time.Duration(i) })
	}
}

// BenchmarkCore is the cost of a packet in the pure part: in and out, with 1000
// others under way.
func BenchmarkCore(b *testing.B) {
	c := newCore(22, mtuDefault, inFlightDefault, 1)
	rules := make([]Rule, 22*22)
	rules[1] = Rule{Delay: time.Millisecond, Loss: 1000, Jitter: time.Microsecond}
	if err := c.replace(rules); err != nil {
		b.Fatal(err)
	}
	p := packet4(0, 1, make([]byte, 100))
	b.ReportAllocs()
	for i := range b.N {
		now := int64(i) * 1000
		c.receive(0, p, now)
		for {
			_, data, _, ok := c.next(now)
			if !ok {
				break
			}
			c.release(data)
		}
	}
}
