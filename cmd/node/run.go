package main

import (
	"context"
	"errors"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"subak/internal/config"
)

// envConfig names the configuration file when --config does not.
const envConfig = config.EnvConfig

var errNoConfig = errors.New("no configuration file is named")

// files returns the configuration files of a command.
func (p *program) files(flag []string) []string {
	if len(flag) == 0 && p.getenv(envConfig) != "" {
		return []string{p.getenv(envConfig)}
	}
	return flag
}

func (p *program) runCommand() *cobra.Command {
	var files []string
	var baseline *string
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run one node",
		Long: `Run one node until it is told to stop. SIGTERM and SIGINT make it leave: it
settles its loans, says goodbye and exits; a second signal ends it at once.
SIGHUP makes it read its TLS files and its configuration again: listeners and the
doors for Envoy change here, nodes and budgets in the whole cluster, as by subak
apply. A file with faults changes nothing.

Every field of the configuration that is not in a list is also a flag here and
an environment variable; flags win over the environment, the environment wins
over the file.`,
		Example: `  subak run --config subak.yaml --node ams
  subak run --config subak.yaml --node ams --bootstrap     first start of the whole cluster`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			names := p.files(files)
			if len(names) == 0 {
				return &failure{exitUsage, errNoConfig, "name it by --config FILE or " + envConfig + "; subak config example writes one"}
			}
			load := func() (*config.Config, error) { return config.Load(names, p.env, cmd.Flags()) }
			cfg, err := load()
			if err != nil {
				return err
			}
			return untilSignal(cmd.Context(), func(ctx context.Context) error { return startNode(ctx, p, cfg, *baseline, load) })
		},
	}
	cmd.Flags().StringArrayVarP(&files, "config", "c", nil, "configuration file; a later one overrides an earlier one (env "+envConfig+")")
	config.AddFlags(cmd.Flags())
	baseline = addBaseline(cmd.Flags())
	return cmd
}

// untilSignal runs f with a context that ends on SIGINT or SIGTERM; after the
// first signal the second one kills as usual.
func untilSignal(ctx context.Context, f func(context.Context) error) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	return f(ctx)
}
