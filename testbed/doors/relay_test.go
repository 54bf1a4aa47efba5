package doors

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// relay stands between a proxy and the node and counts the connections that the
// proxy uses. One on which nothing was sent, as by a health check, is not counted.
type relay struct {
	addr string
	used atomic.Int64
}

func newRelay(t *testing.T, to string) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{addr: l.Addr().String()}
	var serving sync.WaitGroup
	var mu sync.Mutex
	open := map[net.Conn]bool{} // guarded by mu; nil when closed
	keep := func(c net.Conn) {
		mu.Lock()
		defer mu.Unlock()
		if open == nil {
			_ = c.Close()
			return
		}
		open[c] = true
	}
	serving.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			keep(in)
			serving.Go(func() { r.serve(in, to, keep) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for c := range open {
			_ = c.Close()
		}
		open = nil
		mu.Unlock()
		serving.Wait()
	})
	return r
}

func (r *relay) serve(in net.Conn, to string, keep func(net.Conn)) {
	defer func() { _ = in.Close() }()
	first := make([]byte, 4096)
	n, err := in.Read(first)
	if err != nil {
		return
	}
	r.used.Add(1)
	out, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	keep(out)
	defer func() { _ = out.Close() }()
	if _, err := out.Write(first[:n]); err != nil {
		return
	}
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(in, out)
		_ = in.Close() // the node hung up
	})
	_, _ = io.Copy(out, in)
	_ = out.Close() // the proxy hung up
	back.Wait()
}
