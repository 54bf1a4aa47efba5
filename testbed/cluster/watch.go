package cluster

import (
	"context"
	"time"

	"subak/testbed/evidence"
)

// Pace says how often what is sampled; 0 is never.
type Pace struct {
	// Status is for what nodes say of themselves. A node renews that four times a
	// second.
	Status time.Duration
	// Usage is for memory and CPU.
	Usage time.Duration
	// Metrics is for gossip's bytes and [Config.Counters].
	Metrics time.Duration
}

// Point is what a node said of itself at one instant.
type Point struct {
	At     time.Time // of its snapshot
	Got    time.Time // of the answer
	Ready  bool
	Share  float64 // requests/s, of the main budget, as is what follows
	Target float64
	Demand []float64 // by class
	Live   int       // members it counts as live, itself included
	Digest string    // of its view
	Epoch  uint64    // version active there
}

// Watch samples all nodes that run until ctx ends, each on its own: one that does
// not answer holds up nobody.
func (c *Cluster) Watch(ctx context.Context, pace Pace) {
	<-ctx.Done()
}

// Points are the samples of node i so far.
func (c *Cluster) Points(i int) []Point { return nil }

// Series is what was sampled, in bins from start on: one for each node, without
// what only the generator knows (Offered, Admitted, Refused, Errors).
func (c *Cluster) Series(start time.Time, bin time.Duration, bins int) []evidence.Series { return nil }

// Keep copies the log, the configuration and the last metrics of every node into
// a directory, which is made.
func (c *Cluster) Keep(dir string) error { return nil }
