//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"subak/internal/config"
	"subak/testbed/report"
	"subak/testbed/scenario"
)

// simulatedPrefix begins the name of a file with what the simulator said of the
// contention scenarios on one topology.
const simulatedPrefix = "simulated-"

// simulator is the executable that plays contention scenarios in virtual time.
func (b *builder) simulator() string { return filepath.Join(b.bin, "contention") }

// simulate plays the same contention scenarios in virtual time, once for each
// topology, and leaves what the simulator says beside the outcomes.
func (o *options) simulate(ctx context.Context, out io.Writer, b *builder, picked []scenario.Scenario) error {
	for _, group := range contentions(picked) {
		fmt.Fprintf(out, "testbed: %d contention scenarios on %s in the simulator\n", len(group), group[0].Topology)
		said, err := exec.CommandContext(ctx, b.simulator(), o.simulatorArgs(group)...).Output()
		if err != nil && len(said) == 0 {
			return fmt.Errorf("simulate contention on %s: %w", group[0].Topology, err)
		}
		// A verdict that is not ok is in the document, and is the simulator's to
		// complain of.
		name := simulatedPrefix + filepath.Base(group[0].Topology) + ".json"
		if err := os.WriteFile(filepath.Join(o.out, name), said, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// contentions are the scenarios with a trace, by topology.
func contentions(picked []scenario.Scenario) (groups [][]scenario.Scenario) {
	for _, s := range picked {
		if s.Trace == nil {
			continue
		}
		i := slices.IndexFunc(groups, func(g []scenario.Scenario) bool { return g[0].Topology == s.Topology })
		if i < 0 {
			groups, i = append(groups, nil), len(groups)
		}
		groups[i] = append(groups[i], s)
	}
	return groups
}

// simulatorArgs ask for the same budget, trace and seed.
func (o *options) simulatorArgs(group []scenario.Scenario) []string {
	s := &group[0]
	var traces []string
	for _, g := range group {
		traces = append(traces, g.Trace.Name)
	}
	seed := uint64(s.Seed)
	if o.seed != 0 {
		seed = o.seed
	}
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	return []string{
		"--json", "--nodes", s.Topology, "--scenario", strings.Join(traces, ","),
		"--limit", number(int64(s.Limit())), "--cycle", s.Trace.Cycle.String(), "--cycles", number(int64(s.Trace.Cycles)),
		"--first", number(int64(s.Trace.First)), "--hasten", number(int64(max(1, s.Trace.Hasten))),
		"--seed", strconv.FormatUint(seed, 10), "--insurance", number(int64(s.Budget.Insurance * 100 / config.Whole)),
	}
}

// simulations are those that lie in a directory.
func simulations(dir string) (all []report.Simulation, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, simulatedPrefix+"*.json"))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		s, err := report.ReadSimulation(bytes.NewReader(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, s)
	}
	return all, nil
}
