package scenario

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"subak/internal/config"
	"subak/internal/strict"
	"subak/testbed/evidence"
)

// takes says which fields of the file a kind of fault or claim has, beside those
// that all have.
type takes struct {
	lasts  bool // faults: For
	needs  []string
	allows []string
}

func faultTakes(k FaultKind) takes {
	switch k {
	case Partition:
		return takes{lasts: true, needs: []string{"groups"}}
	case Cut, OneWay:
		return takes{lasts: true, needs: []string{"from", "to"}}
	case Isolate:
		return takes{lasts: true, allows: []string{"nodes"}}
	case Links:
		return takes{lasts: true, needs: []string{"rule"}, allows: []string{"from", "to"}}
	case Kill, Stop, Pause:
		return takes{lasts: true, needs: []string{"nodes"}}
	case Restart:
		return takes{allows: []string{"nodes", "signal", "every", "rest"}}
	case Slow:
		return takes{lasts: true, needs: []string{"nodes", "cpu"}}
	case Join, Leave, Forget:
		return takes{needs: []string{"nodes"}, allows: []string{"via"}}
	case Apply:
		return takes{needs: []string{"edit"}, allows: []string{"via"}}
	case Rotate:
		return takes{allows: []string{"every"}}
	case PoisonKind:
		return takes{needs: []string{"poison"}, allows: []string{"via"}}
	case Stream:
		return takes{lasts: true, needs: []string{"nodes", "class"}}
	case Doctor:
		return takes{allows: []string{"nodes"}}
	}
	return takes{}
}

// lasts reports whether the kind has a length.
func (k FaultKind) lasts() bool { return faultTakes(k).lasts }

// onNodes reports whether the kind befalls nodes.
func (k FaultKind) onNodes() bool {
	t := faultTakes(k)
	return slices.Contains(t.needs, "nodes") || slices.Contains(t.allows, "nodes")
}

// written lists the fields of a struct that differ from their defaults.
func written[T any](v T) []string {
	var plain T
	strict.SetDefaults(reflect.ValueOf(&plain).Elem())
	var names []string
	for f, field := range reflect.ValueOf(v).Fields() {
		if !reflect.DeepEqual(field.Interface(), reflect.ValueOf(plain).FieldByIndex(f.Index).Interface()) {
			names = append(names, strict.FieldName(f))
		}
	}
	return names
}

// fields checks that what is written is what the kind takes.
func (c *checker) fields(at, kind string, common []string, t takes, written []string) {
	for _, need := range t.needs {
		if !slices.Contains(written, need) {
			c.Fault(at+"."+need, "is missing", fmt.Sprintf("kind %s needs it", kind))
		}
	}
	for _, field := range written {
		if !slices.Contains(common, field) && !slices.Contains(t.needs, field) && !slices.Contains(t.allows, field) {
			c.Fault(at+"."+field, fmt.Sprintf("means nothing for kind %s", kind), "remove it")
		}
	}
}

func (c *checker) faultAt(i int) {
	at, f := fmt.Sprintf("faults[%d]", i), &c.s.Faults[i]
	if f.Kind == "" {
		c.Fault(at+".kind", "is missing", strict.Suggestion("", f.Kind.Choices()))
		return
	}
	c.name(at+".name", f.Name)
	for j := range i {
		if c.s.Faults[j].Name == f.Name {
			c.Fault(at+".name", fmt.Sprintf("%q is the name of faults[%d] too", f.Name, j), "give each its own name")
		}
	}
	common := []string{"name", "kind", "in", "at"}
	t := faultTakes(f.Kind)
	if t.lasts {
		common = append(common, "for", "through")
	}
	c.fields(at, string(f.Kind), common, t, written(*f))
	c.when(at, f)
	c.ends(at, f)
	if f.Via != "" {
		c.known(at+".via", "node", f.Via, c.names)
	}
	switch f.Kind {
	case Slow:
		c.percent(at+".cpu", f.CPU)
	case Join:
		for j, n := range f.Nodes {
			if !slices.Contains(c.s.Absent, n) {
				c.Fault(fmt.Sprintf("%s.nodes[%d]", at, j), fmt.Sprintf("%q is there from the start", n), "list it in absent")
			}
		}
	case Apply:
		c.edit(at+".edit", &f.Edit)
	case Stream:
		c.known(at+".class", "class", f.Class, c.classes)
	}
}

// when checks the times of a fault in every variant.
func (c *checker) when(at string, f *Fault) {
	if f.In != "" && !c.known(at+".in", "phase", f.In, c.phaseNames()) {
		return
	}
	if f.Through != "" && !c.known(at+".through", "phase", f.Through, c.phaseNames()) {
		return
	}
	if f.Through != "" && f.For != 0 {
		c.Fault(at+".through", "stands beside for", "keep one of the two")
	}
	for field, d := range map[string]time.Duration{"at": f.At, "for": f.For, "every": f.Every, "rest": f.Rest} {
		if d < 0 {
			c.Fault(at+"."+field, "is negative", "write a time such as 5s")
		}
	}
	for _, v := range c.s.Variants {
		phases := c.s.phases(evidence.Variant(v.Name))
		length := c.s.Length(evidence.Variant(v.Name))
		r := f.resolve(phases, c.names, c.s.Absent)
		switch {
		case r.At >= length:
			c.Fault(at+".at", fmt.Sprintf("begins at %v, after the end of the run of %s at %v", r.At, v.Name, length), "begin earlier, or add a phase")
		case r.End() > length:
			c.Fault(at+".for", fmt.Sprintf("ends at %v, after the end of the run of %s at %v", r.End(), v.Name, length), "end earlier, or leave it out")
		case f.Kind.lasts() && r.For <= 0:
			c.Fault(at+".at", fmt.Sprintf("leaves nothing of its phase in the run of %s", v.Name), "begin earlier, or say for how long")
		}
	}
}

// ends checks where a fault happens.
func (c *checker) ends(at string, f *Fault) {
	c.nodes(at+".nodes", f.Nodes)
	c.nodes(at+".from", f.From)
	c.nodes(at+".to", f.To)
	c.rule(at+".rule", f.Rule)
	side := map[string]int{}
	for g, group := range f.Groups {
		path := fmt.Sprintf("%s.groups[%d]", at, g)
		c.nodes(path, group)
		for j, n := range group {
			if other, again := side[n]; again && other != g {
				c.Fault(fmt.Sprintf("%s[%d]", path, j), fmt.Sprintf("%q is in groups[%d] too", n, other), "put each node on one side")
			}
			side[n] = g
		}
	}
	if f.Kind == Partition && len(f.Groups) == 1 && len(c.names) > 0 && len(side) == len(c.names) {
		c.Fault(at+".groups", "has one side only", "leave some nodes out of it; they are the other side")
	}
}

func (c *checker) edit(path string, e *Edit) {
	if e.Limit.Rate == 0 && len(e.Classes) == 0 {
		c.Fault(path, "changes nothing", "write limit, classes or both")
		return
	}
	if e.Limit.Rate != 0 {
		c.limit(path+".limit", e.Limit)
	}
	if len(e.Classes) == 0 {
		return
	}
	c.split(path+".classes", e.Classes)
	for i, k := range e.Classes {
		c.known(fmt.Sprintf("%s.classes[%d].name", path, i), "class", k.Name, c.classes)
	}
	if len(e.Classes) != len(c.classes) {
		c.Fault(path+".classes", "lists other classes than the budget", "list the same ones")
	}
}

// claimTakes says what a kind of claim has beside its variant.
func claimTakes(k ClaimKind) takes {
	switch k {
	case BoundBroken:
		return takes{needs: []string{"least"}}
	case Served:
		return takes{needs: []string{"least"}, allows: []string{"class", "nodes", "phase"}}
	case Simulated:
		return takes{needs: []string{"class", "most"}}
	case Used:
		return takes{needs: []string{"fault"}, allows: []string{"least"}}
	case OwnBase:
		return takes{needs: []string{"fault", "nodes"}}
	case Unseen, Ready:
		return takes{needs: []string{"fault"}, allows: []string{"within"}}
	case Reconverged:
		return takes{needs: []string{"fault", "within"}, allows: []string{"least"}}
	case Live, Digest, InForce, LeaveSeen, Exit:
		return takes{needs: []string{"fault", "within"}}
	case Reaction:
		return takes{needs: []string{"within"}, allows: []string{"p95"}}
	case Silence:
		return takes{allows: []string{"within", "nodes"}}
	case Errors:
		return takes{allows: []string{"count", "phase", "nodes"}}
	case Steady:
		return takes{needs: []string{"phase", "most"}, allows: []string{"nodes"}}
	case Changes:
		return takes{needs: []string{"phase", "count"}, allows: []string{"nodes"}}
	case Latency:
		return takes{needs: []string{"phase", "within"}, allows: []string{"versus"}}
	case Reuse, Refused, Doctored:
		return takes{needs: []string{"fault"}}
	case CounterAtMost, CounterAtLeast:
		return takes{needs: []string{"counter"}, allows: []string{"count", "nodes"}}
	case Memory:
		return takes{needs: []string{"count"}}
	case CPU:
		return takes{needs: []string{"phase", "most"}}
	case Gossip:
		return takes{needs: []string{"phase"}, allows: []string{"count"}}
	case Idle:
		return takes{needs: []string{"phase", "most"}}
	}
	return takes{}
}

// about lists the kinds of fault that a kind of claim can be about; nil for all.
func about(k ClaimKind) []FaultKind {
	switch k {
	case Used:
		return []FaultKind{Partition, Isolate}
	case OwnBase, Unseen:
		return []FaultKind{Partition, Isolate, OneWay}
	case Ready:
		return []FaultKind{Kill, Stop, Restart, Join, Rotate}
	case InForce:
		return []FaultKind{Apply, Join, Leave, Forget}
	case LeaveSeen, Exit:
		return []FaultKind{Stop, Restart}
	case Reuse:
		return []FaultKind{Kill}
	case Refused:
		return []FaultKind{PoisonKind}
	case Doctored:
		return []FaultKind{Doctor}
	}
	return nil
}

func (c *checker) claimAt(i int) {
	at, k := fmt.Sprintf("claims[%d]", i), &c.s.Claims[i]
	if k.Kind == "" {
		c.Fault(at+".kind", "is missing", strict.Suggestion("", k.Kind.Choices()))
		return
	}
	c.fields(at, string(k.Kind), []string{"kind", "variant"}, claimTakes(k.Kind), written(*k))
	if !c.s.Lists(k.Of()) {
		c.Fault(at+".variant", fmt.Sprintf("%q is not run", k.Variant), "list it in variants")
	}
	for field, phase := range map[string]string{"phase": k.Phase, "versus": k.Versus} {
		if phase != "" {
			c.known(at+"."+field, "phase", phase, c.phaseNames())
		}
	}
	if k.Class != "" {
		c.known(at+".class", "class", k.Class, c.classes)
	}
	c.nodes(at+".nodes", k.Nodes)
	if k.Within < 0 || k.P95 < 0 || k.Count < 0 || k.Least < 0 || k.Most < 0 || k.Most > 10*config.Whole {
		c.Fault(at, "has a bound below 0 or above 1000%", "write one that can be kept and broken")
	}
	if k.Kind == Reaction && (c.s.Steps == nil || c.s.Steps.Count == 0) {
		c.Fault(at, "there are no steps to time", "write steps")
	}
	if k.Kind == Simulated && c.s.Trace == nil {
		c.Fault(at, "there is no trace to simulate", "write trace")
	}
	c.reference(at+".fault", k)
}

// reference checks the fault that a claim names.
func (c *checker) reference(path string, k *Claim) {
	if k.Fault == "" {
		return
	}
	var names []string
	for j := range c.s.Faults {
		names = append(names, c.s.Faults[j].Name)
	}
	if !c.known(path, "fault", k.Fault, names) {
		return
	}
	f, _ := c.s.FaultNamed(k.Fault)
	if kinds := about(k.Kind); kinds != nil && !slices.Contains(kinds, f.Kind) {
		c.Fault(path, fmt.Sprintf("%q is a %s, of which %s says nothing", k.Fault, f.Kind, k.Kind), "name another fault")
	}
}
