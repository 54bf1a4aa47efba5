//go:build linux

package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"subak/testbed/evidence"
	"subak/testbed/scenario"
	"subak/testbed/wan"
)

// choice says which scenarios are meant.
type choice struct {
	names   []string
	ci      bool
	group   string
	variant string
}

// pick returns the scenarios of a choice, by name: those named, else those of the
// group, else the list that is run when nothing is said.
func (c choice) pick(all []scenario.Scenario) ([]scenario.Scenario, error) {
	var picked []scenario.Scenario
	for _, name := range c.names {
		i := slices.IndexFunc(all, func(s scenario.Scenario) bool { return s.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("no scenario %q; there are %s", name, strings.Join(names(all), ", "))
		}
		picked = append(picked, all[i])
	}
	if len(c.names) > 0 {
		return picked, nil
	}
	for _, s := range all {
		if s.Group == c.group && (s.CI || !c.ci) {
			picked = append(picked, s)
		}
	}
	if len(picked) == 0 {
		return nil, fmt.Errorf("no scenario is of group %q; see testbed list", c.group)
	}
	return picked, nil
}

// variants are those of a scenario that are to be run.
func (c choice) variants(s *scenario.Scenario) (all []evidence.Variant) {
	if c.variant != "" {
		return []evidence.Variant{evidence.Variant(c.variant)}
	}
	for _, v := range s.Variants {
		all = append(all, evidence.Variant(v.Name))
	}
	return all
}

// validate refuses a variant that does not exist.
func (c choice) validate() error {
	if known := scenario.VariantName("").Choices(); c.variant != "" && !slices.Contains(known, c.variant) {
		return fmt.Errorf("no variant %q; there are %s", c.variant, strings.Join(known, ", "))
	}
	return nil
}

func names(all []scenario.Scenario) (names []string) {
	for _, s := range all {
		names = append(names, s.Name)
	}
	return names
}

// title is the name of a run, with its variant where that is not the product.
func title(s *scenario.Scenario, v evidence.Variant) string {
	if v == evidence.Subak {
		return s.Name
	}
	return s.Name + " (" + string(v) + ")"
}

func listCommand(out io.Writer) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the scenarios", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			all, err := scenario.Files()
			if err != nil {
				return err
			}
			slices.SortStableFunc(all, func(a, b scenario.Scenario) int { return cmp.Compare(a.Group, b.Group) })
			w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
			group, planned := "", time.Duration(0)
			for i := range all {
				s := &all[i]
				if s.Group != group {
					group = s.Group
					fmt.Fprintf(w, "\n--group %s\t\t\t\n", group)
				}
				if s.Group == "" {
					planned += s.Planned()
				}
				mark := ""
				if s.CI {
					mark = "ci"
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", s.Name, s.Planned().Round(time.Second), mark, s.Title)
			}
			fmt.Fprintf(w, "\nwithout names: %s\n", planned.Round(time.Second))
			return w.Flush()
		},
	}
}

func checkCommand(out io.Writer) *cobra.Command {
	return &cobra.Command{
		Use: "check", Short: "Say what is missing on this machine to run the testbed", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := missing(); err != nil {
				return &failure{exitUsage, err}
			}
			fmt.Fprintln(out, "testbed check: nothing is missing")
			return nil
		},
	}
}

// missing says what the testbed needs and does not find.
func missing() error {
	all := wan.Check()
	if len(all) == 0 {
		return nil
	}
	return fmt.Errorf("cannot run here:\n  %s", strings.Join(all, "\n  "))
}
