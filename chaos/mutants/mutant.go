package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// The files that mutants patch.
const (
	ledgerMerge    = "allocator/ledger/merge.go"
	ledgerBook     = "allocator/ledger/book.go"
	ledgerLedger   = "allocator/ledger/ledger.go"
	ledgerPublish  = "allocator/ledger/publish.go"
	ledgerSteps    = "allocator/ledger/steps.go"
	ledgerSettle   = "allocator/ledger/settle.go"
	ledgerLearn    = "allocator/ledger/learn.go"
	ledgerFallback = "allocator/ledger/fallback.go"
	ledgerProof    = "allocator/ledger/proof.go"
	ledgerEpochs   = "allocator/ledger/epochs.go"
	scheduleEpochs = "chaos/schedule/epochs.go"
	scheduleShell  = "chaos/schedule/shell.go"
	scheduleApply  = "chaos/schedule/apply.go"
	corePass       = "internal/core/pass.go"
	coreInstall    = "internal/core/install.go"
	allocatorPlace = "allocator/place.go"
	allocatorShare = "allocator/share.go"
	enforceLimiter = "enforce/limiter.go"
	enforceSegment = "enforce/segment.go"
)

// Mutant is the product with one rule of the protocol switched off.
type Mutant struct {
	// Name as the issue tracker lists it; also the argument of -only.
	Name string
	// Rule that is gone, by its id in conservation.md or enforcement.md.
	Rule string
	// Breaks says in one line how the budget is overrun without the rule.
	Breaks string
	// Patches are applied together.
	Patches []Patch
	// Adversary that has to catch it.
	Adversary Adversary
}

// Patch replaces one piece of one source file. Find occurs there exactly once:
// a patch that fits nowhere, or twice, is an error, so that no change of the
// product turns a mutant into the product.
type Patch struct {
	File    string // relative to the module's root, slashes
	Find    string
	Replace string
}

// apply returns the patched text of each file, by File.
func (m *Mutant) apply(root string) (map[string]string, error) {
	texts := map[string]string{}
	for _, p := range m.Patches {
		text, ok := texts[p.File]
		if !ok {
			raw, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(p.File)))
			if err != nil {
				return nil, fmt.Errorf("mutant %q: %w", m.Name, err)
			}
			text = string(raw)
		}
		if n := strings.Count(text, p.Find); n != 1 {
			return nil, fmt.Errorf("mutant %q: %s has %d places, want 1, that read:\n%s", m.Name, p.File, n, p.Find)
		}
		texts[p.File] = strings.Replace(text, p.Find, p.Replace, 1)
	}
	return texts, nil
}

// Adversary is how the simulator is run to catch a mutant.
type Adversary struct {
	Kind    string // schedule or timed
	Mode    string
	Profile string // of the schedule adversary; empty, each seed chooses
	Faults  int    // of a seed of the timed adversary; 0 is the simulator's default
	Seeds   int    // at most so many
	// Twice runs every seed twice. The traces must agree: same seed, same run.
	Twice bool
}

// The kinds of adversary.
const (
	schedule = "schedule"
	timed    = "timed"
)

// String returns the adversary as the table shows it.
func (a Adversary) String() string {
	if a.Profile == "" {
		return a.Kind + ", " + a.Mode
	}
	return a.Kind + ", " + a.Mode + ", " + a.Profile
}

// args are the simulator's arguments for so many seeds.
func (a Adversary) args(seeds int) []string {
	args := []string{"--json", "--jobs", "1", "--adversary", a.Kind, "--mode", a.Mode, "--seeds", strconv.Itoa(seeds)}
	if a.Profile != "" {
		args = append(args, "--profile", a.Profile)
	}
	if a.Faults != 0 {
		args = append(args, "--faults", strconv.Itoa(a.Faults))
	}
	return args
}

// Mutants returns all mutants, in the order of the table.
func Mutants() []Mutant {
	return slices.Concat(loans(), epochs(), restarts(), dataPlane(), more())
}
