package main

import (
	"context"
	"io"
	stdlog "log"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"subak/internal/config"
	"subak/internal/demo"
	"subak/internal/node"
)

// startNode runs a node until ctx ends. SIGHUP makes it read its configuration
// again, by load.
func startNode(ctx context.Context, p *program, cfg *config.Config, baseline string, load func() (*config.Config, error)) error {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	log := newLogger(p.err, cfg.Log)
	adoptStandardLog(log)
	for _, w := range cfg.Warnings() {
		log.Warn(w)
	}
	tending, stop := context.WithCancel(ctx)
	defer stop()
	return node.Run(ctx, cfg, node.Options{
		Log: log, Version: readBuild().Version, Baseline: baseline, Load: load, Reload: hangup,
		Started: func(n *node.Node) {
			go tendHeap(tending, p.getenv("GOGC"), n.Asked)
			go dropStart(tending)
		},
	})
}

// adoptStandardLog sends what libraries print by the standard logger, such as
// net/http about a backend that breaks the protocol, into ours.
func adoptStandardLog(log *slog.Logger) {
	stdlog.SetFlags(0)
	stdlog.SetOutput(slog.NewLogLogger(log.Handler(), slog.LevelWarn).Writer())
}

func newLogger(w io.Writer, c config.Log) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Level)); err != nil {
		level = slog.LevelInfo // checked when loaded
	}
	opts := &slog.HandlerOptions{Level: level}
	if c.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}

// shortScale makes the demo's minute a third as long: enough for every phase.
const shortScale = 1.0 / 3

// originCommand is the demo's origin in a process of its own.
const originCommand = "demo-origin"

// startDemo runs the demonstration.
func startDemo(ctx context.Context, p *program, o demoOptions) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	opts := demo.Options{
		Exe: exe, OriginArgs: []string{originCommand}, Out: p.out, Err: p.err, Limit: o.limit, Seed: o.seed,
		Keep: o.keep, JSON: o.json, NoTTY: o.plain, Scale: 1,
	}
	if o.short {
		opts.Scale = shortScale
	}
	if o.changes {
		opts.Scale = 1 // the protocol's own times do not shrink
		r, err := demo.RunChanges(ctx, opts)
		if err == nil && !r.OK() {
			err = &failure{code: exitBroken} // the verdict has said it
		}
		return err
	}
	v, err := demo.Run(ctx, opts)
	if err != nil {
		return err
	}
	if !v.OK() {
		return &failure{code: exitBroken} // the verdict has said it
	}
	return nil
}

func (p *program) originCommand() *cobra.Command {
	return &cobra.Command{
		Use: originCommand, Hidden: true, Args: cobra.NoArgs,
		Short: "The demo's origin: enforces nothing, remembers arrivals",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return untilSignal(cmd.Context(), demo.ServeOrigin)
		},
	}
}
