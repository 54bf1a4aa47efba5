package doors

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"subak/internal/api"
	"subak/internal/child"
	"subak/testbed/cluster"
	"subak/testbed/peers/drive"
)

const (
	host  = "127.0.0.1"
	grace = 3 * time.Second  // for a server that is told to end
	start = 20 * time.Second // for one to be ready
)

// rig is the processes of one case.
type rig struct {
	bench *Bench
	sup   *child.Supervisor
	gen   *drive.Remote
	order io.Closer // the generator ends when it is closed
	ended chan struct{}
	dir   string
}

// server is a process that is measured.
type server struct {
	process *child.Process
	addr    string
	admin   string // of a node
}

// open starts a generator and no server.
func (b *Bench) open() (*rig, error) {
	dir, err := os.MkdirTemp("", "bench-peers-")
	if err != nil {
		return nil, err
	}
	args := b.Place.Command(b.Self, b.Place.Rest, b.Self, "drive")
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stderr = os.Stderr
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		return nil, fmt.Errorf("start the load generator: %w", err)
	}
	r := &rig{bench: b, sup: child.New(), gen: drive.NewRemote(out, in), order: in, dir: dir, ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		_ = cmd.Wait() // what it had to say, it said on standard error
	}()
	return r, nil
}

// close ends all processes.
func (r *rig) close() {
	r.order.Close()
	<-r.ended
	r.sup.Close(grace)
	_ = os.RemoveAll(r.dir) // scratch; nobody needs to know
}

// launch starts a server on the cores of servers, or on the rest.
func (r *rig) launch(name string, rest bool, stdout io.Writer, path string, args ...string) (*child.Process, error) {
	cpus := r.bench.Place.Server
	if rest {
		cpus = r.bench.Place.Rest
	}
	argv := r.bench.Place.Command(r.bench.Self, cpus, path, args...)
	return r.sup.Start(child.Launch{Name: name, Path: argv[0], Args: argv[1:], Env: child.CleanEnv("SUBAK_"), Stdout: stdout})
}

// floor starts one of this program's own servers and waits for its address.
func (r *rig) floor(kind string, args ...string) (server, error) {
	line := child.NewFirstLine()
	p, err := r.launch(kind, kind == "backend", line, r.bench.Self, append([]string{"serve", kind}, args...)...)
	if err != nil {
		return server{}, err
	}
	select {
	case addr := <-line.Ready():
		return server{process: p, addr: string(addr)}, nil
	case <-p.Done():
		return server{}, fmt.Errorf("%s has ended: %w", kind, p.Failure())
	case <-time.After(start):
		return server{}, fmt.Errorf("%s says no address", kind)
	}
}

// node starts a node whose classes have no tenants.
func (r *rig) node(ctx context.Context, text string) (server, error) { return r.nodeOf(ctx, "", text) }

// nodeOf starts a node with one door and, unless "", tenants in its first class: text is the part of the configuration that has
// it, where LISTEN stands for the door's address. It waits until it is ready.
func (r *rig) nodeOf(ctx context.Context, tenants, text string) (server, error) {
	ports, err := cluster.FreePorts(host, 3, rand.New(rand.NewPCG(rand.Uint64(), 1)))
	if err != nil {
		return server{}, err
	}
	s := server{addr: ports[0], admin: ports[1]}
	file := filepath.Join(r.dir, "node.yaml")
	if err := os.WriteFile(file, []byte(nodeFile(ports[2], s.admin, s.addr, tenants, text)), 0o600); err != nil {
		return server{}, err
	}
	s.process, err = r.launch("subak run", false, nil, r.bench.Node, "run", "--config", file, "--bootstrap")
	if err != nil {
		return server{}, err
	}
	return s, s.await(ctx)
}

// nodeFile is the configuration of a node.
func nodeFile(gossip, admin, door, tenants, text string) string {
	if tenants != "" {
		tenants = ", tenants: " + tenants
	}
	return fmt.Sprintf(nodeText, gossip, admin, tenants) + strings.ReplaceAll(text, "LISTEN", door)
}

// nodeText is a node that is alone and may spend more than anybody asks for.
const nodeText = `cluster: {name: peers, single: true}
node: {name: here}
gossip: {listen: %q, profile: local, tick: 200ms, term: 2s}
admin: {listen: %q}
log: {level: warn}
nodes: [{name: here}]
budgets:
  - name: origin
    limit: 10000000/s
    classes: [{name: confirmed, reserve: 60%%%s}, {name: uncleared, reserve: 40%%}]
`

// await waits until the node is ready.
func (s server) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, start)
	defer cancel()
	c, err := api.NewClient(api.ClientConfig{Address: s.admin, Timeout: time.Second})
	if err != nil {
		return err
	}
	defer c.Close()
	for {
		ready, reason, err := c.Ready(ctx)
		if ready {
			return nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-s.process.Done():
			return fmt.Errorf("the node has ended: %w", s.process.Failure())
		case <-ctx.Done():
			return fmt.Errorf("the node is not ready: %s %w", reason, errors.Join(err, ctx.Err()))
		}
	}
}
