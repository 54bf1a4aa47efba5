package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// AwaitReady waits until nodes (nil: the roster) are ready, each sees all of them
// live, its view agrees with those of its peers, and its epoch is in force. After
// each look, say is told who is waited for and why; nil is nobody. It fails when a
// node crashes, and when ctx ends: then with the reasons and the logs.
func (c *Cluster) AwaitReady(ctx context.Context, nodes []int, say func(waiting []string)) error {
	if nodes == nil {
		nodes = c.Roster()
	}
	for {
		if err := c.Crashed(); err != nil {
			return err
		}
		waiting := c.unready(ctx, nodes)
		if len(waiting) == 0 {
			return nil
		}
		if say != nil && ctx.Err() == nil {
			say(waiting)
		}
		if err := sleep(ctx, 2*pollEvery); err != nil {
			if errors.Is(err, context.DeadlineExceeded) {
				return fmt.Errorf("cluster: not ready in time: %s\n%s: %w", strings.Join(waiting, ", "), c.LastLines(8), err)
			}
			return err
		}
	}
}

// unready lists the nodes that are not ready, each with its reason.
func (c *Cluster) unready(ctx context.Context, nodes []int) (waiting []string) {
	reasons := make([]string, len(nodes))
	var wg sync.WaitGroup
	for k, i := range nodes {
		wg.Go(func() { reasons[k] = c.unreadyReason(ctx, i, nodes) })
	}
	wg.Wait()
	for k, why := range reasons {
		if why != "" {
			waiting = append(waiting, fmt.Sprintf("%s (%s)", c.nodes[nodes[k]].Name, why))
		}
	}
	return waiting
}

func (c *Cluster) unreadyReason(ctx context.Context, i int, nodes []int) string {
	s, err := c.nodes[i].client.Status(ctx)
	if err != nil {
		return "no answer yet"
	}
	if !s.Ready {
		return s.Reason
	}
	live := map[string]bool{}
	for _, m := range s.Members {
		live[m.Name] = m.Live || m.Self
	}
	seen := 0
	for _, k := range nodes {
		if live[c.nodes[k].Name] {
			seen++
		}
	}
	switch {
	case seen < len(nodes):
		return fmt.Sprintf("sees %d of %d", seen, len(nodes))
	case s.Digests != 1:
		return fmt.Sprintf("%d different views", s.Digests)
	case !s.Epoch.Active:
		return "epoch not active"
	}
	return ""
}

// AwaitMet waits until a node that starts is known to the node by.
func (c *Cluster) AwaitMet(ctx context.Context, i, by int) error {
	for {
		if err := c.Crashed(); err != nil {
			return err
		}
		members, err := c.nodes[by].client.Members(ctx)
		for _, m := range members {
			if m.Name == c.nodes[i].Name && m.Gossip == "alive" && m.Refused == "" {
				return nil
			}
		}
		if cause := sleep(ctx, pollEvery); cause != nil {
			return fmt.Errorf("cluster: %s has not met %s: %w", c.nodes[by].Name, c.nodes[i].Name, errors.Join(cause, err))
		}
	}
}

// Crashed describes a process that ended though nobody here ended it, and returns
// nil if there is none.
func (c *Cluster) Crashed() error {
	for _, n := range c.nodes {
		p := n.running()
		if p == nil {
			continue
		}
		if gone, _ := p.Ended(); gone {
			return fmt.Errorf("cluster: %w", p.Failure())
		}
	}
	return nil
}

// LastLines are the last lines of the log of every node that runs.
func (c *Cluster) LastLines(lines int) string {
	var b strings.Builder
	for _, n := range c.nodes {
		if p := n.running(); p != nil {
			fmt.Fprintf(&b, "%s:\n%s\n", p.Name(), p.Last(lines))
		}
	}
	return b.String()
}

// sleep waits, or fails with the cause of the context's end.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
