package drive

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"subak/testbed/load"
)

// rpcConn is one connection of HTTP/2 with several calls of a unary method in
// flight. What is written is collected until everything that was received is
// dealt with, as busy clients do.
type rpcConn struct {
	d     *Driver
	raw   net.Conn
	in    *bufio.Reader
	out   []byte
	head  []byte // header block of a request, all indexed
	first []byte // that of the first one, which fills the table; nil once sent
	dec   *hpack.Decoder
	frame []byte // payload of the frame at hand

	next    uint32 // the next stream's number
	window  int64  // what the server lets us send on the connection
	taken   uint32 // bytes of data received and not yet given back
	calls   map[uint32]*call
	idle    []*call
	status  string // grpc-status of the block at hand, "" for none
	message string
	started bool
}

// call is one request in flight.
type call struct {
	sent   time.Time
	answer []byte // the bytes of data received, five of the prefix first
}

const (
	frameMax  = 16 << 10
	windowMax = 1 << 30 // what the server may send us
	giveBack  = 1 << 20
	prefixLen = 5 // of a gRPC message
)

func newRPC(d *Driver, raw net.Conn) *rpcConn {
	c := &rpcConn{
		d: d, raw: raw, in: bufio.NewReaderSize(raw, 64<<10),
		frame: make([]byte, frameMax), next: 1, window: 65535,
		calls: map[uint32]*call{},
	}
	c.dec = hpack.NewDecoder(4096, c.field)
	c.first, c.head = headerBlocks(d.target.Addr, d.target.Method)
	for range max(d.target.Streams, 1) {
		c.idle = append(c.idle, &call{})
	}
	return c
}

// headerBlocks is a request's head for the first time and for every later one.
func headerBlocks(authority, method string) (first, later []byte) {
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	for i := range 2 {
		b.Reset()
		for _, f := range [][2]string{
			{":method", "POST"}, {":scheme", "http"}, {":path", method}, {":authority", authority},
			{"content-type", "application/grpc"}, {"te", "trailers"}, {"user-agent", "bench-peers"},
		} {
			_ = e.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}) // into memory
		}
		if i == 0 {
			first = bytes.Clone(b.Bytes())
		}
	}
	return first, bytes.Clone(b.Bytes())
}

func (c *rpcConn) close() { c.raw.Close() }

func (c *rpcConn) run(more func() bool, h *load.Histogram) error {
	_ = c.raw.SetDeadline(time.Now().Add(time.Hour)) // a read that fails says so itself
	if !c.started {
		c.started = true
		c.out = append(c.out, http2.ClientPreface...)
		c.put(http2.FrameSettings, 0, 0, binary.BigEndian.AppendUint32([]byte{0, byte(http2.SettingInitialWindowSize)}, windowMax))
		c.giveBack(windowMax - 65535)
	}
	for {
		for len(c.idle) > 0 && c.window > int64(prefixLen+len(c.d.target.Request)) && more() {
			c.send()
		}
		if len(c.calls) == 0 && len(c.idle) == max(c.d.target.Streams, 1) && c.window > frameMax {
			return c.flush()
		}
		if c.in.Buffered() == 0 {
			if err := c.flush(); err != nil {
				return err
			}
		}
		if err := c.receive(h); err != nil {
			return err
		}
	}
}

func (c *rpcConn) flush() error {
	if len(c.out) == 0 {
		return nil
	}
	_, err := c.raw.Write(c.out)
	c.out = c.out[:0]
	if err != nil {
		return fmt.Errorf("send: %w", err)
	}
	return nil
}

// put appends a frame to what is to be written.
func (c *rpcConn) put(kind http2.FrameType, flags http2.Flags, stream uint32, payload []byte) {
	n := len(payload)
	c.out = append(c.out, byte(n>>16), byte(n>>8), byte(n), byte(kind), byte(flags))
	c.out = binary.BigEndian.AppendUint32(c.out, stream)
	c.out = append(c.out, payload...)
}

func (c *rpcConn) giveBack(n uint32) {
	c.put(http2.FrameWindowUpdate, 0, 0, binary.BigEndian.AppendUint32(nil, n))
}

// send starts one call.
func (c *rpcConn) send() {
	l := c.idle[len(c.idle)-1]
	c.idle = c.idle[:len(c.idle)-1]
	head := c.head
	if c.first != nil {
		head, c.first = c.first, nil
	}
	c.put(http2.FrameHeaders, http2.FlagHeadersEndHeaders, c.next, head)
	n := prefixLen + len(c.d.target.Request)
	c.out = append(c.out, byte(n>>16), byte(n>>8), byte(n), byte(http2.FrameData), byte(http2.FlagDataEndStream))
	c.out = binary.BigEndian.AppendUint32(c.out, c.next)
	c.out = append(c.out, 0)
	c.out = binary.BigEndian.AppendUint32(c.out, uint32(len(c.d.target.Request)))
	at := len(c.out)
	c.out = append(c.out, c.d.target.Request...)
	c.d.vary(c.out, at+c.d.target.Vary)
	c.window -= int64(n)
	l.sent, l.answer = time.Now(), l.answer[:0]
	c.calls[c.next] = l
	c.next += 2
}

// receive deals with one frame.
func (c *rpcConn) receive(h *load.Histogram) error {
	var head [9]byte
	if _, err := io.ReadFull(c.in, head[:]); err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	n := int(head[0])<<16 | int(head[1])<<8 | int(head[2])
	kind, flags := http2.FrameType(head[3]), http2.Flags(head[4])
	stream := binary.BigEndian.Uint32(head[5:]) & (1<<31 - 1)
	if n > frameMax {
		return fmt.Errorf("answer: a frame of %d bytes", n)
	}
	p := c.frame[:n]
	if _, err := io.ReadFull(c.in, p); err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	switch kind {
	case http2.FrameData:
		return c.data(stream, flags, p)
	case http2.FrameHeaders:
		return c.headers(stream, flags, p, h)
	case http2.FrameSettings:
		if !flags.Has(http2.FlagSettingsAck) {
			c.put(http2.FrameSettings, http2.FlagSettingsAck, 0, nil)
		}
	case http2.FramePing:
		if !flags.Has(http2.FlagPingAck) {
			c.put(http2.FramePing, http2.FlagPingAck, 0, p)
		}
	case http2.FrameWindowUpdate:
		if stream == 0 && n == 4 {
			c.window += int64(binary.BigEndian.Uint32(p) & (1<<31 - 1))
		}
	case http2.FrameGoAway, http2.FrameRSTStream:
		return fmt.Errorf("the server ended stream %d: %v % x", stream, kind, p)
	}
	return nil
}

func (c *rpcConn) data(stream uint32, flags http2.Flags, p []byte) error {
	l := c.calls[stream]
	if l == nil || flags.Has(http2.FlagDataPadded) || flags.Has(http2.FlagDataEndStream) {
		return fmt.Errorf("unexpected data on stream %d", stream)
	}
	l.answer = append(l.answer, p...)
	if c.taken += uint32(len(p)); c.taken >= giveBack {
		c.giveBack(c.taken)
		c.taken = 0
	}
	return nil
}

// headers takes a response's head, or the trailers that end it.
func (c *rpcConn) headers(stream uint32, flags http2.Flags, p []byte, h *load.Histogram) error {
	l := c.calls[stream]
	if l == nil || !flags.Has(http2.FlagHeadersEndHeaders) || flags.Has(http2.FlagHeadersPadded) || flags.Has(http2.FlagHeadersPriority) {
		return fmt.Errorf("unexpected header frame on stream %d", stream)
	}
	c.status, c.message = "", ""
	if _, err := c.dec.Write(p); err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	if !flags.Has(http2.FlagHeadersEndStream) {
		return nil
	}
	if c.status != "0" {
		return fmt.Errorf("grpc-status %q %q", c.status, c.message)
	}
	if len(l.answer) < prefixLen || !bytes.HasPrefix(l.answer[prefixLen:], c.d.target.Answer) {
		return fmt.Errorf("answer % x, want it to begin with % x", l.answer, c.d.target.Answer)
	}
	h.Add(time.Since(l.sent))
	delete(c.calls, stream)
	c.idle = append(c.idle, l)
	return nil
}

func (c *rpcConn) field(f hpack.HeaderField) {
	switch f.Name {
	case "grpc-status":
		c.status = f.Value
	case "grpc-message":
		c.message = f.Value
	}
}
