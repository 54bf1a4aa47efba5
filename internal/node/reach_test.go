package node

import (
	"testing"
	"time"

	"subak/internal/api"
)

func TestANodeSaysHowFarItReaches(t *testing.T) {
	t.Parallel()
	nodes := cluster(t)
	l := nodes[2]
	c, err := api.NewClient(api.ClientConfig{Address: l.node.web.Addr(), Timeout: 15 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r, err := c.Reach(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r.Advertised != l.node.gossip.Addr() || len(r.Seeds) != 1 || len(r.Peers) != 2 {
		t.Fatalf("got %+v, want one seed and two peers", r)
	}
	if s := r.Seeds[0]; s.ResolveError+s.UDPError+s.TCPError != "" || s.Self || s.RTTMillis <= 0 {
		t.Errorf("seed %+v, want both ways", s)
	}
	for _, p := range r.Peers {
		if !p.UDP || !p.TCP || p.Peer == "" || p.Address == "" {
			t.Errorf("peer %+v, want both ways", p)
		}
	}
}
