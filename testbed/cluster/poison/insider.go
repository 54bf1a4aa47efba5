package poison

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"

	"subak/gossip"
	"subak/testbed/cluster"
)

// memberName is the name under which the insider is a member.
const memberName = "poisoner"

// realMost bounds the packets of the cluster that are kept.
const realMost = 64

// insider is a member of the cluster's gossip that publishes nonsense. It is the
// product's own gossip, so that what it says comes as far as can be.
type insider struct {
	gossip *gossip.Gossip
	root   uint32
	cancel context.CancelFunc
	done   sync.WaitGroup
	err    error // of Run; valid after done

	mu   sync.Mutex // guards real
	real [][]byte
}

func newInsider(ctx context.Context, c *cluster.Cluster, from cluster.Host, nodes []int) (*insider, error) {
	if len(nodes) == 0 {
		return nil, errors.New("no nodes to poison")
	}
	s, err := c.Client(nodes[0]).Status(ctx)
	if err != nil {
		return nil, err
	}
	fingerprint, err := strconv.ParseUint(s.Epoch.Fingerprint, 16, 64)
	if err != nil {
		return nil, fmt.Errorf("%s has no epoch yet: %w", c.Node(nodes[0]).Name, err)
	}
	transport, err := newTransport(ctx, from, address(c.Node(nodes[0])))
	if err != nil {
		return nil, err
	}
	cfg := gossip.Config{
		Cluster: c.Name(), Name: memberName, Transport: transport, Fingerprint: fingerprint, Profile: gossip.WAN,
		// Nothing it hears has an identity, so nothing is passed on twice.
		Key: func([]byte) (string, [2]uint64, bool) { return "", [2]uint64{}, false },
	}
	for _, i := range nodes {
		cfg.Seeds = append(cfg.Seeds, address(c.Node(i)))
	}
	for _, k := range c.Keys() {
		key, err := base64.StdEncoding.DecodeString(k)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("key: %w", err), transport.Shutdown())
		}
		cfg.Keys = append(cfg.Keys, key)
	}
	g, err := gossip.New(cfg, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		return nil, err
	}
	in := &insider{gossip: g, root: uint32(fingerprint ^ fingerprint>>32)}
	in.start()
	return in, in.awaitMembers(ctx)
}

func (in *insider) start() {
	var ctx context.Context
	ctx, in.cancel = context.WithCancel(context.Background())
	in.done.Go(func() { in.err = in.gossip.Run(ctx) })
	in.done.Go(func() {
		for {
			select {
			case m := <-in.gossip.Inbox():
				in.hear(m.Packet)
			case <-ctx.Done():
				return
			}
		}
	})
}

func (in *insider) hear(packet []byte) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.real = append(in.real, packet); len(in.real) > realMost {
		in.real = in.real[1:]
	}
}

// awaitMembers waits until somebody has let it in.
func (in *insider) awaitMembers(ctx context.Context) error {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for len(in.gossip.Members()) == 0 {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("nobody lets the poisoner in: %w", context.Cause(ctx)), in.close())
		}
	}
	return nil
}

// speak sends nonsense to a node in every way there is, and to all.
func (in *insider) speak(rng *rand.Rand, to string) (packets, spoilt int) {
	next := func() []byte {
		in.mu.Lock()
		defer in.mu.Unlock()
		b, real := nonsense(rng, in.real, in.root)
		packets++
		if real {
			spoilt++
		}
		return b
	}
	if in.gossip.SendTo(to, next()) != nil {
		packets-- // it is not met yet
	}
	in.gossip.SendReliable(to, next())
	in.gossip.Publish(next(), true)
	in.gossip.SetState(next())
	return packets, spoilt
}

func (in *insider) close() error {
	in.cancel()
	in.done.Wait()
	if err := in.gossip.Close(); err != nil {
		return err
	}
	if errors.Is(in.err, context.Canceled) {
		return nil
	}
	return in.err
}

// transport is memberlist's own, of sockets of a host.
type transport struct {
	*memberlist.NetTransport
	from cluster.Host
}

func newTransport(ctx context.Context, from cluster.Host, toward string) (*transport, error) {
	conn, err := from.DialContext(ctx, "udp", toward) // tells which address it has in that direction
	if err != nil {
		return nil, err
	}
	host, _, err := net.SplitHostPort(conn.LocalAddr().String())
	if err := errors.Join(err, conn.Close()); err != nil {
		return nil, err
	}
	t := &transport{from: from}
	err = from.Do(func() (err error) {
		t.NetTransport, err = memberlist.NewNetTransport(&memberlist.NetTransportConfig{
			BindAddrs: []string{host}, Logger: log.New(io.Discard, "", 0),
		})
		return err
	})
	return t, err
}

// DialTimeout implements memberlist.Transport.
func (t *transport) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return t.from.DialContext(ctx, "tcp", addr)
}

// DialAddressTimeout implements memberlist.NodeAwareTransport.
func (t *transport) DialAddressTimeout(a memberlist.Address, timeout time.Duration) (net.Conn, error) {
	return t.DialTimeout(a.Addr, timeout)
}
