package gate_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"subak/enforce/gate"
)

// checks is a listener that only answers checks, and a connection to it.
func checks(t *testing.T, files *gate.TLS, dial func(address string) (net.Conn, error)) (net.Conn, *bufio.Reader) {
	t.Helper()
	w := newWorld(t, 1_000_000, 1_000_000)
	cfg := gate.Config{Name: "checks", TLS: files, Check: gate.Check{Enabled: true}, Default: gate.Target{Budget: "origin", Class: "low"}}
	u, _ := serveWith(t, cfg, w.gate(cfg))
	c, err := dial(u.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return c, bufio.NewReader(c)
}

// On a listener of checks net/http's watch for a client that leaves finds nothing at
// once. Whatever else comes while a request is answered must be read as ever.
func TestChecksOnOneConnectionAreAnsweredHoweverTheirBytesCome(t *testing.T) {
	const (
		get     = "GET /v1/check HTTP/1.1\r\nHost: x\r\nX-Original-URI: /a\r\n\r\n"
		post    = "POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"
		chunked = "POST /v1/check HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
	)
	files, pool := certificate(t)
	for name, open := range map[string]func(string) (net.Conn, error){
		"clear": func(a string) (net.Conn, error) { return net.Dial("tcp", a) },
		"TLS":   func(a string) (net.Conn, error) { return tls.Dial("tcp", a, &tls.Config{RootCAs: pool}) },
	} {
		var own *gate.TLS
		if name == "TLS" {
			own = files
		}
		for how, pieces := range map[string][]string{
			"one by one":            {get, get, get},
			"two in one piece":      {get + get, get},
			"in the middle of one":  {get + get[:30], get[30:]},
			"a line at a time":      strings.SplitAfter(get+get, "\n"),
			"the last byte late":    {get[:len(get)-1], get[len(get)-1:] + get},
			"with a body":           {post, get, post + post[:len(post)-2], post[len(post)-2:], get},
			"with a body in chunks": {chunked, chunked + chunked[:70], chunked[70:] + get},
		} {
			t.Run(name+" "+how, func(t *testing.T) {
				c, r := checks(t, own, open)
				whole := strings.Join(pieces, "")
				for range 20 {
					for _, piece := range pieces {
						if _, err := c.Write([]byte(piece)); err != nil {
							t.Fatal(err)
						}
					}
					for i := range strings.Count(whole, " /v1/check HTTP") {
						res, err := http.ReadResponse(r, nil)
						if err != nil {
							t.Fatalf("answer %d: %v", i, err)
						}
						res.Body.Close()
						if res.StatusCode != http.StatusOK {
							t.Fatalf("answer %d: %s", i, res.Status)
						}
					}
				}
			})
		}
	}
}

// A client that sends half of the next request and then nothing must not keep the
// answer to the first from it: net/http calls its reading ahead off.
func TestHalfOfTheNextCheckHoldsUpNoAnswer(t *testing.T) {
	c, r := checks(t, nil, func(a string) (net.Conn, error) { return net.Dial("tcp", a) })
	for i := range 50 {
		if _, err := fmt.Fprintf(c, "GET /v1/check HTTP/1.1\r\nHost: x\r\n\r\nGET /v1/check HT"); err != nil {
			t.Fatal(err)
		}
		if res, err := http.ReadResponse(r, nil); err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("round %d: %v, %v", i, res, err)
		}
		if _, err := fmt.Fprintf(c, "TP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if res, err := http.ReadResponse(r, nil); err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("round %d, the other half: %v, %v", i, res, err)
		}
	}
}
