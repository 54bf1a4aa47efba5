// Package drive is a closed-loop load generator for request doors.
//
// # Model
//
// A [Target] is a server and what is sent to it. It has a fixed number of
// connections, which stay open, with a fixed number of requests in flight on
// each; a request that is answered is followed by the next one at once. Requests
// are canned bytes, answers are parsed no further than to see that they are the
// expected ones: so the generator takes a fraction of the CPU that a Go server
// takes, and a server that has one core is what limits the rate even where the
// generator has but one too. HTTP/1.1 and gRPC (HTTP/2 in clear text) are spoken.
//
// A closed loop at the limit measures throughput, CPU per request and the
// latency at saturation. It says nothing about latency at a fixed arrival rate.
//
// # Units
//
// Durations are wall time; latencies are kept in a histogram whose quantiles are
// at most 1/32 too high.
//
// # Concurrency
//
// A [Driver] runs one batch at a time; its connections have a goroutine each.
package drive

import (
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"subak/testbed/load"
)

// Kind is a protocol.
type Kind string

// The kinds.
const (
	HTTP Kind = "http" // HTTP/1.1
	RPC  Kind = "grpc" // one unary method over HTTP/2 with prior knowledge
)

// Target is a server and the requests for it.
type Target struct {
	Kind Kind   `json:"kind"`
	Addr string `json:"addr"` // host:port
	// Conns is the number of connections; Streams, of gRPC, how many requests are
	// in flight on each. 0 means 1.
	Conns   int `json:"conns"`
	Streams int `json:"streams"`
	// Request is the whole request of HTTP, or the message of gRPC.
	Request []byte `json:"request"`
	// Method is the full name of the method of gRPC, /package.Service/Method.
	Method string `json:"method,omitempty"`
	// Vary, if over 0, is where in Request a key of 8 hexadecimal digits goes;
	// requests take Keys keys in turn. Keys 0 means that no key comes twice.
	Vary int    `json:"vary,omitempty"`
	Keys uint32 `json:"keys,omitempty"`
	// Empty says that answers of HTTP must have no body. Any of success will do.
	Empty bool `json:"empty,omitempty"`
	// Answer is how every answer message of gRPC must begin.
	Answer []byte `json:"answer,omitempty"`
}

// Batch is what a batch did.
type Batch struct {
	Ops     int64         `json:"ops"`
	Elapsed time.Duration `json:"elapsed"`
	Mid     time.Duration `json:"mid"`
	Tail    time.Duration `json:"tail"`
}

// timeout is how long an answer may take before the driver gives up.
const timeout = 10 * time.Second

// Driver holds the connections to one target.
type Driver struct {
	target Target
	conns  []conn
	keys   atomic.Uint32
}

// conn is one connection of either kind.
type conn interface {
	// run sends requests until more says no, and returns when all are answered.
	run(more func() bool, h *load.Histogram) error
	close()
}

// Dial connects.
func Dial(t Target) (*Driver, error) {
	d := &Driver{target: t}
	for range max(t.Conns, 1) {
		raw, err := net.DialTimeout("tcp", t.Addr, timeout)
		if err != nil {
			d.Close()
			return nil, fmt.Errorf("drive: %w", err)
		}
		var c conn
		switch t.Kind {
		case HTTP:
			c = newHTTP(d, raw)
		case RPC:
			c = newRPC(d, raw)
		default:
			err = fmt.Errorf("drive: no protocol %q", t.Kind)
			raw.Close()
			d.Close()
			return nil, err
		}
		d.conns = append(d.conns, c)
	}
	return d, nil
}

// Close closes the connections.
func (d *Driver) Close() {
	for _, c := range d.conns {
		c.close()
	}
}

// For sends requests for a time.
func (d *Driver) For(span time.Duration) (Batch, error) {
	var over atomic.Bool
	timer := time.AfterFunc(span, func() { over.Store(true) })
	defer timer.Stop()
	return d.run(func() bool { return !over.Load() })
}

// Count sends a number of requests.
func (d *Driver) Count(n int64) (Batch, error) {
	var sent atomic.Int64
	return d.run(func() bool { return sent.Add(1) <= n })
}

func (d *Driver) run(more func() bool) (Batch, error) {
	hists := make([]load.Histogram, len(d.conns))
	errs := make([]error, len(d.conns))
	var wg sync.WaitGroup
	start := time.Now()
	for i, c := range d.conns {
		wg.Go(func() { errs[i] = c.run(more, &hists[i]) })
	}
	wg.Wait()
	b := Batch{Elapsed: time.Since(start)}
	for i := range hists[1:] {
		hists[0].Merge(&hists[1+i])
	}
	b.Ops = int64(hists[0].Count())
	b.Mid, b.Tail = hists[0].Quantile(0.5), hists[0].Quantile(0.99)
	for _, err := range errs {
		if err != nil {
			return b, err // the others mostly say the same
		}
	}
	return b, nil
}

// vary writes the next key into a copy of the request.
func (d *Driver) vary(request []byte, at int) {
	if d.target.Vary <= 0 {
		return
	}
	key := d.keys.Add(1) - 1
	if d.target.Keys > 0 {
		key %= d.target.Keys
	}
	putHex(request[at:at+keyDigits], key)
}

const keyDigits = 8

func putHex(dst []byte, v uint32) {
	const digits = "0123456789abcdef"
	for i := range keyDigits {
		dst[i] = digits[v>>(28-4*i)&15]
	}
}
