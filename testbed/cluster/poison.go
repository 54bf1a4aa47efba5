package cluster

import "context"

// Poisoned counts what was sent.
type Poisoned struct {
	Datagrams, Streams int // without the key
	Requests           int // to admin interfaces
	Messages           int // with the key
}

// Poison sends hostile bytes to nodes from a host (nil: this machine): garbage to
// their gossip ports and admin interfaces, and, as a member that has the key,
// nonsense in the place of rows, so many rounds of each. The bytes depend on the
// seed only.
func (c *Cluster) Poison(ctx context.Context, from Host, nodes []int, rounds int, seed uint64) (Poisoned, error) {
	return Poisoned{}, nil
}
