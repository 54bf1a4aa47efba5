package cluster

import "slices"

// SetKeys makes keys those of every node from its next start on; the first one
// encrypts. Replacing the keys of a cluster that runs takes three rounds of
// restarts; see [Cluster.Rotate].
func (c *Cluster) SetKeys(keys []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keys = slices.Clone(keys)
}
