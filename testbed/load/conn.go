package load

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// StampHeader carries the instant at which a request was written, as decimal
// nanoseconds of [Monotonic]. A receiver on the same machine tells from it how
// long the request has been under way.
const StampHeader = "X-Sent"

// Monotonic reads CLOCK_MONOTONIC in nanoseconds: one clock for all processes
// of a machine, unlike Go's own monotonic reading, which has a different zero in
// each process.
func Monotonic() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return 0 // the clock always exists on Linux
	}
	return ts.Nano()
}

// MonotonicOf is the reading of [Monotonic] at an instant t of this process that
// carries a monotonic reading of Go's.
func MonotonicOf(t time.Time) int64 { return Monotonic() - int64(time.Since(t)) }

// bodyMax is the most of a response body that is read, in bytes.
const bodyMax = 1 << 20

var (
	errProtocol  = errors.New("not an HTTP response")
	errCancelled = errors.New("cancelled")
)

// Dialer opens one connection, as [net.Dialer.DialContext] does.
type Dialer func(ctx context.Context, network, address string) (net.Conn, error)

// conn is one keep-alive HTTP/1.1 connection of one worker, dialled when first
// needed and again after a failure. It writes requests from a template and
// reads each response whole before the next. Unlike http.Transport it never
// repeats a request, so one arrival is one request on the wire, and it needs no
// goroutine of its own. Its worker alone uses it; abort may come from others.
type conn struct {
	dial    Dialer
	addr    string
	head    []byte // request up to the variable headers
	clients bool
	timeout time.Duration
	request *http.Request // for http.ReadResponse: tells it the method
	buf     []byte
	reader  *bufio.Reader
	mu      sync.Mutex // guards nc and aborted
	nc      net.Conn
	aborted bool
}

func newConn(s Stream, dial Dialer, timeout time.Duration) (*conn, error) {
	u, err := url.Parse(s.URL)
	if err != nil {
		return nil, fmt.Errorf("load: stream %s: %w", s.Name, err)
	}
	addr := u.Host
	if u.Port() == "" {
		addr = net.JoinHostPort(u.Hostname(), "80")
	}
	head := fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: subak-load\r\n", u.RequestURI(), u.Host)
	for _, name := range sortedKeys(s.Header) {
		head = fmt.Appendf(head, "%s: %s\r\n", name, s.Header[name])
	}
	return &conn{
		dial: dial, addr: addr, head: head, clients: s.Clients > 0, timeout: timeout,
		request: &http.Request{Method: http.MethodGet},
		reader:  bufio.NewReaderSize(nil, 4<<10),
	}, nil
}

// do sends one request and returns the status of its response.
func (c *conn) do(ctx context.Context, client uint32) (int, error) {
	nc, err := c.connect(ctx)
	if err != nil {
		return 0, err
	}
	status, keep, err := c.exchange(nc, client)
	if err != nil || !keep {
		c.drop()
	}
	return status, err
}

func (c *conn) exchange(nc net.Conn, client uint32) (status int, keep bool, err error) {
	if err := nc.SetDeadline(time.Now().Add(c.timeout)); err != nil {
		return 0, false, err
	}
	if _, err := nc.Write(c.render(client)); err != nil {
		return 0, false, err
	}
	if _, err := c.reader.Peek(1); err != nil {
		return 0, false, err // closed or silent, rather than garbled
	}
	resp, err := http.ReadResponse(c.reader, c.request)
	if err != nil {
		return 0, false, protocolError(err)
	}
	defer func() { _ = resp.Body.Close() }() // it is read whole below
	n, err := io.Copy(io.Discard, io.LimitReader(resp.Body, bodyMax))
	if err != nil {
		return 0, false, protocolError(err)
	}
	return resp.StatusCode, !resp.Close && n < bodyMax, nil
}

// render builds the request in the connection's buffer.
func (c *conn) render(client uint32) []byte {
	b := append(c.buf[:0], c.head...)
	if c.clients {
		b = append(b, "X-Forwarded-For: "...)
		b = appendClient(b, client)
		b = append(b, "\r\n"...)
	}
	b = append(b, StampHeader+": "...)
	b = strconv.AppendInt(b, Monotonic(), 10)
	b = append(b, "\r\n\r\n"...)
	c.buf = b
	return b
}

// appendClient writes the address of client number n: 10.0.0.0/8 by number.
func appendClient(b []byte, n uint32) []byte {
	b = append(b, "10."...)
	b = strconv.AppendUint(b, uint64(n>>16&0xff), 10)
	b = append(b, '.')
	b = strconv.AppendUint(b, uint64(n>>8&0xff), 10)
	b = append(b, '.')
	return strconv.AppendUint(b, uint64(n&0xff), 10)
}

func (c *conn) connect(ctx context.Context) (net.Conn, error) {
	c.mu.Lock()
	nc, aborted := c.nc, c.aborted
	c.mu.Unlock()
	if aborted {
		return nil, errCancelled
	}
	if nc != nil {
		return nc, nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	nc, err := c.dial(ctx, "tcp", c.addr)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.aborted {
		_ = nc.Close()
		return nil, errCancelled
	}
	c.nc = nc
	c.reader.Reset(nc)
	return nc, nil
}

// drop closes the connection; the next request dials a new one.
func (c *conn) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.nc != nil {
		_ = c.nc.Close() // it has failed or is spent: nothing to add
		c.nc = nil
	}
}

// abort ends the request in progress and refuses further ones.
func (c *conn) abort() {
	c.mu.Lock()
	c.aborted = true
	c.mu.Unlock()
	c.drop()
}

func protocolError(err error) error {
	if kindOf(err) != kindOther {
		return err
	}
	return fmt.Errorf("%w: %w", errProtocol, err)
}

// The kinds of failure. There are few and their number is fixed.
const (
	kindRefused   = "connection refused"
	kindReset     = "connection lost"
	kindTimeout   = "timeout"
	kindProtocol  = "bad response"
	kindCancelled = "cancelled"
	kindOther     = "other"
)

func kindOf(err error) string {
	switch {
	case errors.Is(err, errCancelled), errors.Is(err, context.Canceled), errors.Is(err, net.ErrClosed):
		return kindCancelled
	case errors.Is(err, errProtocol):
		return kindProtocol
	case errors.Is(err, syscall.ECONNREFUSED):
		return kindRefused
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded), errors.Is(err, syscall.ETIMEDOUT):
		return kindTimeout
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF),
		errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.ErrClosedPipe):
		return kindReset
	}
	return kindOther
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
