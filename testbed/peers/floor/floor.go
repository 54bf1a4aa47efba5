// Package floor is the least that a door can be: servers that answer without
// deciding anything, each as well made as such a server commonly is. What a real
// door costs is what it costs more than its floor.
//
//   - [Allow]: net/http with a handler that answers 204
//   - [AlwaysOK]: grpc-go with a RateLimitService that always says OK
//   - [Proxy]: httputil.ReverseProxy, as it comes or tuned
//   - [Backend]: what the proxies forward to; no floor, but cheap enough not to
//     be what is measured
package floor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
)

// Allow serves 204 to every request of HTTP.
func Allow(l net.Listener) error {
	return http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	}))
}

// AlwaysOK serves RateLimitService with an answer that is always OK. The request
// is decoded, as any server must.
func AlwaysOK(l net.Listener) error {
	s := grpc.NewServer()
	ratelimit.RegisterRateLimitServiceServer(s, alwaysOK{})
	return s.Serve(l)
}

type alwaysOK struct {
	ratelimit.UnimplementedRateLimitServiceServer
}

// ShouldRateLimit says OK.
func (alwaysOK) ShouldRateLimit(context.Context, *ratelimit.RateLimitRequest) (*ratelimit.RateLimitResponse, error) {
	return &ratelimit.RateLimitResponse{OverallCode: ratelimit.RateLimitResponse_OK}, nil
}

// Proxy forwards to backend, a URL. Tuned, it has a transport that keeps as many
// idle connections as it may need, leaves compression alone, asks no environment
// for proxies, and takes its copy buffers from a pool; otherwise it is what
// httputil.NewSingleHostReverseProxy makes.
func Proxy(l net.Listener, backend string, tuned bool) error {
	u, err := url.Parse(backend)
	if err != nil {
		return fmt.Errorf("floor: %w", err)
	}
	if !tuned {
		return http.Serve(l, httputil.NewSingleHostReverseProxy(u))
	}
	return http.Serve(l, &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(u)
			r.Out.Host = r.In.Host
			r.SetXForwarded()
		},
		Transport: &http.Transport{
			DialContext:         (&net.Dialer{Timeout: 3 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
			MaxIdleConns:        0, // no limit
			MaxIdleConnsPerHost: 1024,
			IdleConnTimeout:     90 * time.Second,
			DisableCompression:  true,
		},
		BufferPool: &pool{},
	})
}

// pool hands out copy buffers of the size that ReverseProxy uses.
type pool struct{ p sync.Pool }

func (p *pool) Get() []byte {
	if b, ok := p.p.Get().(*[]byte); ok {
		return *b
	}
	return make([]byte, 32<<10)
}

func (p *pool) Put(b []byte) { p.p.Put(&b) }

// answerSize is the body of the backend's answers, bytes: a small API object.
const answerSize = 512

// Backend answers every request without a body with the same small 200, as
// cheaply as a process can: it looks no further than for the head's end.
func Backend(l net.Listener) error {
	answer := fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		answerSize, bytes.Repeat([]byte("x"), answerSize))
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("floor: %w", err)
		}
		go answerAll(c, answer)
	}
}

func answerAll(c net.Conn, answer []byte) {
	defer c.Close()
	buf := make([]byte, 16<<10)
	have := 0
	for {
		n, err := c.Read(buf[have:])
		if err != nil || have+n == len(buf) {
			return
		}
		have += n
		if !bytes.HasSuffix(buf[:have], []byte("\r\n\r\n")) {
			continue // one request at a time: a proxy sends no second one before the answer
		}
		have = 0
		if _, err := c.Write(answer); err != nil {
			return
		}
	}
}
