package node

import (
	"context"
	"errors"
	"fmt"

	"subak/gossip"
	"subak/internal/api"
	"subak/internal/web"
)

// Reach implements web.Backend: it tries the ways to the seeds and lets peers call
// back, without the loop.
func (n *Node) Reach(ctx context.Context) (api.Reach, error) {
	r, err := n.gossip.Reach(ctx)
	if errors.Is(err, gossip.ErrBusy) {
		return api.Reach{}, fmt.Errorf("%w: the same is being tried already; ask again in ten seconds", web.ErrConflict)
	}
	return ReachOf(r), err
}

// ReachOf puts what gossip found into the form of the admin interface.
func ReachOf(r gossip.Reach) api.Reach {
	out := api.Reach{Advertised: r.Advertised, Seeds: []api.SeedReach{}, Peers: []api.PeerReach{}}
	for _, s := range r.Seeds {
		out.Seeds = append(out.Seeds, api.SeedReach{
			Seed: s.Seed, Self: s.Self, Addresses: s.Addrs, ResolveError: s.Resolve,
			UDPError: s.UDP, RTTMillis: millis(s.RTT), TCPError: s.TCP, Hint: s.Hint,
		})
	}
	for _, p := range r.Peers {
		out.Peers = append(out.Peers, api.PeerReach{Peer: p.Peer, Address: p.Addr, UDP: p.UDP, TCP: p.TCP, Error: p.Error})
	}
	return out
}
