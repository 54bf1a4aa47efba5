package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// server is what accepts at a socket: HTTP of package gate, gRPC of package envoy.
type server interface {
	// Serve accepts until Shutdown or Close.
	Serve(net.Listener) error
	// Shutdown accepts nothing more and waits for what is under way until ctx
	// ends.
	Shutdown(ctx context.Context) error
	// Close cuts everything off.
	Close() error
}

// socket is an address that a door listens on. The server there may be replaced:
// meanwhile connections wait in the kernel's queue, and none is refused.
type socket struct {
	name     string // of the door
	address  string // as configured; the socket is kept for who has the same
	listener net.Listener
	term     *term // guarded by doors.mu
}

// term is one server's time at a socket. It is the listener that the server gets:
// closing that ends the term and leaves the socket open for the next server.
type term struct {
	net.Listener
	server    server
	over      atomic.Bool
	accepting sync.Mutex // held by an Accept
}

func newTerm(l net.Listener, s server) *term { return &term{Listener: l, server: s} }

// Accept implements net.Listener.
func (t *term) Accept() (net.Conn, error) {
	t.accepting.Lock()
	defer t.accepting.Unlock()
	if t.over.Load() {
		return nil, net.ErrClosed
	}
	c, err := t.Listener.Accept()
	if err != nil && t.over.Load() {
		return nil, net.ErrClosed
	}
	return c, err
}

// Close ends the term: when it returns no Accept is under way, and none will be.
func (t *term) Close() error {
	if t.over.Swap(true) {
		return nil
	}
	if l, ok := t.Listener.(interface{ SetDeadline(time.Time) error }); ok { // TCP and unix sockets have one
		_ = l.SetDeadline(time.Now()) // fails where the socket is closed already
	}
	t.accepting.Lock()
	defer t.accepting.Unlock()
	return nil
}

// run accepts until ctx or the term ends; drain should have come first.
func (t *term) run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = t.server.Close() })
	defer stop()
	err := t.server.Serve(t)
	if err == nil || errors.Is(err, http.ErrServerClosed) || t.over.Load() {
		return nil
	}
	return fmt.Errorf("node: listener at %s: %w", t.Addr(), err)
}

// lastWords is for how long a server whose term is over goes on before it is shut
// down: net/http drops a request that it reads after that, even the first of
// a connection that it has accepted.
const lastWords = 200 * time.Millisecond

// succeed puts another server at the socket, and returns what drains the one
// before. start runs a part of the node.
func (s *socket) succeed(next server, start func(func(context.Context) error)) (drain func(context.Context) (cut bool)) {
	before := s.term
	_ = before.Close() // it has no error
	if l, ok := s.listener.(interface{ SetDeadline(time.Time) error }); ok {
		_ = l.SetDeadline(time.Time{}) // fails where it is closed, as the server will find
	}
	s.term = newTerm(s.listener, next)
	start(s.term.run)
	return func(ctx context.Context) bool {
		wait := time.NewTimer(lastWords)
		defer wait.Stop()
		select {
		case <-wait.C:
		case <-ctx.Done():
		}
		return before.drain(ctx)
	}
}

// shut refuses new connections from its return on; drain waits for the others.
func (s *socket) shut() {
	_ = s.term.Close()
	_ = s.listener.Close() // both tell the same: nobody listens any more
}

// drain stops accepting and waits for requests under way until ctx ends. It
// reports whether some were cut off.
func (t *term) drain(ctx context.Context) (cut bool) {
	if err := t.server.Shutdown(ctx); err != nil {
		_ = t.server.Close()
		return true
	}
	return false
}

func (s *socket) close() error {
	if err := s.listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}
