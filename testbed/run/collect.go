//go:build linux

package run

import (
	"cmp"
	"slices"
	"time"

	"subak/allocator"
	"subak/chaos/bound"
	"subak/testbed/evidence"
	"subak/testbed/load"
	"subak/testbed/origin"
	"subak/testbed/scenario"
)

// The spread that is allowed for is the p99.9 of the transit, within these bounds.
// A paused node holds requests for as long as it stands still; those are left out
// rather than all windows made longer for them. Where one in a hundred is slower
// the machine is slow, as while thirty nodes start at once, and the windows are
// made longer.
const (
	spreadLeast = time.Millisecond
	spreadMost  = 250 * time.Millisecond
	spreadSlow  = time.Second
)

// spreadOf is what is allowed for.
func spreadOf(transit load.Latency) time.Duration {
	most := spreadMost
	if transit.P99 > spreadMost {
		most = spreadSlow
	}
	return min(max(transit.P999, spreadLeast), most)
}

// overMost is how many windows that broke the bound are kept.
const overMost = 100

// outline is a run without anything measured.
func (r *session) outline() evidence.Run {
	s := &r.story
	out := evidence.Run{
		Scenario: s.Name, Title: s.Title, Why: s.Why, Group: s.Group, Variant: r.opt.Variant, Version: r.opt.Binaries.Version,
		Started: r.record.start, Seed: r.seed, Topology: s.Topology, MaxRTT: r.top.MaxRTT(),
		Nodes: r.top.Names(), Weights: r.top.Weights(), Classes: r.classNames(),
		Burst: s.Budget.Burst, Tick: s.Cluster.Tick, Term: s.Cluster.Term, Limit: int64(s.Limit()), Bin: scenario.Bin,
	}
	if out.Started.IsZero() {
		out.Started = time.Now()
	}
	for _, c := range s.Budget.Classes {
		out.Reserve = append(out.Reserve, ppm(c.Reserve))
	}
	for _, p := range s.Phases {
		out.Phases = append(out.Phases, evidence.Phase{Name: p.Name, From: out.Length, To: out.Length + p.Length})
		out.Length += p.Length
	}
	return out
}

// collect asks all witnesses once the load is over.
func (r *session) collect() evidence.Run {
	out := r.outline()
	out.Length = min(out.Length, r.record.now().Round(scenario.Bin)) // less only if it was broken off
	r.record.fill(&out)
	out.Load = r.gen.Report()
	out.Series = r.cluster.Series(r.record.start, scenario.Bin, int(out.Length/scenario.Bin))
	r.addLoad(&out)
	r.addLegit(&out)
	r.addOrigin(&out)
	wake := r.strain.latency()
	out.Network = r.network(wake)
	out.Busy = busy(&out, wake, r.origin.Report().Transit)
	return out
}

// addLoad puts what the generator saw into the series of the nodes.
func (r *session) addLoad(out *evidence.Run) {
	bins := int(out.Length / scenario.Bin)
	cut := func(all []uint32) []uint32 { return slices.Clone(all[:min(bins, len(all))]) }
	for i := range out.Series {
		s := &out.Series[i]
		s.Offered, s.Admitted, s.Refused, s.Errors = nil, nil, nil, nil
		for k := range out.Classes {
			st := &out.Load.Streams[k*r.nodes+i]
			offered := cut(st.Offered)
			for b := range offered {
				offered[b] -= st.Away[b]
			}
			s.Offered = append(s.Offered, offered)
			s.Admitted = append(s.Admitted, cut(st.Admitted))
			s.Refused = append(s.Refused, cut(st.Refused))
			s.Errors = append(s.Errors, cut(st.Failed))
		}
	}
}

// addLegit reckons the legitimate part of the last class of a trace.
func (r *session) addLegit(out *evidence.Run) {
	if r.story.Trace == nil {
		return
	}
	trace, err := r.story.Contention(r.top)
	if err != nil {
		r.record.event("trace", -1, failedKind, "%v", err)
		return
	}
	demand, legit := make([]allocator.Rate, len(out.Classes)*r.nodes), make([]allocator.Rate, r.nodes)
	per := int(r.story.Trace.Cycle / scenario.Bin)
	for n := range r.story.Trace.Cycles {
		trace.Cycle(r.story.Trace.First+n, demand)
		trace.Legit(r.story.Trace.First+n, legit)
		for i := range out.Series {
			low := len(out.Classes) - 1
			all := demand[low*r.nodes+i]
			if all == 0 {
				continue
			}
			part := float64(legit[i]) / float64(all)
			out.LegitOffered += part * sum(out.Series[i].Offered[low], n*per, (n+1)*per)
			out.LegitAdmitted += part * sum(out.Series[i].Admitted[low], n*per, (n+1)*per)
		}
	}
}

// sum adds up the bins from one up to another.
func sum(bins []uint32, from, to int) (n float64) {
	for _, v := range bins[min(from, len(bins)):min(to, len(bins))] {
		n += float64(v)
	}
	return n
}

// addOrigin judges the arrivals.
func (r *session) addOrigin(out *evidence.Run) {
	seen := r.origin.Report()
	zero := load.MonotonicOf(r.record.start)
	o := &out.Origin
	o.Arrivals = r.origin.Arrivals(zero, scenario.Bin, int(out.Length/scenario.Bin))[:len(out.Classes)]
	o.Windows = seen.Windows
	o.Spread = spreadOf(seen.Transit)
	claim := origin.Claim{
		Limit: out.Limit, Changes: limitChanges(out.Limit, out.Limits, zero), Burst: out.Burst,
		Slots: int64(r.nodes * len(out.Classes)), Spread: o.Spread, Over: overMost,
	}
	j, err := r.origin.Judge(claim)
	if err != nil {
		r.record.event("origin", -1, failedKind, "%v", err)
		r.record.fill(out)
		return
	}
	for _, n := range j.Slower {
		o.Slower += n
	}
	o.Peaks = j.Peaks[min(1, len(j.Peaks)):] // the first is the time before
	o.Over = overs(j.Bound.Over, zero)
	o.Bound = j.Bound
	o.Bound.Over = nil
}

// overs are the windows that broke the bound, the longest first.
func overs(all []bound.Result, zero int64) (out []evidence.Over) {
	for _, o := range all {
		out = append(out, evidence.Over{At: time.Duration(o.Start - zero), Window: o.Window, Arrived: o.Peak, Allowed: o.Bound})
	}
	slices.SortStableFunc(out, func(a, b evidence.Over) int {
		return cmp.Or(cmp.Compare(b.Window, a.Window), cmp.Compare(a.At, b.At))
	})
	return out[:min(len(out), overMost)]
}

// network is what the emulated network did, and how the machine kept up.
func (r *session) network(wake load.Latency) map[string]int64 {
	s := r.net.Stats()
	return map[string]int64{
		"received": s.Received, "delivered": s.Delivered, "lost": s.Lost, "blocked": s.Blocked, "queue_drop": s.QueueDrop,
		"overflow": s.Overflow, "unroutable": s.Unroutable, "malformed": s.Malformed, "refused": s.Refused,
		"duplicated": s.Duplicated, "reordered": s.Reordered, "late": s.Late, "late_max_us": s.LateMax.Microseconds(),
		"host_drop": s.HostDrop, "wake_late_p99_us": wake.P99.Microseconds(), "wake_late_max_us": wake.Max.Microseconds(),
	}
}
