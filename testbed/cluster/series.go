package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"subak/testbed/evidence"
)

// answerAge is how long after its last answer a node still counts as up.
const answerAge = time.Second

// Series is what was sampled, in bins from start on: one for each node, without
// what only the generator knows (Offered, Admitted, Refused, Errors). The value of
// a bin is the last one from before its end; a node is up in a bin if its process
// runs at its end, is not paused, and has answered within the last second.
func (c *Cluster) Series(start time.Time, bin time.Duration, bins int) []evidence.Series {
	c.mu.Lock()
	stale := max(answerAge, 2*c.pace.Status)
	c.mu.Unlock()
	all := make([]evidence.Series, len(c.nodes))
	for i, n := range c.nodes {
		all[i] = n.series(start, bin, bins, len(c.cfg.Classes), stale)
	}
	return all
}

func (n *node) series(start time.Time, bin time.Duration, bins, classes int, stale time.Duration) evidence.Series {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := blank(bins, classes)
	var p, u, m int // samples taken in, of each kind
	for b := range bins {
		end := start.Add(time.Duration(b+1) * bin)
		for p < len(n.points) && !n.points[p].At.After(end) {
			p++
		}
		for u < len(n.usage) && !n.usage[u].at.After(end) {
			u++
		}
		for m < len(n.meters) && !n.meters[m].at.After(end) {
			m++
		}
		up := n.runsLocked(end) && !n.pausedLocked(end) && n.answeredLocked(p, end, stale)
		if p > 0 {
			enter(&s, b, &n.points[p-1], up)
		}
		if u > 0 {
			s.RSS[b], s.CPU[b] = n.usage[u-1].rss, n.usage[u-1].cpu
		}
		if m > 0 {
			s.GossipSent[b], s.GossipReceived[b] = n.meters[m-1].sent, n.meters[m-1].received
		}
	}
	for name, k := range n.counters {
		s.Counters[name] = k.earlier + k.now
	}
	return s
}

// blank is a series of a node that never ran.
func blank(bins, classes int) evidence.Series {
	s := evidence.Series{
		Up: make([]uint8, bins), Ready: make([]uint8, bins), Share: make([]float64, bins), Target: make([]float64, bins),
		Demand: make([][]float64, classes), Live: make([]int, bins), Digest: make([]string, bins), Epoch: make([]uint64, bins),
		GossipSent: make([]int64, bins), GossipReceived: make([]int64, bins), RSS: make([]int64, bins), CPU: make([]int64, bins),
		Counters: map[string]float64{},
	}
	for k := range s.Demand {
		s.Demand[k] = make([]float64, bins)
	}
	return s
}

func enter(s *evidence.Series, b int, p *Point, up bool) {
	s.Share[b], s.Target[b], s.Live[b], s.Epoch[b] = p.Share, p.Target, p.Live, p.Epoch
	for k := range s.Demand {
		if k < len(p.Demand) {
			s.Demand[k][b] = p.Demand[k]
		}
	}
	if !up {
		return
	}
	s.Up[b], s.Digest[b] = 1, p.Digest
	if p.Ready {
		s.Ready[b] = 1
	}
}

// answeredLocked tells whether one of the samples before p, or the one at p, shows
// that the node answered during the time before an instant.
func (n *node) answeredLocked(p int, at time.Time, within time.Duration) bool {
	return p > 0 && !n.points[p-1].Got.Before(at.Add(-within))
}

// runsLocked tells whether a process ran at an instant.
func (n *node) runsLocked(at time.Time) bool {
	for _, l := range n.lives {
		if end := l.until(); !l.from.After(at) && (end.IsZero() || end.After(at)) {
			return true
		}
	}
	return false
}

// pausedLocked tells whether the process was paused at an instant.
func (n *node) pausedLocked(at time.Time) bool {
	for _, s := range n.pauses {
		if !s.from.After(at) && (s.to.IsZero() || s.to.After(at)) {
			return true
		}
	}
	return false
}

// Keep copies the log, the configuration and the last metrics of every node into
// a directory, which is made.
func (c *Cluster) Keep(dir string) error {
	errs := []error{os.MkdirAll(dir, 0o700)}
	for _, n := range c.nodes {
		for _, from := range []string{n.log, n.file} {
			if text, err := os.ReadFile(from); err == nil {
				errs = append(errs, os.WriteFile(filepath.Join(dir, filepath.Base(from)), text, 0o600))
			} else if n.begun() {
				errs = append(errs, err)
			}
		}
		n.mu.Lock()
		page := n.page
		n.mu.Unlock()
		if page != nil {
			errs = append(errs, os.WriteFile(filepath.Join(dir, n.Name+".metrics"), page, 0o600))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("cluster: keep: %w", err)
	}
	return nil
}
