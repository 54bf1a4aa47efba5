package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/spf13/cobra"

	"subak/internal/api"
	"subak/internal/config"
)

// healthTimeout is how long health waits: probes of container engines come every
// few seconds, and one that hangs tells less than one that fails.
const healthTimeout = 2 * time.Second

// healthCommand is the probe for places without an HTTP client, such as an image
// that holds this binary alone.
func (p *program) healthCommand() *cobra.Command {
	a := &asker{program: p}
	var files []string
	var live bool
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Exit with 0 if a node is ready, for health checks of containers",
		Long: fmt.Sprintf(`Exit with 0 if the node is ready to get traffic, else with 1 and the reason. With
--live, ready or not: whether the process works, that is, whether a restart would
help. A check that restarts what fails it wants --live: a node that is not ready,
say in the quarantine after a start, is not mended by another restart.

Where the node is: --admin, or admin.listen of the --config file, or %s,
or admin.listen of the file in %s, or %s. No token is needed.`, config.EnvAdmin, config.EnvConfig, defaultAdmin),
		Example: `  subak health
  subak health --config /etc/subak.yaml --live
  HEALTHCHECK --start-period=10s CMD ["subak", "health", "--live"]     in a Dockerfile`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.locate(files); err != nil {
				return err
			}
			return a.ask(cmd.Context(), func(ctx context.Context, c *api.Client) error { return a.probe(ctx, c, live) })
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&a.address, "admin", "", fmt.Sprintf("the node's admin address, HOST:PORT or unix:/PATH (env %s)", config.EnvAdmin))
	flags.StringArrayVarP(&files, "config", "c", nil, "configuration of the node, which names its admin address (env "+envConfig+")")
	flags.BoolVar(&live, "live", false, "ask whether the process works, not whether it is ready")
	flags.DurationVar(&a.timeout, "timeout", healthTimeout, "how long to wait for the answer")
	p.jsonFlag(cmd, &a.json)
	return cmd
}

// locate finds the admin address in configuration files, unless it is named
// nearer.
func (a *asker) locate(files []string) error {
	if a.address != "" || len(files) == 0 && a.getenv(config.EnvAdmin) != "" {
		return nil
	}
	if files = a.files(files); len(files) == 0 {
		return nil
	}
	cfg, err := config.LoadShared(files, a.env, nil)
	if err != nil {
		return err
	}
	a.address = cfg.Admin.Listen.Dial().String()
	if _, port, err := net.SplitHostPort(a.address); err == nil && port == "0" {
		return &failure{exitBroken, errors.New("admin.listen takes any free port, so the file does not tell where the node is"), "name a port in admin.listen, or the address by --admin"}
	}
	return nil
}

// probe asks, prints the answer and turns it into an exit code, which is 1 for
// everything that is not well: probes know no others.
func (a *asker) probe(ctx context.Context, c *api.Client, live bool) error {
	ask, yes, no := c.Ready, "ready", "not ready"
	if live {
		ask, yes, no = c.Live, "live", "not live"
	}
	ok, reason, err := ask(ctx)
	if err != nil {
		f := a.failure(nil, err)
		f.code = exitBroken
		return f
	}
	said := yes
	if !ok {
		said = no
	}
	switch said = said + ": " + reason; {
	case a.json:
		err = printJSON(a.out, map[string]any{"ok": ok, "reason": reason})
	case !ok:
		return &failure{exitBroken, errors.New(said), ""}
	default:
		page := &page{}
		page.line("%s", said)
		err = page.writeTo(a.out)
	}
	if err == nil && !ok {
		return &failure{code: exitBroken}
	}
	return err
}
