package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"subak/internal/api"
)

// Edit is a change of what all nodes agree on. Zero values leave things as they
// are.
type Edit struct {
	Limit   int64   // requests/s
	Reserve []int64 // ppm, by class
	Roster  []int   // by position
	// Forget declares nodes dead. It stands alone.
	Forget []int
	// Revert allows content that was in force before.
	Revert bool
	// Canary takes the change first, for Trial; "" is nobody.
	Canary string
	Trial  time.Duration
}

// Apply asks node ask for a change, as subak apply and subak forget do, and
// returns once it is accepted; see [Cluster.AwaitChange]. While the node refuses to
// forget one that it still hears, it is asked again until ctx ends.
func (c *Cluster) Apply(ctx context.Context, ask int, e Edit) (api.Change, error) {
	r, next := c.request(e)
	made, err := c.nodes[ask].client.Change(ctx, r)
	for err != nil && len(e.Forget) > 0 {
		if _, refused := errors.AsType[*api.Refused](err); !refused {
			break
		}
		if sleep(ctx, 2*pollEvery) != nil {
			break // what the node said is worth more
		}
		made, err = c.nodes[ask].client.Change(ctx, r)
	}
	if err != nil {
		return made, fmt.Errorf("cluster: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = next
	return made, nil
}

// request is the change as a node wants it, and what will hold after it.
func (c *Cluster) request(e Edit) (api.ChangeRequest, content) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := c.now.edited(e)
	r := api.ChangeRequest{Revert: e.Revert, Canary: e.Canary, CanarySeconds: e.Trial.Seconds()}
	for _, i := range e.Forget {
		r.Forget = append(r.Forget, c.cfg.Nodes[i].Name)
	}
	if len(e.Forget) == 0 {
		r.Name, r.File = "edit.yaml", c.cfg.edit(next, e)
	}
	return r, next
}

func (now content) edited(e Edit) content {
	if e.Limit > 0 {
		now.limit = e.Limit
	}
	if len(e.Reserve) > 0 {
		now.reserve = e.Reserve
	}
	if len(e.Roster) > 0 {
		now.roster = slices.Clone(e.Roster)
	}
	if len(e.Forget) > 0 {
		now.roster = slices.DeleteFunc(slices.Clone(now.roster), func(i int) bool { return slices.Contains(e.Forget, i) })
	}
	return now
}

// AwaitChange waits until a change is in force at every node, as node ask sees it.
func (c *Cluster) AwaitChange(ctx context.Context, ask int, epoch string) (api.Change, error) {
	for {
		now, err := c.nodes[ask].client.Progress(ctx, epoch)
		switch {
		case err == nil && now.State == api.ChangeInForce:
			return now, nil
		case err == nil && now.State.Done():
			return now, fmt.Errorf("cluster: epoch %s is %s: %s", epoch, now.State, now.Reason)
		}
		if cause := sleep(ctx, pollEvery/2); cause != nil {
			return now, fmt.Errorf("cluster: epoch %s is not in force, but %s: %s: %w", epoch, now.State, now.Reason, errors.Join(cause, err))
		}
	}
}

// Reload writes a change into the files of nodes and has each read its own again
// (SIGHUP), which puts it in force in the whole cluster.
func (c *Cluster) Reload(nodes []int, e Edit) error {
	c.mu.Lock()
	c.now = c.now.edited(e)
	c.mu.Unlock()
	if err := c.each(nodes, func(i int) error { return c.write(i, "existing") }); err != nil {
		return err
	}
	return c.hangup(nodes)
}
