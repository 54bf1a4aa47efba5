package demo

import (
	"testing"

	"pgregory.net/rapid"

	"subak/allocator"
	"subak/internal/config"
	nodes "subak/testbed/cluster"
)

func testAddresses() []address {
	var at []address
	for _, n := range script(1000, 1).nodes {
		at = append(at, address{proxy: n.host + ":10001", admin: n.host + ":10002", gossip: n.host + ":10003"})
	}
	return at
}

// parse is the configuration of node i.
func parse(t *testing.T, i int) *config.Config {
	t.Helper()
	p := script(1000, 1)
	cfg := p.setup(testAddresses(), "127.0.0.1:9999")
	cfg.Binary, cfg.Dir = "subak", t.TempDir()
	c, err := nodes.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	text := c.File(i, "existing")
	parsed, err := config.Parse(p.nodes[i].name+".yaml", text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return parsed
}

func TestEveryNodeGetsAConfigurationThatIsValid(t *testing.T) {
	for i, n := range script(1000, 1).nodes {
		c := parse(t, i)
		if c.Node.Name != n.name || len(c.Nodes) != 5 || c.Gossip.Profile != "local" || c.Budgets[0].Insurance != 100_000 ||
			c.Gossip.Listen.String() != n.host+":10003" || c.Admin.Listen.String() != n.host+":10002" ||
			len(c.Gossip.Seeds) != 5 || c.Listeners[0].Listen.String() != n.host+":10001" || c.Listeners[0].TrustedHops != 1 {
			t.Errorf("%s: %+v", n.name, c)
		}
		if w := c.Warnings(); len(w) > 0 {
			t.Errorf("%s: warnings %v", n.name, w)
		}
	}
}

// idealAllocator is the demo's allocator, as its configuration makes it.
func idealAllocator(t *testing.T) (*allocator.Allocator, []string) {
	t.Helper()
	c := parse(t, 0)
	spec := c.Specs()[0]
	spec.InsurancePPM = 0 // who knows everything needs none
	a, err := allocator.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, n := range c.Roster() {
		order = append(order, n.Name)
	}
	return a, order
}

func TestTheIdealServesWhatTheAllocatorWouldAtNoLag(t *testing.T) {
	a, order := idealAllocator(t)
	rapid.Check(t, func(t *rapid.T) {
		p := script(1000, 1)
		p.burst = 1 // a nanosecond: nothing to carry over
		offered := newCells(2, 5)
		demand := make([]allocator.Rate, 10)
		for k := range offered {
			for i := range offered[k] {
				most := rapid.SampledFrom([]int{10, 100, 2000}).Draw(t, "most")
				offered[k][i] = float64(rapid.IntRange(0, most).Draw(t, "d"))
				for at, name := range order {
					if name == p.nodes[i].name {
						demand[k*5+at] = allocator.Rate(offered[k][i]) * allocator.Unit
					}
				}
			}
		}
		target := make([]allocator.Rate, 10)
		if err := a.Allocate(target, demand); err != nil {
			t.Fatal(err)
		}
		want := make([]float64, 2)
		for k := range want {
			for i := range 5 {
				want[k] += float64(min(target[k*5+i], demand[k*5+i])) / float64(allocator.Unit)
			}
		}
		if got := newReferences(&p).ideal(offered, 1); !near(got, want) {
			t.Fatalf("offered %v: ideal %v, the allocator %v", offered, got, want)
		}
	})
}
