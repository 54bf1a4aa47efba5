package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"subak/internal/config"
	"subak/internal/doctor"
)

// examined is what doctor says as JSON.
type examined struct {
	OK     bool           `json:"ok"`
	Checks []doctor.Check `json:"checks"`
}

func (p *program) doctorCommand() *cobra.Command {
	a := &asker{program: p}
	var files []string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Find what keeps a node from working where it is put",
		Long: `Check the configuration, the machine, and the network from this node to its seeds
and back: whether the seeds answer by UDP and TCP, and whether other nodes reach
the address that this one advertises, which they are asked to try. Run it on the
node's machine, as the node's user, with the node's configuration, environment
and flags.

A node that runs is asked by its admin interface. If it does not run, its
ports are tried, and its gossip port is used for some seconds: the other nodes
see a visitor of its name with .doctor behind it, which has no share. Exits with 1 if a check says FAIL.`,
		Example: `  subak doctor --config /etc/subak.yaml --node ams`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			names := p.files(files)
			if len(names) == 0 {
				return &failure{exitUsage, errNoConfig, "name it by --config FILE or " + envConfig}
			}
			cfg, err := config.Load(names, p.env, cmd.Flags())
			if err != nil {
				return a.sayExamined(doctor.Faults(err))
			}
			opts := doctor.Options{Admin: first(a.address, a.getenv(config.EnvAdmin))}
			if file := first(a.tokenFile, a.getenv(config.EnvTokenFile)); file != "" {
				if opts.Token, err = config.ReadToken(file); err != nil {
					return err
				}
			}
			return untilSignal(cmd.Context(), func(ctx context.Context) error {
				return a.sayExamined(doctor.Examine(ctx, cfg, opts))
			})
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&files, "config", "c", nil, "configuration file; a later one overrides an earlier one (env "+envConfig+")")
	flags.StringVar(&a.address, "admin", "", fmt.Sprintf("the node's admin address, if it is not admin.listen (env %s)", config.EnvAdmin))
	flags.StringVar(&a.tokenFile, "token-file", "", fmt.Sprintf("file with the node's admin token, if it is not admin.token_file (env %s)", config.EnvTokenFile))
	p.jsonFlag(cmd, &a.json)
	config.AddFlags(flags)
	return cmd
}

// sayExamined prints the findings, one to a line with what mends it below, and
// turns them into an exit code.
func (a *asker) sayExamined(checks []doctor.Check) error {
	counts := map[doctor.Verdict]int{}
	page := &page{}
	for _, c := range checks {
		counts[c.Verdict]++
		page.line("%-4s  %s: %s", c.Verdict, c.Name, c.Words)
		if c.Mend != "" {
			page.line("      mend: %s", c.Mend)
		}
	}
	well := counts[doctor.Fail] == 0
	page.line("doctor: %d FAIL, %d warn, %d ok", counts[doctor.Fail], counts[doctor.Warn], counts[doctor.OK])
	var err error
	if a.json {
		err = printJSON(a.out, examined{well, checks})
	} else {
		err = page.writeTo(a.out)
	}
	if err == nil && !well {
		return &failure{code: exitBroken}
	}
	return err
}
