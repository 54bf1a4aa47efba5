package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"subak/internal/config"
)

func (p *program) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check, print and start configuration files",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unknown command %q for %q", args[0], cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.configCheckCommand(), p.configExampleCommand(), p.configPrintCommand())
	return cmd
}

// checked is what config check says as JSON.
type checked struct {
	OK       bool            `json:"ok"`
	Faults   config.Faults   `json:"faults"`
	Warnings []string        `json:"warnings"`
	Summary  *config.Summary `json:"summary,omitempty"`
}

func (p *program) configCheckCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check FILE...",
		Short: "Find every mistake in a configuration",
		Long: `Find every mistake in a configuration, each with its line, its field and what to
write instead. The environment and flags count as for subak run. Several files
are read one over the other.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(p.files(args)) == 0 {
				return fmt.Errorf("%w: write it after the command, or set %s", errNoConfig, envConfig)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			files := p.files(args)
			cfg, err := config.LoadShared(files, p.env, cmd.Flags())
			faults, _ := errors.AsType[config.Faults](err)
			if err != nil && faults == nil {
				return err
			}
			result := checked{OK: err == nil, Faults: faults, Warnings: []string{}}
			if faults == nil {
				result.Faults = config.Faults{}
				result.Warnings = append(result.Warnings, cfg.Warnings()...)
				result.Summary = cfg.Summary()
			}
			return p.sayChecked(strings.Join(files, " "), &result, asJSON)
		},
	}
	p.jsonFlag(cmd, &asJSON)
	config.AddFlags(cmd.Flags())
	return cmd
}

func (p *program) sayChecked(files string, result *checked, asJSON bool) error {
	var err error
	switch page := (&page{}); {
	case asJSON:
		err = printJSON(p.out, result)
	case result.OK:
		page.line("%s: OK", files)
		summaryPart(page, result.Summary)
		for _, w := range result.Warnings {
			page.line("warning: %s", w)
		}
		err = page.writeTo(p.out)
	default:
		for _, f := range result.Faults {
			page.line("%s", f.Error())
		}
		page.line("%s: %s", files, count(len(result.Faults), "fault", "faults"))
		err = page.writeTo(p.out)
	}
	if err == nil && !result.OK {
		return &failure{code: exitBroken}
	}
	return err
}

// summaryPart writes what a configuration amounts to.
func summaryPart(p *page, s *config.Summary) {
	p.line("")
	p.line("cluster %s: %s", s.Cluster, count(len(s.Nodes), "node", "nodes"))
	header := []string{"NODE", ">WEIGHT"}
	for _, b := range s.Budgets {
		header = append(header, ">BASE OF "+b.Name)
	}
	var rows [][]string
	for i, n := range s.Nodes {
		name := n.Name
		if n.Self {
			name += " (this)"
		}
		row := []string{name, fmt.Sprint(n.Weight)}
		for _, b := range s.Budgets {
			row = append(row, rate(b.Bases[i], b.Unit))
		}
		rows = append(rows, row)
	}
	p.table("  ", header, rows)
	for _, b := range s.Budgets {
		p.line("")
		p.line("budget %s: %s, burst %s, %s", b.Name, rate(b.Limit, b.Unit), span(b.BurstSeconds), b.Mode)
		var rows [][]string
		for _, c := range b.Classes {
			rows = append(rows, []string{c.Name, rate(c.Reservation, b.Unit), percent(c.Reservation, b.Limit), c.Level1, c.Lend, c.Borrow})
		}
		p.table("  ", []string{"CLASS", ">RESERVED", ">OF LIMIT", "LEVEL1", ">LENDS", ">BORROWS"}, rows)
	}
	for _, l := range s.Listeners {
		p.line("")
		p.line("listener %s on %s: %s, %s", l.Name, l.Listen, l.Serves, count(l.Rules, "rule", "rules"))
		p.line("  no rule matches: %s", l.Unknown)
	}
	if len(s.Budgets)+len(s.Listeners) > 0 {
		p.line("")
	}
}

func (p *program) configExampleCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "example",
		Short:   "Print a complete configuration with a comment on every field",
		Example: `  subak config example > subak.yaml`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if !asJSON {
				_, err := fmt.Fprint(p.out, config.Example())
				return err
			}
			cfg, err := config.Parse("example", []byte(config.Example()))
			if err != nil {
				return err
			}
			return p.printConfig(cfg, true)
		},
	}
	p.jsonFlag(cmd, &asJSON)
	return cmd
}

func (p *program) configPrintCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "print FILE...",
		Short: "Print the effective configuration, secrets redacted",
		Long: `Print what files, environment and flags come to, with all defaults filled in and
secrets redacted.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(p.files(args)) == 0 {
				return errNoConfig
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := config.LoadShared(p.files(args), p.env, cmd.Flags())
			if err != nil {
				return err
			}
			return p.printConfig(cfg, asJSON)
		},
	}
	p.jsonFlag(cmd, &asJSON)
	config.AddFlags(cmd.Flags())
	return cmd
}

func (p *program) printConfig(cfg *config.Config, asJSON bool) error {
	write := cfg.YAML
	if asJSON {
		write = cfg.JSON
	}
	text, err := write()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.out, "%s\n", strings.TrimRight(string(text), "\n"))
	return err
}
