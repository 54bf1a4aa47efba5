// Package judge says of one run of a scenario which claims were kept: for each
// one the figure that was measured and the bound it is held against.
//
// # Model
//
// [Judge] looks at nothing but the scenario and the evidence, so a run can be
// judged again at any time. What the design promises in figures (bases, what a
// side of a partition can reach, how long a restarted node may be without
// service) is computed from the scenario's weights, limit, term and delays.
// Whether the budget was kept is not judged by figures of this package: the
// witness at the origin compared exact integers, see [bound.Report].
//
// A claim that was kept because nothing happened proves nothing. So the first
// verdict is whether every fault did happen, and a claim whose premise was not
// met fails as "the fault did not bite".
//
// # Units
//
// Times are since the start of the load; bins are those of the run, and what is
// read from a series is known to a bin. Rates are requests/s.
//
// The package is pure and safe for concurrent use.
package judge

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"subak/testbed/evidence"
	"subak/testbed/scenario"
)

// Judge returns the verdicts on every claim about the run's variant: first that
// the faults happened, then the claims in the scenario's order.
func Judge(s *scenario.Scenario, r *evidence.Run) []evidence.Verdict {
	j := judge{s: s.For(r.Variant), r: r}
	if v := j.unusable(); v != nil {
		return v
	}
	all := j.happened()
	for i := range j.s.Claims {
		all = append(all, j.claim(&j.s.Claims[i])...)
	}
	return all
}

// judge is one run before its court.
type judge struct {
	s scenario.Scenario // the story of the run's variant
	r *evidence.Run
}

// unusable is the only verdict on evidence that is not whole.
func (j *judge) unusable() []evidence.Verdict {
	what := ""
	switch n := len(j.r.Nodes); {
	case j.r.Bin <= 0 || n == 0:
		what = "no nodes or no bins"
	case len(j.r.Weights) != n || len(j.r.Series) != n:
		what = fmt.Sprintf("%d nodes, %d weights, %d series", n, len(j.r.Weights), len(j.r.Series))
	case len(j.r.Load.Streams) != n*len(j.r.Classes):
		what = fmt.Sprintf("%d streams of %d nodes and %d classes", len(j.r.Load.Streams), n, len(j.r.Classes))
	default:
		return nil
	}
	return []evidence.Verdict{{Claim: "the run left its evidence", Measured: what, Bound: "all of it"}}
}

// claim judges one claim.
func (j *judge) claim(c *scenario.Claim) []evidence.Verdict {
	switch c.Kind {
	case scenario.BoundKept:
		return j.boundKept()
	case scenario.BoundBroken:
		return j.boundBroken(c)
	case scenario.Served:
		return one(j.served(c))
	case scenario.Simulated:
		return one(j.simulated(c))
	case scenario.Idle:
		return one(j.idle(c))
	case scenario.Silence:
		return one(j.silence(c))
	case scenario.Errors:
		return one(j.errors(c))
	case scenario.Used:
		return j.used(c)
	case scenario.OwnBase:
		return one(j.ownBase(c))
	case scenario.Unseen:
		return one(j.unseen(c))
	case scenario.Reconverged, scenario.Live, scenario.Digest:
		return one(j.healed(c))
	case scenario.Reaction:
		return j.reaction(c)
	case scenario.Steady:
		return one(j.steady(c))
	case scenario.Changes:
		return one(j.changes(c))
	case scenario.Latency:
		return one(j.latency(c))
	case scenario.Ready:
		return one(j.ready(c))
	case scenario.InForce:
		return one(j.inForce(c))
	case scenario.LeaveSeen:
		return one(j.leaveSeen(c))
	case scenario.Exit:
		return one(j.exit(c))
	case scenario.Reuse:
		return j.reuse(c)
	case scenario.Refused:
		return j.refused(c)
	case scenario.Doctored:
		return one(j.doctored(c))
	case scenario.CounterAtMost, scenario.CounterAtLeast:
		return one(j.counter(c))
	case scenario.Memory:
		return one(j.memory(c))
	case scenario.CPU:
		return one(j.cpu(c))
	case scenario.Gossip:
		return one(j.gossip(c))
	}
	return one(evidence.Verdict{Claim: string(c.Kind), Measured: "this kind of claim is not known", Bound: "a kind that is"})
}

func one(v evidence.Verdict) []evidence.Verdict { return []evidence.Verdict{v} }

// noBite is the verdict on a claim whose premise was not met.
func noBite(claim, bound, format string, args ...any) evidence.Verdict {
	return evidence.Verdict{Claim: claim, Measured: "the fault did not bite: " + fmt.Sprintf(format, args...), Bound: bound}
}

// span is a range of bins, to excluded.
type span struct{ from, to int }

func (s span) len() int { return max(0, s.to-s.from) }

// bins is how many bins the run has.
func (j *judge) bins() int { return j.bin(j.r.Length + j.r.Bin - 1) }

// bin is the bin of an instant; it may lie outside the run.
func (j *judge) bin(at time.Duration) int { return int(at / j.r.Bin) }

// since is the time from an instant to the start of bin b, 0 where b began before.
func (j *judge) since(at time.Duration, b int) time.Duration {
	return max(0, time.Duration(b)*j.r.Bin-at)
}

// spanOf is the whole bins between two instants.
func (j *judge) spanOf(from, to time.Duration) span {
	return span{min(j.bin(from+j.r.Bin-1), j.bins()), min(j.bin(to), j.bins())}
}

// phase is a phase's span; the whole run for "".
func (j *judge) phase(name string) span {
	for _, p := range j.r.Phases {
		if p.Name == name {
			return j.spanOf(p.From, p.To)
		}
	}
	if name == "" {
		return span{0, j.bins()}
	}
	return span{}
}

// during is a phase in words, with a space before it.
func during(phase string) string {
	if phase == "" {
		return ""
	}
	return " during " + phase
}

// band is the band of a fault.
func (j *judge) band(fault string) (evidence.Band, bool) {
	i := slices.IndexFunc(j.r.Bands, func(b evidence.Band) bool { return b.Label == fault })
	if i < 0 {
		return evidence.Band{}, false
	}
	return j.r.Bands[i], true
}

// events are those of a kind that a fault left, by time.
func (j *judge) events(fault string, kinds ...string) (all []evidence.Event) {
	for _, e := range j.r.Events {
		word, _, _ := strings.Cut(e.Text, " ")
		if slices.Contains(kinds, e.Kind) && (word == fault || fault == "") {
			all = append(all, e)
		}
	}
	slices.SortStableFunc(all, func(a, b evidence.Event) int { return int(a.At - b.At) })
	return all
}

// nodes are the positions of names; of all nodes for none.
func (j *judge) nodes(names []string) (all []int) {
	for i, n := range j.r.Nodes {
		if len(names) == 0 || slices.Contains(names, n) {
			all = append(all, i)
		}
	}
	return all
}

// classes are the positions of one class, or of all for "".
func (j *judge) classes(name string) (all []int) {
	for k, n := range j.r.Classes {
		if name == "" || n == name {
			all = append(all, k)
		}
	}
	return all
}

// up reports whether a node answered in a bin.
func (j *judge) up(i, b int) bool { return at(j.r.Series[i].Up, b) == 1 }

// countUp counts the nodes that are up in a bin.
func (j *judge) countUp(b int) (n int) {
	for i := range j.r.Nodes {
		if j.up(i, b) {
			n++
		}
	}
	return n
}

// at is one value of a series; 0 beyond its ends.
func at[T uint8 | uint32 | int | int64 | uint64 | float64](s []T, b int) (zero T) {
	if b < 0 || b >= len(s) {
		return zero
	}
	return s[b]
}

// total sums a series by class over a span.
func total(s [][]uint32, classes []int, w span) (sum float64) {
	for _, k := range classes {
		if k >= len(s) {
			continue
		}
		for b := w.from; b < w.to; b++ {
			sum += float64(at(s[k], b))
		}
	}
	return sum
}

// seconds is the length of a span.
func (j *judge) seconds(w span) float64 { return (time.Duration(w.len()) * j.r.Bin).Seconds() }
