package node

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"syscall"
	"testing"
	"time"

	"subak/enforce"
	"subak/enforce/gate"
	"subak/internal/clock"
	"subak/internal/config"
)

// Whatever else the node has to do, a door that is gone refuses connections from
// the return of setDoors on, so that its address is free for the next reload; and
// a server that comes to run only then ends in peace.
func TestADoorThatIsGoneRefusesAtOnce(t *testing.T) {
	cfg, err := config.Parse("a", []byte(setup{name: "a", dir: t.TempDir()}.yaml()))
	if err != nil {
		t.Fatal(err)
	}
	var parts []func(context.Context) error
	n := &Node{log: slog.New(slog.DiscardHandler), clock: clock.NewBoot(), drainMax: time.Second}
	n.force.Store(&inForce{budgets: gate.Budgets{{
		Name: "origin", Classes: []string{"high", "low"}, Limiter: enforce.NewLimiter(enforce.LimiterConfig{Classes: 2}, n.clock.Now()),
	}}})
	n.doors.start = func(f func(context.Context) error) { parts = append(parts, f) } // run below
	if err := n.setDoors(cfg); err != nil {
		t.Fatal(err)
	}
	address := n.doors.list[0].listener.Addr().String()
	if err := n.setDoors(&config.Config{}); err != nil {
		t.Fatal(err)
	}
	if c, err := net.Dial("tcp", address); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a door that is gone: %v, want connection refused", err)
		if c != nil {
			c.Close()
		}
	}
	if len(parts) != 2 {
		t.Fatalf("%d parts, want the door's server and its end", len(parts))
	}
	for _, part := range []func(context.Context) error{parts[1], parts[0]} { // the server comes last
		if err := part(context.Background()); err != nil {
			t.Error(err)
		}
	}
	n.doors.retiring.Wait()
}
