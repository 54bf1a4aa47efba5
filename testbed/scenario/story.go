package scenario

import (
	"fmt"
	"slices"
	"time"

	"subak/testbed/evidence"
)

// Bin is the resolution of a run's series; phases are whole numbers of bins.
const Bin = 100 * time.Millisecond

// tracePhase is the phase of a Trace.
const tracePhase = "trace"

// For is the story of one variant: phases have the variant's lengths; every
// fault has a name, its nodes or groups, an absolute At and, where its kind lasts, a
// For, and no In; steps and traces have become phases; every load names its
// nodes; and the claims are those about the variant. A Scenario from [Parse] is
// left as it is; For of what For returned is the same again.
func (s *Scenario) For(v evidence.Variant) Scenario {
	out := *s
	names := s.nodes()
	out.Phases = s.phases(v)
	for i := range out.Phases {
		out.Phases[i].Load = named(out.Phases[i].Load, s.present(names))
	}
	out.Load = named(s.Load, s.present(names))
	out.Variants = []Variant{{Name: VariantName(v)}}
	out.Faults = nil
	for _, f := range s.Faults {
		out.Faults = append(out.Faults, f.resolve(out.Phases, names, s.Absent))
	}
	out.Claims = nil
	for _, c := range s.Claims {
		if c.Of() == v {
			out.Claims = append(out.Claims, c)
		}
	}
	if out.Steps != nil {
		steps := *s.Steps
		steps.Count = 0 // they are phases now
		out.Steps = &steps
	}
	return out
}

// nodes are all nodes by name; none where the topology is unknown.
func (s *Scenario) nodes() []string {
	t, err := s.Net()
	if err != nil {
		return nil
	}
	return t.Names()
}

func (s *Scenario) present(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return slices.Contains(s.Absent, n) })
}

// phases are those of a variant, with the ones that steps and traces make.
func (s *Scenario) phases(v evidence.Variant) []Phase {
	all := slices.Clone(s.Phases)
	for _, variant := range s.Variants {
		for i := range all {
			if length, ok := variant.Lengths[all[i].Name]; ok && variant.Name == VariantName(v) {
				all[i].Length = length
			}
		}
	}
	if s.Trace != nil && len(all) == 0 {
		all = append(all, Phase{Name: tracePhase, Length: s.Trace.Cycle * time.Duration(s.Trace.Cycles)})
	}
	if st := s.Steps; st != nil && len(st.Nodes) > 0 {
		for i := range st.Count {
			if st.Rest > 0 {
				all = append(all, Phase{Name: fmt.Sprintf("rest %d", i+1), Length: st.Rest})
			}
			all = append(all, Phase{
				Name: StepPhase(i), Length: st.Gap,
				Load: []Load{{Class: st.Class, Nodes: []string{st.At(i)}, Rate: st.Rate, Spread: ByWeight}},
			})
		}
	}
	return all
}

// StepPhase is the name of the phase in which step i, from 0, is offered.
func StepPhase(i int) string { return fmt.Sprintf("step %d", i+1) }

// At is the node of step i, from 0.
func (st *Steps) At(i int) string { return st.Nodes[i%len(st.Nodes)] }

// named writes out the nodes of loads.
func named(loads []Load, present []string) []Load {
	loads = slices.Clone(loads)
	for i := range loads {
		if len(loads[i].Nodes) == 0 {
			loads[i].Nodes = present
		}
	}
	return loads
}

// resolve writes out a fault's times and nodes.
func (f Fault) resolve(phases []Phase, names, absent []string) Fault {
	last := f.In
	if f.Through != "" {
		last = f.Through
	}
	start, _ := between(phases, f.In)
	_, end := between(phases, last)
	f.At += start
	if f.For == 0 && f.Kind.lasts() {
		f.For = max(0, end-f.At)
	}
	f.In, f.Through = "", ""
	rest := slices.Clone(names)
	for _, g := range f.Groups {
		rest = slices.DeleteFunc(rest, func(n string) bool { return slices.Contains(g, n) })
	}
	if f.Kind == Partition && len(rest) > 0 {
		f.Groups = append(slices.Clone(f.Groups), rest)
	}
	standing := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return slices.Contains(absent, n) })
	if len(f.Nodes) == 0 && f.Kind.onNodes() {
		f.Nodes = standing
	}
	if f.Kind == Links {
		if len(f.From) == 0 {
			f.From = names
		}
		if len(f.To) == 0 {
			f.To = names
		}
	}
	return f
}

// between is when a phase begins and ends; the whole run for "".
func between(phases []Phase, name string) (start, end time.Duration) {
	for _, p := range phases {
		if end += p.Length; p.Name == name {
			return end - p.Length, end
		}
	}
	return 0, end
}

// End is when a resolved fault ends by plan; for kinds that are over at once, when
// it begins.
func (f *Fault) End() time.Duration { return f.At + f.For }

// FaultNamed finds a fault.
func (s *Scenario) FaultNamed(name string) (Fault, bool) {
	i := slices.IndexFunc(s.Faults, func(f Fault) bool { return f.Name == name })
	if i < 0 {
		return Fault{}, false
	}
	return s.Faults[i], true
}

// Length is how long the load of a variant lasts.
func (s *Scenario) Length(v evidence.Variant) (sum time.Duration) {
	for _, p := range s.phases(v) {
		sum += p.Length
	}
	return sum
}

// Times to set up a run and to take it down, as planned.
const (
	startFew  = 4 * time.Second // up to fewNodes
	startMany = 10 * time.Second
	fewNodes  = 8
)

// Planned is the time on the wall that all variants take, with the start of the
// nodes.
func (s *Scenario) Planned() (sum time.Duration) {
	start := startFew
	if len(s.nodes()) > fewNodes {
		start = startMany
	}
	for _, v := range s.Variants {
		sum += start + s.Length(evidence.Variant(v.Name))
	}
	return sum
}
