package scenario

import (
	"fmt"
	"regexp"
	"slices"
	"time"

	"subak/allocator"
	"subak/internal/config"
	"subak/internal/contention"
	"subak/internal/strict"
	"subak/testbed/evidence"
)

// What a scenario may ask for. The rates are what two cores carry beside the
// nodes, the generator, the origin and the network.
const (
	maxNodes      = 64
	maxLength     = 15 * time.Minute
	maxOfferedFew = 6000 // requests/s, up to fewNodes
	maxOffered    = 3500
	maxExtra      = 999
	maxCycles     = 5000
)

// checker judges a decoded scenario as a whole.
type checker struct {
	*strict.Report
	s       *Scenario
	names   []string // of all nodes; empty where the topology is wrong
	classes []string
}

func (c *checker) check() {
	c.story()
	c.topology()
	c.variants()
	c.budget()
	c.cluster()
	c.load()
	for i := range c.s.Faults {
		c.faultAt(i)
	}
	for i := range c.s.Claims {
		c.claimAt(i)
	}
	if len(c.s.Claims) == 0 {
		c.Fault("claims", "claims nothing", "write what is to be true, such as {kind: bound-kept}")
	}
	if c.OK() {
		c.effort()
	}
}

var (
	plainName = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	lesson    = regexp.MustCompile(`^O[1-9][0-9]?$`)
	commit    = regexp.MustCompile(`^[0-9a-f]{7,40}$`)
)

func (c *checker) story() {
	s := c.s
	c.name("name", s.Name)
	if s.Group != "" {
		c.name("group", s.Group)
	}
	if s.Group != "" && s.CI {
		c.Fault("ci", "is true in a group of its own", "remove one of the two")
	}
	if s.Title == "" {
		c.Fault("title", "is missing", "say in a line what happens")
	}
	if s.Why == "" {
		c.Fault("why", "is missing", "say what could go wrong here")
	}
	for i, l := range s.Lessons {
		if !lesson.MatchString(l) {
			c.Fault(fmt.Sprintf("lessons[%d]", i), fmt.Sprintf("%q is no lesson", l), "write such as O12")
		}
	}
	if s.Seed < 0 {
		c.Fault("seed", "is negative", "write a whole number from 0")
	}
}

func (c *checker) name(path, name string) {
	switch {
	case name == "":
		c.Fault(path, "is missing", "write a name of lower-case words joined by dashes")
	case !plainName.MatchString(name):
		c.Fault(path, fmt.Sprintf("%q has characters that names do not take", name), "use lower-case words joined by dashes")
	}
}

func (c *checker) topology() {
	s := c.s
	if s.Replicas < 1 {
		c.Fault("replicas", fmt.Sprintf("%d is not above 0", s.Replicas), "write 1")
		return
	}
	t, err := s.Net()
	switch {
	case err != nil:
		c.Fault("topology", err.Error(), "write five, cities22 or the path of a CSV of round trips")
		return
	case len(t.Places) > maxNodes:
		c.Fault("replicas", fmt.Sprintf("makes %d nodes", len(t.Places)), fmt.Sprintf("stay at or below %d", maxNodes))
		return
	}
	c.names = t.Names()
	c.nodes("absent", s.Absent)
	if len(s.Absent) >= len(c.names)-1 {
		c.Fault("absent", "leaves fewer than two nodes", "remove some")
	}
}

// nodes checks a list of names of nodes.
func (c *checker) nodes(path string, list []string) {
	if len(c.names) == 0 {
		return // the topology is wrong already
	}
	for i, n := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		c.known(at, "node", n, c.names)
		if j := slices.Index(list, n); j < i {
			c.Fault(at, fmt.Sprintf("%q is listed twice", n), "remove one")
		}
	}
}

// known checks a reference to something that has a name.
func (c *checker) known(path, what, name string, names []string) bool {
	if name != "" && slices.Contains(names, name) {
		return true
	}
	say := fmt.Sprintf("there is no %s %q", what, name)
	if name == "" {
		say = "is missing"
	}
	c.Fault(path, say, strict.Suggestion(name, names))
	return false
}

func (c *checker) phaseNames() []string {
	var names []string
	for _, p := range c.s.phases(evidence.Subak) {
		names = append(names, p.Name)
	}
	return names
}

func (c *checker) variants() {
	for i, v := range c.s.Variants {
		at := fmt.Sprintf("variants[%d]", i)
		if v.Name == "" {
			c.Fault(at+".name", "is missing", strict.Suggestion("", v.Name.Choices()))
		}
		for j := range i {
			if c.s.Variants[j].Name == v.Name {
				c.Fault(at+".name", fmt.Sprintf("%q is listed twice", v.Name), "remove one")
			}
		}
		for phase, length := range v.Lengths {
			path := strict.Join(at+".lengths", phase)
			if c.known(path, "phase", phase, c.phaseNames()) {
				c.length(path, length)
			}
		}
	}
}

// length checks a time that a series is cut into bins of.
func (c *checker) length(path string, d time.Duration) {
	switch {
	case d <= 0:
		c.Fault(path, "is missing or not above 0", "write a time such as 5s")
	case d%Bin != 0:
		c.Fault(path, fmt.Sprintf("%v is no whole number of %v", d, Bin), fmt.Sprintf("write %v", d.Round(Bin)))
	}
}

func (c *checker) budget() {
	b := &c.s.Budget
	c.limit("budget.limit", b.Limit)
	if b.Burst < 10*time.Millisecond || b.Burst > 10*time.Second {
		c.Fault("budget.burst", fmt.Sprintf("%v is not between 10ms and 10s", b.Burst), "write 500ms")
	}
	c.percent("budget.insurance", b.Insurance)
	if b.Extra < 0 || b.Extra > maxExtra {
		c.Fault("budget.extra", fmt.Sprintf("%d is not between 0 and %d", b.Extra, maxExtra), "write 0 for none")
	}
	c.split("budget.classes", b.Classes)
	for _, k := range b.Classes {
		c.classes = append(c.classes, k.Name)
	}
}

func (c *checker) limit(path string, a config.Amount) {
	switch {
	case a.Unit != config.Requests:
		c.Fault(path, fmt.Sprintf("%v is in bytes", a), "write requests, such as 2000/s")
	case a.Rate <= 0 || a.Rate%allocator.Unit != 0 || a.Rate > 100_000*allocator.Unit:
		c.Fault(path, fmt.Sprintf("%v is no whole number of requests/s up to 100000", a), "write such as 2000/s")
	}
}

func (c *checker) percent(path string, p config.Percent) {
	if p < 0 || p > config.Whole {
		c.Fault(path, fmt.Sprintf("%v is not between 0%% and 100%%", p), "write a percentage")
	}
}

// split checks that classes share out the whole limit.
func (c *checker) split(path string, classes []Class) {
	if len(classes) < 2 || len(classes) > 8 {
		c.Fault(path, fmt.Sprintf("lists %d classes", len(classes)), "list two to eight, highest priority first")
		return
	}
	var sum config.Percent
	for i, k := range classes {
		at := fmt.Sprintf("%s[%d]", path, i)
		c.name(at+".name", k.Name)
		c.percent(at+".reserve", k.Reserve)
		sum += k.Reserve
		for j := range i {
			if classes[j].Name == k.Name {
				c.Fault(at+".name", fmt.Sprintf("%q is listed twice", k.Name), "give each its own name")
			}
		}
	}
	if sum != config.Whole {
		c.Fault(path, fmt.Sprintf("the reservations add up to %v", sum), "make them add up to 100%")
	}
}

func (c *checker) cluster() {
	k := &c.s.Cluster
	if k.Tick < 20*time.Millisecond || k.Tick > 5*time.Second {
		c.Fault("cluster.tick", fmt.Sprintf("%v is not between 20ms and 5s", k.Tick), "write 200ms")
	} else if k.Term < 4*k.Tick || k.Term > time.Minute {
		c.Fault("cluster.term", fmt.Sprintf("%v is not between four ticks and 1m", k.Term), "write 3s")
	}
	c.nodes("cluster.nat", k.NAT)
	if o := k.Older; o != nil {
		if !commit.MatchString(o.Commit) {
			c.Fault("cluster.older.commit", fmt.Sprintf("%q is no commit", o.Commit), "write 7 to 40 hex digits")
		}
		c.nodes("cluster.older.nodes", o.Nodes)
		if len(o.Nodes) == 0 {
			c.Fault("cluster.older.nodes", "is missing", "list the nodes that run the older version")
		}
	}
	c.rule("links", c.s.Links)
}

func (c *checker) rule(path string, r Rule) {
	for field, p := range map[string]config.Percent{"loss": r.Loss, "duplicate": r.Duplicate, "reorder": r.Reorder} {
		c.percent(path+"."+field, p)
	}
	for field, d := range map[string]time.Duration{"delay": r.Delay, "jitter": r.Jitter} {
		if d < 0 || d > 10*time.Second {
			c.Fault(path+"."+field, fmt.Sprintf("%v is not between 0s and 10s", d), "write such as 20ms")
		}
	}
}

func (c *checker) load() {
	s := c.s
	c.loads("load", s.Load)
	if s.Trace != nil {
		c.trace(s.Trace)
		return
	}
	if len(s.Phases) == 0 {
		c.Fault("phases", "is missing", "write at least one, such as {name: calm, length: 10s}")
	}
	first := map[string]bool{}
	for i, p := range s.Phases {
		at := fmt.Sprintf("phases[%d]", i)
		if c.name(at+".name", p.Name); first[p.Name] {
			c.Fault(at+".name", fmt.Sprintf("%q is listed twice", p.Name), "give each its own name")
		}
		first[p.Name] = true
		c.length(at+".length", p.Length)
		c.loads(at+".load", p.Load)
	}
	if st := s.Steps; st != nil {
		c.steps(st)
	}
}

func (c *checker) loads(path string, loads []Load) {
	for i, l := range loads {
		at := fmt.Sprintf("%s[%d]", path, i)
		c.known(at+".class", "class", l.Class, c.classes)
		c.nodes(at+".nodes", l.Nodes)
		c.rate(at+".rate", l.Rate)
	}
}

func (c *checker) rate(path string, p config.Portion) {
	if p.Percent <= 0 && p.Amount.Rate <= 0 {
		c.Fault(path, "is missing or 0", "write such as 150% of the limit or 800/s")
	}
}

func (c *checker) trace(t *Trace) {
	s := c.s
	for field, given := range map[string]bool{"phases": len(s.Phases) > 0, "load": len(s.Load) > 0, "steps": s.Steps != nil} {
		if given {
			c.Fault(field, "stands beside a trace", "remove one of the two")
		}
	}
	if len(s.Budget.Classes) != contention.Classes {
		c.Fault("budget.classes", "a trace is of two classes", "leave them out")
	}
	c.known("trace.name", "contention scenario", t.Name, append(contention.Names(), Each))
	c.length("trace.cycle", t.Cycle)
	if t.Cycles < 1 || t.Cycles > maxCycles {
		c.Fault("trace.cycles", fmt.Sprintf("%d is not between 1 and %d", t.Cycles, maxCycles), "write 60")
	}
	if t.First < 0 || t.First > maxCycles {
		c.Fault("trace.first", fmt.Sprintf("%d is not between 0 and %d", t.First, maxCycles), "write 0")
	}
	if t.Hasten < 1 || t.Hasten > 50 {
		c.Fault("trace.hasten", fmt.Sprintf("%d is not between 1 and 50", t.Hasten), "write 1")
	}
}

func (c *checker) steps(st *Steps) {
	if st.Count < 1 || st.Count > 100 {
		c.Fault("steps.count", fmt.Sprintf("%d is not between 1 and 100", st.Count), "write 20")
	}
	c.length("steps.gap", st.Gap)
	c.length("steps.rest", st.Rest)
	if len(st.Nodes) == 0 {
		c.Fault("steps.nodes", "is missing", "list the nodes that take turns")
	}
	c.nodes("steps.nodes", st.Nodes)
	c.known("steps.class", "class", st.Class, c.classes)
	c.rate("steps.rate", st.Rate)
}

// effort refuses what two cores cannot carry, or nobody waits for.
func (c *checker) effort() {
	for _, v := range c.s.Variants {
		if l := c.s.Length(evidence.Variant(v.Name)); l > maxLength {
			c.Fault("phases", fmt.Sprintf("the run of %s takes %v", v.Name, l), fmt.Sprintf("stay at or below %v", maxLength))
		}
	}
	for _, one := range c.s.each() {
		c.rates(one)
	}
}

// rates refuses more load than two cores carry.
func (c *checker) rates(s Scenario) {
	story := s.For(evidence.Subak)
	rates, err := story.Rates()
	if err != nil {
		c.Fault("trace", err.Error(), "change what it names")
		return
	}
	most := maxOffered
	if len(c.names) <= fewNodes {
		most = maxOfferedFew
	}
	for p := range rates[0] {
		sum := 0.0
		for _, stream := range rates {
			sum += stream[p]
		}
		if sum > float64(most) {
			c.Fault("load", fmt.Sprintf("%.0f requests/s are offered at once (phase or cycle %d)", sum, p+1), fmt.Sprintf("offer at most %d/s over %d nodes: two cores carry everything", most, len(c.names)))
			return
		}
	}
}
