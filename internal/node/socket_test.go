package node

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// Clients that come while one server takes over from another wait a moment; none is
// refused, and none meets a server that is gone.
func TestNobodyIsTurnedAwayWhileServersSucceedOneAnother(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serve := func(i int) *http.Server {
		return &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, i) })}
	}
	ctx, end := context.WithCancel(context.Background())
	var parts, drains sync.WaitGroup
	start := func(f func(context.Context) error) {
		parts.Go(func() {
			if err := f(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	s := &socket{name: "test", listener: l, term: newTerm(l, serve(0))}
	start(s.term.run)

	fresh := func() *http.Client { // a connection for each request
		return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 20 * time.Second}
	}
	over := make(chan struct{})
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			client := fresh()
			for {
				select {
				case <-over:
					return
				default:
				}
				resp, err := client.Get("http://" + l.Addr().String())
				if err != nil {
					t.Errorf("a request had no answer: %v", err)
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		})
	}
	for i := range 40 {
		drain := s.succeed(serve(i+1), start)
		drains.Go(func() {
			if drain(ctx) {
				t.Error("requests were cut off")
			}
		})
		resp, err := fresh().Get("http://" + l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(body) != fmt.Sprint(i+1) {
			t.Errorf("server %s answers after server %d came", body, i+1)
		}
	}
	close(over)
	clients.Wait()
	drains.Wait()
	s.shut()
	end()
	parts.Wait()
	if err := s.close(); err != nil {
		t.Errorf("closed again: %v", err)
	}
}
