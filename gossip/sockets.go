package gossip

import (
	"errors"
	"fmt"
	"log"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/prometheus/client_golang/prometheus"
)

const (
	datagramMax = 1 << 16
	// recvBuffer is asked of the kernel for the UDP socket, halved until it is
	// granted: the rows of many nodes come close together.
	recvBuffer    = 2 << 20
	acceptWaitMin = 5 * time.Millisecond
	acceptWaitMax = time.Second
)

// sockets is a UDP and a TCP socket on one port. It does what memberlist's own
// NetTransport does, but for a fresh 64 KiB of memory for every datagram: with a
// hundred of those in a second the garbage collector did little else.
type sockets struct {
	tcp    *net.TCPListener
	udp    *net.UDPConn
	logger *log.Logger
	// received counts the bytes of datagrams, from when it is set.
	received atomic.Pointer[prometheus.Counter]
	packets  chan *memberlist.Packet
	streams  chan net.Conn
	down     chan struct{}
	once     sync.Once
	wg       sync.WaitGroup
}

var _ memberlist.Transport = (*sockets)(nil)

// openSockets listens on bind; port 0 takes one that is free for TCP.
func openSockets(bind netip.AddrPort, logger *log.Logger) (*sockets, error) {
	tcp, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(bind))
	if err != nil {
		return nil, err
	}
	port := tcp.Addr().(*net.TCPAddr).AddrPort().Port()
	udp, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(bind.Addr(), port)))
	if err != nil {
		_ = tcp.Close()
		return nil, err
	}
	for size := recvBuffer; size > 0 && udp.SetReadBuffer(size) != nil; size /= 2 {
	}
	s := &sockets{
		tcp: tcp, udp: udp, logger: logger,
		packets: make(chan *memberlist.Packet), streams: make(chan net.Conn), down: make(chan struct{}),
	}
	s.wg.Go(s.accept)
	s.wg.Go(s.receive)
	return s, nil
}

func (s *sockets) port() uint16 { return s.tcp.Addr().(*net.TCPAddr).AddrPort().Port() }

// receive passes datagrams on, each in a slice of its own size.
func (s *sockets) receive() {
	buffer := make([]byte, datagramMax)
	for {
		n, from, err := s.udp.ReadFromUDPAddrPort(buffer)
		at := time.Now() // as close to the arrival as can be: round trips end here
		if err != nil {
			if s.ended(err) {
				return
			}
			s.logger.Printf("[ERR] memberlist: Error reading UDP packet: %v", err)
			continue
		}
		if n == 0 {
			continue
		}
		if c := s.received.Load(); c != nil {
			(*c).Add(float64(n))
		}
		p := &memberlist.Packet{Buf: append([]byte(nil), buffer[:n]...), From: net.UDPAddrFromAddrPort(from), Timestamp: at}
		select {
		case s.packets <- p:
		case <-s.down:
			return
		}
	}
}

// accept passes streams on. What fails, such as for want of files, is tried again
// after a while.
func (s *sockets) accept() {
	wait := acceptWaitMin
	for {
		c, err := s.tcp.AcceptTCP()
		if err != nil {
			if s.ended(err) {
				return
			}
			s.logger.Printf("[ERR] memberlist: Error accepting TCP connection: %v", err)
			pause := time.NewTimer(wait)
			select {
			case <-pause.C:
			case <-s.down:
				pause.Stop()
				return
			}
			wait = min(2*wait, acceptWaitMax)
			continue
		}
		wait = acceptWaitMin
		select {
		case s.streams <- c:
		case <-s.down:
			_ = c.Close()
			return
		}
	}
}

func (s *sockets) ended(err error) bool {
	select {
	case <-s.down:
		return true
	default:
		return errors.Is(err, net.ErrClosed)
	}
}

// FinalAdvertiseAddr is never asked: the transport around this one knows it.
func (s *sockets) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	a := s.tcp.Addr().(*net.TCPAddr)
	return a.IP, a.Port, nil
}

func (s *sockets) PacketCh() <-chan *memberlist.Packet { return s.packets }
func (s *sockets) StreamCh() <-chan net.Conn           { return s.streams }

// WriteTo sends a datagram to IP:PORT. The instant is that of the return from the
// kernel.
func (s *sockets) WriteTo(b []byte, addr string) (time.Time, error) {
	to, err := netip.ParseAddrPort(addr)
	if err != nil {
		return time.Time{}, fmt.Errorf("gossip send: %w", err)
	}
	_, err = s.udp.WriteToUDPAddrPort(b, netip.AddrPortFrom(to.Addr().Unmap(), to.Port()))
	return time.Now(), err
}

// DialTimeout opens a stream.
func (s *sockets) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	return net.DialTimeout("tcp", addr, timeout)
}

// Shutdown closes both sockets and waits for their readers.
func (s *sockets) Shutdown() error {
	s.once.Do(func() {
		close(s.down)
		_ = s.tcp.Close()
		_ = s.udp.Close()
	})
	s.wg.Wait()
	return nil
}
