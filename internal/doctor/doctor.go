// Package doctor finds what keeps a node from working where it is put: an address
// that peers cannot reach, a seed that does not answer, a directory that cannot
// be written (lesson O21).
//
// # Model
//
// [Examine] runs every check and returns a [Check] for each finding, in the order
// in which a person would mend them. Checks of the configuration and the machine
// look and change nothing. What the network does is found out by the node itself
// if it runs, since nobody else can have its gossip port; else by a visitor that
// takes that port for some seconds, joins under the name of the node with .doctor
// behind it, without a share, and leaves.
//
// A verdict is Fail only for what will not work, Warn for what may be meant.
//
// # Concurrency
//
// Examine may be called from any goroutine; it starts what it needs and stops it.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"subak/internal/api"
	"subak/internal/config"
)

// Verdict is what a check found.
type Verdict string

// The verdicts.
const (
	OK   Verdict = "ok"
	Warn Verdict = "warn"
	Fail Verdict = "FAIL"
)

// Check is one finding. Mend is empty for OK.
type Check struct {
	Name    string  `json:"check"`
	Verdict Verdict `json:"verdict"`
	Words   string  `json:"words"`
	Mend    string  `json:"mend,omitempty"`
}

// Options say where to look.
type Options struct {
	// Admin is the address of the running node, if it is not that of the
	// configuration; and Token what it asks for, likewise.
	Admin, Token string
	// Log gets what the visitor says; nil discards.
	Log *slog.Logger
}

// reachTimeout bounds the question how far a running node reaches.
const reachTimeout = 20 * time.Second

// examination collects findings.
type examination struct {
	cfg     *config.Config
	opts    Options
	secrets config.Secrets
	checks  []Check
}

func (x *examination) ok(name, format string, args ...any) {
	x.checks = append(x.checks, Check{name, OK, fmt.Sprintf(format, args...), ""})
}

func (x *examination) warn(name, mend, format string, args ...any) {
	x.checks = append(x.checks, Check{name, Warn, fmt.Sprintf(format, args...), mend})
}

func (x *examination) fail(name, mend, format string, args ...any) {
	x.checks = append(x.checks, Check{name, Fail, fmt.Sprintf(format, args...), mend})
}

// Examine checks the node that cfg describes. It takes up to twenty seconds; ctx
// ends it early.
func Examine(ctx context.Context, cfg *config.Config, opts Options) []Check {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	x := &examination{cfg: cfg, opts: opts}
	x.ok("config", "node %s of %d in cluster %s; budgets: %d, listeners: %d", cfg.Node.Name, len(cfg.Nodes), cfg.Cluster.Name, len(cfg.Budgets), len(cfg.Listeners))
	for _, w := range cfg.Warnings() {
		x.warn("config", "", "%s", w)
	}
	usable := x.checkSecrets()
	x.checkDataDir()
	x.checkFiles()
	x.checkTLS()
	x.checkClock()
	if usable = x.checkAddresses(ctx) && usable; usable && ctx.Err() == nil {
		x.checkNetwork(ctx)
	}
	return x.checks
}

// Faults are the findings about a configuration that cannot be used.
func Faults(err error) []Check {
	var faults config.Faults
	if !errors.As(err, &faults) {
		return []Check{{"config", Fail, err.Error(), ""}}
	}
	var checks []Check
	for _, f := range faults {
		words := f.What
		if f.Field != "" {
			words = f.Field + ": " + words
		}
		checks = append(checks, Check{"config", Fail, fmt.Sprintf("%s: %s", f.Place, words), f.Mend})
	}
	return checks
}

// checkSecrets reads the keys and the token, and reports whether the network can
// be tried.
func (x *examination) checkSecrets() bool {
	secrets, err := x.cfg.Secrets()
	if err != nil {
		for _, c := range Faults(err) {
			c.Name = "secrets"
			x.checks = append(x.checks, c)
		}
		return false
	}
	x.secrets = secrets
	if x.opts.Token == "" {
		x.opts.Token = secrets.Token
	}
	return true
}

// checkNetwork finds out how far the node reaches: by the node if it runs, else
// in its place.
func (x *examination) checkNetwork(ctx context.Context) {
	c, err := api.NewClient(api.ClientConfig{Address: x.admin(), Token: x.opts.Token, Timeout: reachTimeout})
	if err != nil {
		x.fail("node", "write HOST:PORT or unix:/PATH", "%v", err)
		return
	}
	defer c.Close()
	ask, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	s, err := c.Status(ask)
	var unreachable *api.Unreachable
	switch {
	case errors.As(err, &unreachable):
		x.ok("node", "does not run (nothing answers at %s): its ports are taken for the checks below", x.admin())
		x.checkDoors(ctx)
		x.visit(ctx)
	case err != nil:
		x.fail("node", "name the node's admin address by --admin and its token by --token-file", "%v", err)
	case s.Node != x.cfg.Node.Name || s.Cluster != x.cfg.Cluster.Name:
		x.fail("node", "name this node's own admin address by --admin, and give each node of a machine its own", "at %s there is node %s of cluster %s", x.admin(), s.Node, s.Cluster)
	default:
		x.checkNode(&s)
		r, err := c.Reach(ctx)
		if err != nil {
			x.fail("network", "try again; see the node's log", "%v", err)
			return
		}
		x.judgeReach(&r)
	}
}

// admin is where the running node is asked.
func (x *examination) admin() string {
	if x.opts.Admin != "" {
		return x.opts.Admin
	}
	return x.cfg.Admin.Listen.Dial().String()
}

// checkNode passes on what the running node says of itself.
func (x *examination) checkNode(s *api.Status) {
	if s.Ready {
		x.ok("node", "runs and is ready: %s", s.Reason)
	} else {
		x.warn("node", "", "runs, but is not ready: %s", s.Reason)
	}
	for _, a := range s.Alarms {
		x.fail("alarm", "", "%s", a.Words)
	}
	if s.Baseline != "" {
		x.fail("node", "run the ordinary build", "is a baseline for comparisons (%s): the budget is not protected", s.Baseline)
	}
}
