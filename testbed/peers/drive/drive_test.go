package drive

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// dial connects to a target and sees to its end.
func dial(t *testing.T, target Target) *Driver {
	t.Helper()
	d, err := Dial(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

// seen counts keys.
type seen struct {
	mu  sync.Mutex
	all map[string]int
}

func (s *seen) add(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[string]int{}
	}
	s.all[key]++
}

const key = "00000000"

func httpTarget(t *testing.T, h http.HandlerFunc) Target {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	request := []byte("GET /a HTTP/1.1\r\nHost: x\r\nX-Key: " + key + "\r\n\r\n")
	return Target{
		Kind: HTTP, Addr: strings.TrimPrefix(s.URL, "http://"), Conns: 4,
		Request: request, Vary: strings.Index(string(request), key),
	}
}

func TestEveryRequestOfHTTPIsSentAndCountedOnce(t *testing.T) {
	for _, tc := range []struct {
		name string
		body string
	}{{"without a body", ""}, {"small", "hello"}, {"larger than a buffer", strings.Repeat("x", 200_000)}} {
		t.Run(tc.name, func(t *testing.T) {
			var got seen
			d := dial(t, httpTarget(t, func(w http.ResponseWriter, r *http.Request) {
				got.add(r.Header.Get("X-Key"))
				if tc.body == "" {
					w.WriteHeader(http.StatusNoContent)
					return
				}
				w.Header().Set("Content-Length", strconv.Itoa(len(tc.body)))
				_, _ = io.WriteString(w, tc.body)
			}))
			for range 2 { // connections are used again
				b, err := d.Count(50)
				if err != nil || b.Ops != 50 || b.Mid <= 0 || b.Tail < b.Mid {
					t.Fatalf("%+v, %v; want 50 answers", b, err)
				}
			}
			if len(got.all) != 100 || got.all["00000063"] != 1 {
				t.Errorf("%d distinct keys, want 100 up to 00000063", len(got.all))
			}
		})
	}
}

func TestKeysComeAgainAfterAsManyAsThereAre(t *testing.T) {
	var got seen
	target := httpTarget(t, func(w http.ResponseWriter, r *http.Request) {
		got.add(r.Header.Get("X-Key"))
		w.WriteHeader(http.StatusNoContent)
	})
	target.Keys = 7
	if _, err := dial(t, target).Count(70); err != nil {
		t.Fatal(err)
	}
	for k, n := range got.all {
		if n != 10 {
			t.Errorf("key %s came %d times, want 10", k, n)
		}
	}
	if len(got.all) != 7 {
		t.Errorf("%d keys, want 7", len(got.all))
	}
}

func TestAnAnswerOfHTTPThatIsNotTheExpectedOneIsAnError(t *testing.T) {
	for _, tc := range []struct {
		name  string
		empty bool
		h     http.HandlerFunc
	}{
		{"refused", false, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }},
		{"a body", true, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "x") }},
		{"of no stated length", false, func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush() }},
		{"cut off", false, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			target := httpTarget(t, tc.h)
			target.Empty = tc.empty
			if b, err := dial(t, target).Count(8); err == nil {
				t.Errorf("%+v without an error", b)
			}
		})
	}
}

// service answers as it is told.
type service struct {
	ratelimit.UnimplementedRateLimitServiceServer
	got    seen
	answer ratelimit.RateLimitResponse_Code
	err    error
}

func (s *service) ShouldRateLimit(_ context.Context, r *ratelimit.RateLimitRequest) (*ratelimit.RateLimitResponse, error) {
	s.got.add(r.Descriptors[0].Entries[0].Value)
	return &ratelimit.RateLimitResponse{OverallCode: s.answer}, s.err
}

func rpcTarget(t *testing.T, s *service) Target {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	ratelimit.RegisterRateLimitServiceServer(server, s)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() { server.Stop(); <-served })
	m, err := proto.Marshal(&ratelimit.RateLimitRequest{Domain: "d", Descriptors: []*common.RateLimitDescriptor{
		{Entries: []*common.RateLimitDescriptor_Entry{{Key: "k", Value: key}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return Target{
		Kind: RPC, Addr: l.Addr().String(), Conns: 3, Streams: 5, Request: m, Vary: strings.Index(string(m), key),
		Method: ratelimit.RateLimitService_ShouldRateLimit_FullMethodName, Answer: []byte{8, 1},
	}
}

// More calls than the server's window of flow control lets through at once.
func TestEveryCallOfGRPCIsSentAndCountedOnce(t *testing.T) {
	s := &service{answer: ratelimit.RateLimitResponse_OK}
	d := dial(t, rpcTarget(t, s))
	for range 2 {
		b, err := d.Count(6000)
		if err != nil || b.Ops != 6000 || b.Mid <= 0 || b.Tail < b.Mid {
			t.Fatalf("%+v, %v; want 6000 answers", b, err)
		}
	}
	if len(s.got.all) != 12_000 {
		t.Errorf("%d distinct keys, want 12000", len(s.got.all))
	}
}

func TestAnAnswerOfGRPCThatIsNotTheExpectedOneIsAnError(t *testing.T) {
	for _, s := range []*service{
		{answer: ratelimit.RateLimitResponse_OVER_LIMIT},
		{answer: ratelimit.RateLimitResponse_OK, err: status.Error(codes.Unavailable, "later")},
	} {
		if b, err := dial(t, rpcTarget(t, s)).Count(8); err == nil {
			t.Errorf("%v, %v: %+v without an error", s.answer, s.err, b)
		}
	}
}

func TestABatchEndsAfterItsTime(t *testing.T) {
	d := dial(t, rpcTarget(t, &service{answer: ratelimit.RateLimitResponse_OK}))
	b, err := d.For(20 * time.Millisecond)
	if err != nil || b.Ops == 0 || b.Elapsed < 20*time.Millisecond {
		t.Errorf("%+v, %v; want answers over 20 ms", b, err)
	}
}

func TestAGeneratorObeysOrdersThroughPipes(t *testing.T) {
	orders, out := io.Pipe()
	in, replies := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- Serve(orders, replies) }()
	r := NewRemote(in, out)

	if _, err := r.Dial(Target{Kind: HTTP, Addr: "127.0.0.1:1"}); err == nil {
		t.Error("connected to nothing")
	}
	i, err := r.Dial(rpcTarget(t, &service{answer: ratelimit.RateLimitResponse_OK}))
	if err != nil || i != 0 {
		t.Fatalf("target %d, %v; want 0", i, err)
	}
	if b, err := r.Count(i, 40); err != nil || b.Ops != 40 {
		t.Errorf("%+v, %v; want 40 answers", b, err)
	}
	if _, err := r.For(5, time.Second); err == nil {
		t.Error("drove a target that is not there")
	}
	out.Close()
	if err := <-ended; err != nil {
		t.Errorf("ended with %v, want no error when orders end", err)
	}
	replies.CloseWithError(errors.New("gone"))
	if _, err := r.Count(i, 1); err == nil {
		t.Error("no error from a generator that is gone")
	}
}

func TestNobodyListensIsAnError(t *testing.T) {
	if _, err := Dial(Target{Kind: HTTP, Addr: "127.0.0.1:1", Conns: 2}); err == nil {
		t.Error("no error")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := Dial(Target{Kind: "smtp", Addr: l.Addr().String()}); err == nil {
		t.Error("no error for a protocol that is not spoken")
	}
}
