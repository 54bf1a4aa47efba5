// Command scale prints, in virtual time, what rows cost and how fast demand is
// followed, by the number of nodes:
//
//	nodes    Mbit/s out per node and reaction of 22, 100 and 330 whole cores
//	light    reaction of 330 and 1,000 nodes reduced to ledger and allocator
//	tiers    the same with two-tier dissemination
//
// The delays are those of 22 cities, 282 ms for the farthest round trip. Bytes are
// the packet and all that is put around it, encryption and label included, without
// UDP and IP headers, which are stated apart. It ends with a verdict, and with
// status 1 if a claim falls short: the bytes are claimed for a cluster without
// floods, and printed for one with a flood every two seconds too. All of it takes some ten minutes of CPU; -nodes
// 100 takes one. What rows of many budgets take is told by
// go test -run '^$' -bench ScaleBytes -benchtime 6x ./internal/core.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
)

func main() {
	part := flag.String("part", "nodes,light,tiers", "which figures, separated by commas")
	least := flag.Int("least", 22, "smallest number of nodes")
	most := flag.Int("nodes", 1000, "largest number of nodes")
	steps := flag.Int("steps", 6, "demand steps to each figure of reaction")
	flag.Parse()
	figures, err := run(strings.Split(*part, ","), *least, *most, *steps)
	if err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
	short := 0
	for _, f := range figures {
		if f.value > f.limit {
			short++
			fmt.Printf("falls short: %s is %.4g, claimed at most %g\n", f.name, f.value, f.limit)
		}
	}
	fmt.Printf("verdict: %d of %d claims hold\n", len(figures)-short, len(figures))
	if short > 0 {
		os.Exit(1)
	}
}

// figure is a measured value with what it may be at most.
type figure struct {
	name         string
	value, limit float64
}

// run measures the parts asked for.
func run(parts []string, least, most, steps int) (figures []figure, err error) {
	add := func(f figure, e error) {
		figures = append(figures, f)
		if err == nil {
			err = e
		}
	}
	losses := []float64{0, 0.05}
	for _, n := range []int{22, 100, 330} {
		for _, loss := range losses {
			if slices.Contains(parts, "nodes") && n >= least && n <= most {
				add(coreSteps(n, loss, steps))
			}
		}
	}
	for _, n := range []int{330, 1000} {
		for _, loss := range losses {
			if slices.Contains(parts, "light") && n >= least && n <= most {
				add(lightSteps(n, false, loss, steps))
			}
			if slices.Contains(parts, "tiers") && n >= least && n <= most {
				add(lightSteps(n, true, loss, steps))
			}
		}
	}
	return figures, err
}
