package demo

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"subak/internal/api"
	"subak/testbed/origin"
)

// cluster is five nodes and an origin at work. One goroutine, that of Run,
// starts, kills and closes; watchers only read.
type cluster struct {
	opt     Options
	plan    plan
	ui      *screen
	dir     string
	key     string // gossip key, base64
	sup     *supervisor
	at      []address
	nodes   []*process
	clients []*api.Client
	origin  *origin.Client
	data    string // host:port of the origin
	source  *process
}

// How long things may take before the demo gives up.
const (
	originWait = 10 * time.Second
	readyWait  = 45 * time.Second
	stopGrace  = 3 * time.Second
)

// newCluster prepares addresses, files and clients; nothing runs yet.
func newCluster(opt Options, ui *screen) (*cluster, error) {
	return newClusterOf(opt, ui, script(opt.Limit, opt.Scale))
}

func newClusterOf(opt Options, ui *screen, p plan) (c *cluster, err error) {
	c = &cluster{opt: opt, plan: p, ui: ui}
	if c.dir, err = tempDir(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(c.dir) // the first error says more
		}
	}()
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		return nil, fmt.Errorf("demo: gossip key: %w", err)
	}
	c.key = base64.StdEncoding.EncodeToString(key)
	rng := mathrand.New(mathrand.NewPCG(uint64(os.Getpid()), uint64(time.Now().UnixNano())))
	for _, n := range c.plan.nodes {
		ports, err := freePorts(n.host, 3, rng)
		if err != nil {
			return nil, err
		}
		a := address{proxy: ports[0], admin: ports[1], gossip: ports[2]}
		client, err := api.NewClient(api.ClientConfig{Address: a.admin, Timeout: pollTimeout})
		if err != nil {
			return nil, fmt.Errorf("demo: %w", err)
		}
		c.at = append(c.at, a)
		c.clients = append(c.clients, client)
	}
	c.nodes = make([]*process, len(c.at))
	c.sup = newSupervisor()
	return c, nil
}

// close stops every process and removes every file.
func (c *cluster) close() {
	c.sup.close(stopGrace)
	for _, client := range c.clients {
		client.Close()
	}
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
	if err := c.startOrigin(ctx); err != nil {
		return err
	}
	for i := range c.plan.founders() {
		if err := c.startNode(i, "new"); err != nil {
			return err
		}
	}
	return c.awaitReady(ctx)
}

func (c *cluster) startOrigin(ctx context.Context) error {
	line := newFirstLine()
	p, err := c.sup.start(launch{name: "origin", path: c.opt.Exe, args: c.opt.OriginArgs, env: cleanEnv(), stdin: true, stdout: line})
	if err != nil {
		return err
	}
	c.source = p
	timer := time.NewTimer(originWait)
	defer timer.Stop()
	select {
	case text := <-line.ready:
		var a origin.Addresses
		if err := json.Unmarshal(text, &a); err != nil || a.Data == "" || a.Control == "" {
			return fmt.Errorf("demo: the origin says %q in place of its addresses", text)
		}
		c.data = a.Data
		c.origin = &origin.Client{Address: a.Control, HTTP: &http.Client{Transport: &http.Transport{}, Timeout: 10 * time.Second}}
		return nil
	case <-p.done:
		return p.failure()
	case <-timer.C:
		return fmt.Errorf("demo: the origin did not start within %s", originWait)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// startNode writes the configuration of node i and starts it.
func (c *cluster) startNode(i int, state string) error {
	name := c.plan.nodes[i].name
	data := filepath.Join(c.dir, name)
	if err := os.MkdirAll(data, 0o700); err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	file := filepath.Join(c.dir, name+".yaml")
	if err := os.WriteFile(file, c.plan.configYAML(i, c.at, c.data, data, c.key, state), 0o600); err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	p, err := c.sup.start(launch{name: "node " + name, path: c.opt.Exe, args: []string{"run", "--config", file}, env: cleanEnv()})
	if err != nil {
		return err
	}
	c.nodes[i] = p
	return nil
}

// cleanEnv is the environment without SUBAK_*: those would win over the files.
func cleanEnv() []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "SUBAK_") {
			env = append(env, v)
		}
	}
	return env
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
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	said := ""
	for {
		if err := c.crashed(); err != nil {
			return err
		}
		waiting := c.unready(ctx)
		if len(waiting) == 0 {
			c.ui.say("%d of %d nodes ready", c.plan.founders(), c.plan.founders())
			return nil
		}
		text := fmt.Sprintf("%d of %d nodes ready; waiting for %s", c.plan.founders()-len(waiting), c.plan.founders(), strings.Join(waiting, ", "))
		if c.ui.live() {
			c.ui.draw([]string{text})
		} else if news := strings.Map(noDigit, text); news != said { // not for every tenth of a second less
			c.ui.say("%s", text)
			said = news
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return fmt.Errorf("demo: not ready within %s: %s\n%s", readyWait, strings.Join(waiting, ", "), c.logs())
			}
			return context.Cause(ctx)
		}
	}
}

// unready lists the nodes that are not ready, each with its reason.
func (c *cluster) unready(ctx context.Context) (waiting []string) {
	founders := c.plan.founders()
	for i, client := range c.clients[:founders] {
		if why := unreadyReason(ctx, client, founders); why != "" {
			waiting = append(waiting, fmt.Sprintf("%s (%s)", c.plan.nodes[i].name, why))
		}
	}
	return waiting
}

func unreadyReason(ctx context.Context, client *api.Client, nodes int) string {
	ready, reason, err := client.Ready(ctx)
	if err != nil {
		return "no answer yet"
	}
	if !ready {
		return reason
	}
	s, err := client.Status(ctx)
	if err != nil {
		return "no status yet"
	}
	live := 0
	for _, m := range s.Members {
		if m.Live || m.Self {
			live++
		}
	}
	switch {
	case live < nodes:
		return fmt.Sprintf("sees %d of %d", live, nodes)
	case s.Digests != 1:
		return fmt.Sprintf("%d different views", s.Digests)
	case !s.Epoch.Active:
		return "epoch not active"
	}
	return ""
}

// crashed reports a process that ended though nobody killed it.
func (c *cluster) crashed() error {
	for _, p := range append([]*process{c.source}, c.nodes...) {
		if p == nil { // killed on purpose
			continue
		}
		if gone, _ := p.ended(); gone {
			return p.failure()
		}
	}
	return nil
}

// logs are the last lines of every node.
func (c *cluster) logs() string {
	var b strings.Builder
	for _, p := range c.nodes {
		if p != nil {
			fmt.Fprintf(&b, "%s:\n%s\n", p.name, p.log.last(8))
		}
	}
	return b.String()
}

// firstLine is a writer that hands over the first line and forgets the rest.
type firstLine struct {
	ready chan []byte
	text  []byte
	done  bool
}

func newFirstLine() *firstLine { return &firstLine{ready: make(chan []byte, 1)} }

// Write is called by one goroutine.
func (f *firstLine) Write(b []byte) (int, error) {
	const most = 4 << 10
	if f.done {
		return len(b), nil
	}
	f.text = append(f.text, b...)
	if line, _, ok := strings.Cut(string(f.text), "\n"); ok || len(f.text) > most {
		f.ready <- []byte(line)
		f.done, f.text = true, nil
	}
	return len(b), nil
}
