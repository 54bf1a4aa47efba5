// Command traffic is what surrounds the nodes in docker/compose.yaml: the origin
// that they protect, the clients that load them, and the questions that chaos.sh
// and the smoke test ask.
//
// Model: it reads the nodes' own configuration (SUBAK_CONFIG), so that limit,
// burst, classes, nodes and weights are written down once: the first budget is
// the one that is loaded and judged. A node is reached by its name, as services
// of a compose file reach each other: clients at NAME:8080, status at NAME:7947.
//
// Invariant: origin and load share no code with what they judge but the checker
// of the bound. They read CLOCK_MONOTONIC, which all containers of one machine
// share; an origin on another machine than its load would see no transit times.
//
// Rates are requests/s. Exit codes: 0 yes, 1 no, 2 the command line makes no
// sense, 4 the evidence does not allow a verdict.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"subak/allocator"
	"subak/internal/config"
)

// Ports inside of the containers. The nodes' are those of docker/subak.yaml.
const (
	edgePort    = "8080" // of a node, for clients; of the origin, for nodes
	adminPort   = "7947" // of a node
	controlPort = "8081" // of origin and load: figures, and the origin's verdict
)

// Exit codes beyond 0.
const (
	exitNo        = 1
	exitUsage     = 2
	exitNoVerdict = 4
)

// answer is an error that is no failure: everything has been said, and what is
// left is the exit code.
type answer int

func (a answer) Error() string { return fmt.Sprintf("exit code %d", int(a)) }

// scene is the cluster as the configuration describes it.
type scene struct {
	limit   int64 // requests/s
	burst   time.Duration
	classes []string // highest priority first
	nodes   []config.Node
}

// slots is the constant part of the bound: each bucket may hold one whole
// request, however low its rate.
func (s *scene) slots() int64 { return int64(len(s.nodes) * len(s.classes)) }

func (s *scene) names() []string {
	var all []string
	for _, n := range s.nodes {
		all = append(all, n.Name)
	}
	return all
}

// newScene reads the file that SUBAK_CONFIG names.
func newScene() (*scene, error) {
	file := os.Getenv(config.EnvConfig)
	if file == "" {
		return nil, fmt.Errorf("%s names no file; mend: mount the nodes' configuration", config.EnvConfig)
	}
	cfg, err := config.LoadShared([]string{file}, nil, nil)
	if err != nil {
		return nil, err
	}
	b := cfg.Budgets[0]
	s := &scene{limit: int64(b.Limit.Rate / allocator.Unit), burst: b.Burst, nodes: cfg.Nodes}
	for _, c := range b.Classes {
		s.classes = append(s.classes, c.Name)
	}
	return s, nil
}

func main() {
	started := false
	root := command(&started)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := root.ExecuteContext(ctx)
	stop()
	code, said := answer(0), errors.As(err, new(answer))
	switch {
	case said:
		_ = errors.As(err, &code)
	case err != nil:
		fmt.Fprintf(os.Stderr, "traffic: %v\n", err)
		code = exitNo
		if !started {
			code = exitUsage
		}
	}
	os.Exit(int(code))
}

// command returns the tree of all commands. started is set when one has begun:
// errors before that are about the command line.
func command(started *bool) *cobra.Command {
	root := &cobra.Command{
		Use:              "traffic",
		Short:            "The origin, the clients and the witnesses of the compose cluster",
		SilenceErrors:    true,
		SilenceUsage:     true,
		PersistentPreRun: func(*cobra.Command, []string) { *started = true },
	}
	// with hands the scene of the configuration to a command.
	with := func(use, short string, run func(context.Context, *scene) error) *cobra.Command {
		cmd := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs}
		cmd.RunE = func(cmd *cobra.Command, _ []string) error {
			s, err := newScene()
			if err != nil {
				return err
			}
			return run(cmd.Context(), s)
		}
		root.AddCommand(cmd)
		return cmd
	}
	with("origin", "Serve the origin: it enforces nothing and remembers every arrival", serveOrigin)
	with("reset", "Make the origin forget what it saw, for a verdict from here on", resetOrigin)
	with("verdict", "Ask the origin whether the budget was kept since the reset", printVerdict)
	with("status", "Ask every node how it is", printStatus)

	var w waiting
	await := with("await", "Wait until all nodes are ready and see exactly their own group",
		func(ctx context.Context, s *scene) error { return w.run(ctx, s) })
	await.Flags().StringVar(&w.groups, "groups", "", "nodes that see each other: a,b/c,d; default all in one; nodes left out do not matter")
	await.Flags().BoolVar(&w.serving, "serving", false, "and each of them admits requests meanwhile")
	await.Flags().DurationVar(&w.timeout, "timeout", 30*time.Second, "how long to wait")

	var l loading
	load := with("load", "Be the clients of all nodes, in cycles of calm, flood and flash crowd, until stopped",
		func(ctx context.Context, s *scene) error { return l.run(ctx, s) })
	load.Flags().Uint64Var(&l.seed, "seed", 1, "of the arrivals")
	load.Flags().DurationVar(&l.cycle, "cycle", time.Minute, "length of one cycle")
	return root
}

// at is the address of a service.
func at(name, port string) string { return net.JoinHostPort(name, port) }
