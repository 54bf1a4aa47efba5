package api

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Bounds on what a node may answer, so that a wrong address cannot fill memory.
const (
	maxBody  = 32 << 20 // a status of 10,000 nodes is a few MB
	maxError = 64 << 10
)

// ClientConfig says where a node's admin interface is.
type ClientConfig struct {
	// Address is host:port or unix:/path/of/socket. Required.
	Address string
	// Token is the bearer token. Empty sends none.
	Token string
	// Timeout bounds one request, and the silence of a stream. Default 5s.
	Timeout time.Duration
}

// Client talks to one node's admin interface. It may be used from several
// goroutines. Its errors are [*Unreachable] when no answer came, [*Refused] when
// the node said no, and [*Garbled] when the answer made no sense.
type Client struct {
	address, base, token string
	timeout              time.Duration
	http                 *http.Client
}

// Unreachable says that the node gave no answer.
type Unreachable struct {
	Address string
	Err     error
}

func (e *Unreachable) Error() string {
	return fmt.Sprintf("cannot reach the node at %s: %v", e.Address, e.Err)
}

// Unwrap returns the cause.
func (e *Unreachable) Unwrap() error { return e.Err }

// Refused is an answer with an HTTP status that is no success.
type Refused struct {
	Address string
	Status  int
	Message string // from [Error], or the first line of the body
}

func (e *Refused) Error() string {
	return fmt.Sprintf("the node at %s refused (%d): %s", e.Address, e.Status, e.Message)
}

// Garbled is an answer that is not what the interface promises.
type Garbled struct {
	Address string
	Err     error
}

func (e *Garbled) Error() string {
	return fmt.Sprintf("the answer of %s is not that of a subak node: %v", e.Address, e.Err)
}

// Unwrap returns the cause.
func (e *Garbled) Unwrap() error { return e.Err }

// NewClient returns a client. It does not connect yet.
func NewClient(cfg ClientConfig) (*Client, error) {
	c := &Client{address: cfg.Address, base: "http://" + cfg.Address, token: cfg.Token, timeout: cfg.Timeout}
	if c.timeout <= 0 {
		c.timeout = 5 * time.Second
	}
	network, target := "tcp", cfg.Address
	if path, ok := strings.CutPrefix(cfg.Address, "unix:"); ok {
		network, target, c.base = "unix", path, "http://subak"
	} else if _, _, err := net.SplitHostPort(cfg.Address); err != nil {
		return nil, fmt.Errorf("admin address %q is neither host:port nor unix:/path", cfg.Address)
	}
	dialer := &net.Dialer{Timeout: c.timeout}
	c.http = &http.Client{
		Transport: &http.Transport{ // no proxy: a node is never behind one
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return dialer.DialContext(ctx, network, target)
			},
			ResponseHeaderTimeout:  c.timeout,
			MaxResponseHeaderBytes: maxError,
			MaxIdleConnsPerHost:    1,
		},
		// A redirect would carry the token elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, nil
}

// Close ends idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Status asks the node for its view.
func (c *Client) Status(ctx context.Context) (Status, error) {
	var s Status
	err := c.call(ctx, http.MethodGet, "/v1/status", nil, &s)
	return s, err
}

// Members asks for the members in the node's view.
func (c *Client) Members(ctx context.Context) ([]Member, error) {
	s, err := c.Status(ctx)
	return s.Members, err
}

// Explain asks why a class gets what it gets on a node; an empty node means the
// answering one.
func (c *Client) Explain(ctx context.Context, budget, class, node string) (Explanation, error) {
	query := url.Values{"budget": {budget}, "class": {class}}
	if node != "" {
		query.Set("node", node)
	}
	var e Explanation
	err := c.call(ctx, http.MethodGet, "/v1/explain", query, &e)
	return e, err
}

// Freeze turns the node's kill switch on or off: a frozen node keeps to its own
// base, without any peer's help.
func (c *Client) Freeze(ctx context.Context, on bool) error {
	path := "/v1/unfreeze"
	if on {
		path = "/v1/freeze"
	}
	return c.call(ctx, http.MethodPost, path, nil, nil)
}

// Ready asks whether the node can do its job, and why or why not.
func (c *Client) Ready(ctx context.Context) (ready bool, reason string, err error) {
	return c.probe(ctx, "/readyz")
}

// Live asks whether the process works, and why not: a restart would help then.
func (c *Client) Live(ctx context.Context) (live bool, reason string, err error) {
	return c.probe(ctx, "/healthz")
}

// probe asks one of the two probes, which need no token.
func (c *Client) probe(ctx context.Context, path string) (ok bool, reason string, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	response, err := c.send(ctx, http.MethodGet, path, nil, nil)
	if err != nil {
		return false, "", err
	}
	defer response.Body.Close()
	said := message(response.Body)
	reason, well := strings.CutPrefix(strings.TrimPrefix(said, "not "), "ok")
	reason = strings.TrimPrefix(reason, ": ")
	switch {
	case response.StatusCode == http.StatusOK && !well: // some other server's idea of this path
		return false, "", &Garbled{c.address, fmt.Errorf("%s says %q", path, said)}
	case response.StatusCode == http.StatusOK:
		return true, reason, nil
	case response.StatusCode == http.StatusServiceUnavailable:
		return false, reason, nil
	}
	return false, "", &Refused{c.address, response.StatusCode, reason}
}

// call sends one request and decodes the answer into out, unless that is nil.
func (c *Client) call(ctx context.Context, method, path string, query url.Values, out any) error {
	return c.exchange(ctx, method, path, query, nil, out)
}

// exchange is call with a body, nil for none.
func (c *Client) exchange(ctx context.Context, method, path string, query url.Values, body io.Reader, out any) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	response, err := c.send(ctx, method, path, query, body)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode/100 != 2 {
		return &Refused{c.address, response.StatusCode, message(response.Body)}
	}
	if out == nil {
		return nil
	}
	return c.decode(response.Body, out)
}

func (c *Client) send(ctx context.Context, method, path string, query url.Values, body io.Reader) (*http.Response, error) {
	target := c.base + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, method, target, body)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", c.address, err)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, err := c.http.Do(request)
	if err != nil {
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
			err = wrapped.Err // the address is in our own words already
		}
		return nil, &Unreachable{c.address, err}
	}
	return response, nil
}

// decode reads one JSON value of at most maxBody bytes.
func (c *Client) decode(body io.Reader, out any) error {
	data, err := io.ReadAll(io.LimitReader(body, maxBody+1))
	switch {
	case err != nil:
		return &Unreachable{c.address, err}
	case len(data) > maxBody:
		return &Garbled{c.address, fmt.Errorf("it is longer than %d bytes", maxBody)}
	}
	if err := json.Unmarshal(data, out); err != nil {
		return &Garbled{c.address, err}
	}
	return nil
}

// message reads what a short answer says: the error or reason of a JSON object,
// or else its first line without control characters.
func message(body io.Reader) string {
	data, _ := io.ReadAll(io.LimitReader(body, maxError)) // what came is good enough for a message
	var said struct{ Error, Reason string }
	if json.Unmarshal(data, &said) == nil && said.Error+said.Reason != "" {
		return paragraph(strings.TrimSpace(said.Error + said.Reason))
	}
	line, _, _ := bytes.Cut(bytes.TrimSpace(data), []byte("\n"))
	return printable(string(line))
}

// paragraph is printable over several lines: the faults of a file come one to a
// line.
func paragraph(s string) string {
	const most = 50
	lines := strings.Split(s, "\n")
	if len(lines) > most {
		lines = append(lines[:most], fmt.Sprintf("... and %d more lines", len(lines)-most))
	}
	for i := range lines {
		lines[i] = printable(lines[i])
	}
	return strings.Join(lines, "\n")
}

// printable keeps a foreign text from playing with the terminal.
func printable(s string) string {
	const most = 300
	clean := strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	if len(clean) > most {
		clean = strings.ToValidUTF8(clean[:most], "") + "..."
	}
	return clean
}

// Stream calls each for every status the node sends, until ctx ends, the node
// falls silent for the client's timeout, or the connection breaks. The error
// says which; it is never nil.
func (c *Client) Stream(ctx context.Context, each func(Status)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(c.timeout, func() { cancel(fmt.Errorf("no news for %v", c.timeout)) })
	defer silence.Stop()
	response, err := c.send(ctx, http.MethodGet, "/v1/events", nil, nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return &Refused{c.address, response.StatusCode, message(response.Body)}
	}
	err = c.events(response.Body, func() { silence.Reset(c.timeout) }, each)
	if cause := context.Cause(ctx); cause != nil {
		return &Unreachable{c.address, cause}
	}
	return err
}

// events reads server-sent events, calling alive for every line. Only unnamed
// events and those named status carry a Status; others and comments are skipped.
func (c *Client) events(body io.Reader, alive func(), each func(Status)) error {
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 0, 64<<10), maxBody)
	name, data := "", []byte(nil)
	for lines.Scan() {
		alive()
		field, value, _ := bytes.Cut(lines.Bytes(), []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch {
		case len(lines.Bytes()) == 0:
			if len(data) > 0 && (name == "" || name == "message" || name == "status") {
				var s Status
				if err := json.Unmarshal(data, &s); err != nil {
					return &Garbled{c.address, err}
				}
				each(s)
			}
			name, data = "", data[:0]
		case string(field) == "event":
			name = string(value)
		case string(field) == "data":
			if len(data)+len(value) > maxBody {
				return &Garbled{c.address, fmt.Errorf("an event is longer than %d bytes", maxBody)}
			}
			data = append(append(data, value...), '\n')
		}
	}
	err := lines.Err()
	if errors.Is(err, bufio.ErrTooLong) {
		return &Garbled{c.address, err}
	}
	if err == nil {
		err = io.ErrUnexpectedEOF // a stream has no end of its own
	}
	return &Unreachable{c.address, err}
}
