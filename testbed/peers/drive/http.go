package drive

import (
	"bytes"
	"fmt"
	"net"
	"strconv"
	"time"

	"subak/testbed/load"
)

// httpConn has one request of HTTP/1.1 in flight.
type httpConn struct {
	d       *Driver
	raw     net.Conn
	request []byte
	buf     []byte
}

const answerMax = 64 << 10

func newHTTP(d *Driver, raw net.Conn) *httpConn {
	return &httpConn{
		d: d, raw: raw,
		request: bytes.Clone(d.target.Request),
		buf:     make([]byte, answerMax),
	}
}

func (c *httpConn) close() { c.raw.Close() }

func (c *httpConn) run(more func() bool, h *load.Histogram) error {
	_ = c.raw.SetDeadline(time.Now().Add(time.Hour)) // a read that fails says so itself
	for more() {
		c.d.vary(c.request, c.d.target.Vary)
		sent := time.Now()
		if _, err := c.raw.Write(c.request); err != nil {
			return fmt.Errorf("send: %w", err)
		}
		if err := c.answer(); err != nil {
			return err
		}
		h.Add(time.Since(sent))
	}
	return nil
}

// answer reads one answer, whose length its head must say.
func (c *httpConn) answer() error {
	have := 0
	for {
		n, err := c.raw.Read(c.buf[have:])
		if err != nil {
			return fmt.Errorf("answer: %w", err)
		}
		have += n
		head := bytes.Index(c.buf[:have], []byte("\r\n\r\n"))
		if head < 0 {
			if have == len(c.buf) {
				return fmt.Errorf("answer: no end of its head in %d bytes", have)
			}
			continue
		}
		if !bytes.HasPrefix(c.buf, []byte("HTTP/1.1 2")) {
			line, _, _ := bytes.Cut(c.buf[:head], []byte("\r\n"))
			return fmt.Errorf("answer %q, want success", line)
		}
		length, err := bodyLength(c.buf[:head+2])
		if err != nil {
			return err
		}
		if c.d.target.Empty && length > 0 {
			return fmt.Errorf("answer has a body of %d bytes, want none", length)
		}
		return c.rest(head + 4 + length - have)
	}
}

// rest reads what is missing of a body. More than asked for must not be there.
func (c *httpConn) rest(missing int) error {
	for missing > 0 {
		n, err := c.raw.Read(c.buf[:min(missing, len(c.buf))])
		if err != nil {
			return fmt.Errorf("body: %w", err)
		}
		missing -= n
	}
	if missing < 0 {
		return fmt.Errorf("answer is %d bytes longer than it says", -missing)
	}
	return nil
}

// bodyLength is what the head says; without a word it is 0, as of a 204.
func bodyLength(head []byte) (int, error) {
	const field = "\r\nContent-Length: "
	i := bytes.Index(head, []byte(field))
	if i < 0 {
		if bytes.Contains(head, []byte("\r\nTransfer-Encoding:")) {
			return 0, fmt.Errorf("answer is of no stated length")
		}
		return 0, nil
	}
	text, _, _ := bytes.Cut(head[i+len(field):], []byte("\r\n"))
	n, err := strconv.Atoi(string(text))
	if err != nil || n < 0 {
		return 0, fmt.Errorf("answer has length %q", text)
	}
	return n, nil
}
