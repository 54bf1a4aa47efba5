//go:build linux

package wan

import (
	"context"
	"net"
	"os/exec"
)

// Net is a running network.
type Net struct {
	hosts []*Host
}

type inside struct{}

// New builds the network and starts the switch; all rules are zero.
func New(cfg Config) (*Net, error) { return nil, ErrNotIsolated }

// Hosts are the hosts by their position in Config.Hosts.
func (n *Net) Hosts() []*Host { return n.hosts }

// Set edits a copy of the rules, one call of edit for each ordered pair of two
// hosts, and puts the whole copy in force at once.
func (n *Net) Set(edit func(src, dst int, r *Rule)) {}

// Stats counts what happened since New.
func (n *Net) Stats() Stats { return Stats{} }

// Close ends the switch and gives everything back. Processes of the hosts go on
// without a network, those started with Pdeathsig end.
func (n *Net) Close() error { return nil }

// Do runs f on a thread inside the host's network namespace: sockets that f makes
// there stay there. Goroutines that f starts are not inside.
func (h *Host) Do(f func() error) error { return ErrNotIsolated }

// Start starts cmd as a process of the host.
func (h *Host) Start(cmd *exec.Cmd) error { return ErrNotIsolated }

// Listen listens inside the host. The address is a literal IP and port.
func (h *Host) Listen(network, address string) (net.Listener, error) { return nil, ErrNotIsolated }

// ListenPacket opens a UDP socket inside the host.
func (h *Host) ListenPacket(network, address string) (net.PacketConn, error) {
	return nil, ErrNotIsolated
}

// DialContext connects from inside the host. The address is a literal IP and port.
func (h *Host) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return nil, ErrNotIsolated
}
