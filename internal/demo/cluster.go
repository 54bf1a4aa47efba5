package demo

import (
	"context"
	"encoding/json"
	"fmt"
	mathrand "math/rand/v2"
	"net/http"
	"os"
	"strings"
	"time"

	"subak/internal/child"
	nodes "subak/testbed/cluster"
	"subak/testbed/origin"
)

// cluster is five nodes and an origin at work. One goroutine, that of Run,
// starts, kills and closes; watchers only read.
type cluster struct {
	opt    Options
	plan   plan
	ui     *screen
	dir    string
	sup    *child.Supervisor
	at     []address
	nodes  *nodes.Cluster // nil before the origin has said where it is
	origin *origin.Client
	source *child.Process
}

// address is where one node listens.
type address struct {
	proxy, admin, gossip string // host:port
}

// How long things may take before the demo gives up.
const (
	originWait = 10 * time.Second
	readyWait  = 45 * time.Second
	stopGrace  = 3 * time.Second
)

// newCluster prepares addresses and a directory; nothing runs yet.
func newCluster(opt Options, ui *screen) (*cluster, error) {
	return newClusterOf(opt, ui, script(opt.Limit, opt.Scale))
}

func newClusterOf(opt Options, ui *screen, p plan) (c *cluster, err error) {
	c = &cluster{opt: opt, plan: p, ui: ui}
	rng := mathrand.New(mathrand.NewPCG(uint64(os.Getpid()), uint64(time.Now().UnixNano())))
	for _, n := range c.plan.nodes {
		ports, err := nodes.FreePorts(n.host, 3, rng)
		if err != nil {
			return nil, fmt.Errorf("demo: %w", err)
		}
		c.at = append(c.at, address{proxy: ports[0], admin: ports[1], gossip: ports[2]})
	}
	if c.dir, err = tempDir(); err != nil {
		return nil, err
	}
	c.sup = child.New()
	return c, nil
}

// close stops every process and removes every file.
func (c *cluster) close() {
	if c.nodes != nil {
		c.nodes.Close()
	}
	c.sup.Close(stopGrace)
	if c.origin != nil {
		c.origin.HTTP.CloseIdleConnections()
	}
	if err := os.RemoveAll(c.dir); err != nil {
		c.ui.say("demo: %v", err)
	}
}

// up starts the origin and all nodes, and waits until they are one cluster.
func (c *cluster) up(ctx context.Context) error {
	c.ui.say("subak demo: %d nodes share %s requests/s to one origin (seed %d)", c.plan.founders(), comma(int(c.plan.limit)), c.opt.Seed)
	data, err := c.startOrigin(ctx)
	if err != nil {
		return err
	}
	cfg := c.plan.setup(c.at, data)
	cfg.Binary, cfg.Dir, cfg.Children, cfg.Grace = c.opt.Exe, c.dir, c.sup, stopGrace
	if c.nodes, err = nodes.New(cfg); err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	for i := range c.plan.founders() {
		if err := c.startNode(i); err != nil {
			return err
		}
	}
	return c.awaitReady(ctx)
}

// startOrigin starts the origin; data is its address for requests.
func (c *cluster) startOrigin(ctx context.Context) (data string, err error) {
	line := child.NewFirstLine()
	p, err := c.sup.Start(child.Launch{Name: "origin", Path: c.opt.Exe, Args: c.opt.OriginArgs, Env: child.CleanEnv("SUBAK_"), Stdin: true, Stdout: line})
	if err != nil {
		return "", fmt.Errorf("demo: %w", err)
	}
	c.source = p
	timer := time.NewTimer(originWait)
	defer timer.Stop()
	select {
	case text := <-line.Ready():
		var a origin.Addresses
		if err := json.Unmarshal(text, &a); err != nil || a.Data == "" || a.Control == "" {
			return "", fmt.Errorf("demo: the origin says %q in place of its addresses", text)
		}
		c.origin = &origin.Client{Address: a.Control, HTTP: &http.Client{Transport: &http.Transport{}, Timeout: 10 * time.Second}}
		return a.Data, nil
	case <-p.Done():
		return "", fmt.Errorf("demo: %w", p.Failure())
	case <-timer.C:
		return "", fmt.Errorf("demo: the origin did not start within %s", originWait)
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// setup is the nodes of a plan, without binary and directory.
func (p *plan) setup(at []address, origin string) nodes.Config {
	cfg := nodes.Config{
		Name: "demo", Origin: origin, Limit: p.limit, Burst: p.burst, Insurance: 10_000 * p.insurance,
		Tick: p.tick, Term: p.term, Profile: "local",
	}
	for _, k := range p.classes {
		cfg.Classes = append(cfg.Classes, nodes.Class{Name: k.name, Reserve: 10_000 * k.percent})
	}
	for i, n := range p.nodes {
		cfg.Nodes = append(cfg.Nodes, nodes.Node{
			Name: n.name, Weight: n.weight, Gossip: at[i].gossip, Proxy: at[i].proxy, Admin: at[i].admin, Absent: i >= p.founders(),
		})
	}
	return cfg
}

// startNode starts node i, for the first time or again.
func (c *cluster) startNode(i int) error {
	if err := c.nodes.Start(i); err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	return nil
}

func (c *cluster) proxies() []string {
	var all []string
	for _, a := range c.at {
		all = append(all, a.proxy)
	}
	return all
}

// noDigit drops digits from a text.
func noDigit(r rune) rune {
	if '0' <= r && r <= '9' {
		return -1
	}
	return r
}

// awaitReady waits until every node is ready and sees all others alive and of
// the same mind.
func (c *cluster) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyWait)
	defer cancel()
	founders, said := c.plan.founders(), ""
	err := c.nodes.AwaitReady(ctx, nil, func(waiting []string) {
		text := fmt.Sprintf("%d of %d nodes ready; waiting for %s", founders-len(waiting), founders, strings.Join(waiting, ", "))
		if c.ui.live() {
			c.ui.draw([]string{text})
		} else if news := strings.Map(noDigit, text); news != said { // not for every tenth of a second less
			c.ui.say("%s", text)
			said = news
		}
	})
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	c.ui.say("%d of %d nodes ready", founders, founders)
	return nil
}

// crashed reports a process that ended though nobody killed it.
func (c *cluster) crashed() error {
	if gone, _ := c.source.Ended(); gone {
		return fmt.Errorf("demo: %w", c.source.Failure())
	}
	if err := c.nodes.Crashed(); err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	return nil
}
