package cluster

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"subak/internal/child"
)

// span is a length of time; to is zero while it lasts.
type span struct{ from, to time.Time }

// life is one process of a node.
type life struct {
	from  time.Time
	until func() time.Time // zero while it runs
}

// Start writes the configuration of node i as of now and starts it. A node of the
// first roster begins as one of a new cluster at its first start, and as one of an
// existing cluster later, as does one that joins.
func (c *Cluster) Start(i int) error {
	n := c.nodes[i]
	n.control.Lock()
	defer n.control.Unlock()
	if c.Alive(i) {
		return fmt.Errorf("cluster: start %s: it runs", n.Name)
	}
	state := "existing"
	if !n.begun() && !n.Absent {
		state = "new"
	}
	if err := os.MkdirAll(n.data, 0o700); err != nil {
		return fmt.Errorf("cluster: start %s: %w", n.Name, err)
	}
	if err := c.write(i, state); err != nil {
		return err
	}
	l := child.Launch{
		Name: "node " + n.Name, Path: n.executable(), Args: append([]string{"run", "--config", n.file}, c.cfg.Args...),
		Env:     child.CleanEnv("SUBAK_"), // those would win over the file
		LogFile: n.log,
	}
	if n.Host != nil {
		l.Start = n.Host.Start
	}
	p, err := c.children.Start(l)
	if err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	n.begin(p)
	return nil
}

// Alive reports whether node i has a process, be it paused.
func (c *Cluster) Alive(i int) bool {
	p := c.nodes[i].running()
	if p == nil {
		return false
	}
	gone, _ := p.Ended()
	return !gone
}

// Kill is kill -9 of node i; it returns when the process is gone.
func (c *Cluster) Kill(i int) {
	c.end(i, func(p *child.Process) { p.Kill() })
}

// Stop asks node i to leave by SIGTERM and returns when the process is gone.
// killed tells that it took longer than the grace and was killed.
func (c *Cluster) Stop(i int) (killed bool) {
	c.end(i, func(p *child.Process) { killed = p.Stop(c.cfg.Grace) })
	return killed
}

func (c *Cluster) end(i int, how func(*child.Process)) {
	n := c.nodes[i]
	n.control.Lock()
	defer n.control.Unlock()
	if p := n.forget(); p != nil {
		how(p)
		n.mu.Lock()
		defer n.mu.Unlock()
		n.resumedLocked(p.EndedAt())
	}
}

// Pause stops the process of node i (SIGSTOP), until Resume.
func (c *Cluster) Pause(i int) error {
	return c.nodes[i].with(func(n *node, p *child.Process) error {
		at := time.Now()
		if err := p.Pause(); err != nil {
			return err
		}
		n.pauses = append(n.pauses, span{from: at})
		return nil
	})
}

// Resume ends a pause.
func (c *Cluster) Resume(i int) error {
	return c.nodes[i].with(func(n *node, p *child.Process) error {
		err := p.Resume()
		n.resumedLocked(time.Now())
		return err
	})
}

// Limit gives node i at most this many percent of one core, until it ends or is
// given another limit; 0 ends the limit. See [child.Process.Limit].
func (c *Cluster) Limit(i, percent int) (how child.How, err error) {
	err = c.nodes[i].with(func(_ *node, p *child.Process) error {
		how, err = p.Limit(percent)
		return err
	})
	return how, err
}

// Signal sends a signal to node i. If it ends by that, it counts as crashed.
func (c *Cluster) Signal(i int, sig os.Signal) error {
	return c.nodes[i].with(func(_ *node, p *child.Process) error { return p.Signal(sig) })
}

// Use makes a binary that of node i from its next start on.
func (c *Cluster) Use(i int, binary string) {
	n := c.nodes[i]
	n.mu.Lock()
	defer n.mu.Unlock()
	n.binary = binary
}

// Wipe removes the durable state of node i, which must not run.
func (c *Cluster) Wipe(i int) error {
	n := c.nodes[i]
	n.control.Lock()
	defer n.control.Unlock()
	if c.Alive(i) {
		return fmt.Errorf("cluster: wipe %s: it runs", n.Name)
	}
	if err := os.RemoveAll(n.data); err != nil {
		return fmt.Errorf("cluster: wipe %s: %w", n.Name, err)
	}
	return nil
}

// each does something for all nodes at the same time; the error is that of the
// first of them that has one.
func (c *Cluster) each(nodes []int, f func(i int) error) error {
	errs := make([]error, len(nodes))
	var wg sync.WaitGroup
	for k, i := range nodes {
		wg.Go(func() { errs[k] = f(i) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// hangup sends SIGHUP to nodes: each reads its file again.
func (c *Cluster) hangup(nodes []int) error {
	return c.each(nodes, func(i int) error { return c.Signal(i, syscall.SIGHUP) })
}

// Roster is the present roster, by position.
func (c *Cluster) Roster() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.now.roster)
}

// running is the present process; nil without one.
func (n *node) running() *child.Process {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.process
}

func (n *node) begun() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.started
}

func (n *node) executable() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.binary
}

// begin enters a new process.
func (n *node) begin(p *child.Process) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	n.resumedLocked(now) // if the one before ended by itself
	n.process, n.started = p, true
	n.lives = append(n.lives, life{now, p.EndedAt})
}

// forget takes the process, so that its end is no crash.
func (n *node) forget() *child.Process {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.process
	n.process = nil
	return p
}

func (n *node) resumedLocked(at time.Time) {
	if k := len(n.pauses) - 1; k >= 0 && n.pauses[k].to.IsZero() {
		n.pauses[k].to = at
	}
}

// with does something to the process.
func (n *node) with(f func(*node, *child.Process) error) error {
	n.control.Lock()
	defer n.control.Unlock()
	p := n.running()
	if p == nil {
		return fmt.Errorf("cluster: %s does not run", n.Name)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := f(n, p); err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	return nil
}
