// Command contention plays the eight contention scenarios over whole cores of the
// product in virtual time, once as they share the budget and once with every
// node on its base alone, and prints what part of the demand is served.
//
//	go run ./chaos/contention [--nodes 22|5] [--cycle 2s] [--cycles 30] [--seed 1] [--json]
//
// Package contention tells the scenarios, package timed (Contest) how they are
// played: requests one by one, decided by the nodes' own limiters, with gossip as
// late as between the cities. Standard output is a table, or with --json one JSON
// document of settings and results, whose last line is the verdict; it exits
// with 1 where that is not ok, with 2 where it was asked for what there is not.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"subak/chaos/timed"
	"subak/internal/contention"
	"subak/testbed/topology"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// options is the command line.
type options struct {
	contest   timed.Contest // but for Scenario and Static
	nodes     string
	scenarios []string
	json      bool
}

func run(args []string, out, complaints io.Writer) int {
	o, err := parse(args, complaints)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintf(complaints, "contention: %v\n", err)
		return 2
	}
	r := report{Settings: settingsOf(&o.contest)}
	if !o.json {
		r.head(out)
	}
	for _, name := range o.scenarios {
		row, err := play(o.contest, name)
		if err != nil {
			fmt.Fprintf(complaints, "contention: %v\n", err)
			return 2
		}
		r.Results = append(r.Results, row)
		if !o.json {
			row.print(out)
		}
	}
	return r.finish(out, o.json)
}

func parse(args []string, complaints io.Writer) (*options, error) {
	o := &options{contest: timed.DefaultContest()}
	c := &o.contest
	f := flag.NewFlagSet("contention", flag.ContinueOnError)
	f.SetOutput(complaints)
	f.StringVar(&o.nodes, "nodes", "22", "22 or 5 places, or the name or .csv file of a topology")
	f.Int64Var(&c.Limit, "limit", 0, "budget in requests/s; 0 is what the testbed takes: 2000, and 1100 for more than ten places")
	f.DurationVar(&c.Cycle, "cycle", c.Cycle, "length of a cycle; under 2s, nothing is claimed but the budget")
	f.IntVar(&c.Cycles, "cycles", c.Cycles, "number of cycles")
	f.IntVar(&c.First, "first", c.First, "cycle to begin with")
	f.IntVar(&c.Hasten, "hasten", c.Hasten, "how many times faster the flash crowd and the day run: 5 brings the whole crowd into 30 cycles")
	f.Uint64Var(&c.Seed, "seed", c.Seed, "seed of the demand and of the network")
	insurance := f.Int64("insurance", c.InsurancePPM/10_000, "insurance of the high class, in percent of its demand; under 10, nothing is claimed but the budget")
	only := f.String("scenario", "", "only these, such as S2,S4")
	f.BoolVar(&o.json, "json", false, "print JSON")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if f.NArg() > 0 {
		return nil, fmt.Errorf("%q is no flag", f.Arg(0))
	}
	c.InsurancePPM = *insurance * 10_000
	o.scenarios = contention.Names()
	if *only != "" {
		o.scenarios = strings.Split(*only, ",")
	}
	return o, o.place()
}

// place finds the topology and what depends on it.
func (o *options) place() (err error) {
	name := o.nodes
	switch name {
	case "22":
		name = "cities22"
	case "5":
		name = "five"
	}
	c := &o.contest
	if c.Topology, err = topology.Find(name); err == nil && c.Limit == 0 {
		c.Limit = 2000
		if len(c.Topology.Places) > 10 {
			c.Limit = 1100
		}
	}
	return err
}

// play runs one scenario both ways.
func play(c timed.Contest, name string) (row, error) {
	c.Scenario = name
	shared, err := c.Play()
	if err != nil {
		return row{}, err
	}
	c.Static = true
	static, err := c.Play()
	return row{
		Scenario: name, Title: contention.Title(name),
		Subak: figuresOf(&c, shared), Static: figuresOf(&c, static),
	}, err
}

// settings is what a run was asked for, in the words of the JSON.
type settings struct {
	Topology     string        `json:"topology"`
	Nodes        []string      `json:"nodes"`
	MaxRTT       time.Duration `json:"max_rtt_ns"`
	Limit        int64         `json:"limit"` // requests/s
	Cycle        time.Duration `json:"cycle_ns"`
	First        int           `json:"first"`
	Cycles       int           `json:"cycles"`
	Hasten       int           `json:"hasten"`
	Seed         uint64        `json:"seed"`
	InsurancePPM int64         `json:"insurance_ppm"`
	Burst        time.Duration `json:"burst_ns"`
	Tick         time.Duration `json:"tick_ns"`
	Term         time.Duration `json:"term_ns"`
}

func settingsOf(c *timed.Contest) settings {
	return settings{
		Topology: c.Topology.Name, Nodes: c.Topology.Names(), MaxRTT: c.Topology.MaxRTT(),
		Limit: c.Limit, Cycle: c.Cycle, First: c.First, Cycles: c.Cycles, Hasten: c.Hasten, Seed: c.Seed,
		InsurancePPM: c.InsurancePPM, Burst: c.Burst, Tick: c.Tick, Term: c.Term,
	}
}
