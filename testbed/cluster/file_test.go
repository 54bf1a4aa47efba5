package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"subak/internal/config"
)

func parse(t *testing.T, c *Cluster, i int) *config.Config {
	t.Helper()
	text := c.File(i, "existing")
	cfg, err := config.Parse("test.yaml", text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return cfg
}

func TestEveryNodeGetsAValidFileThatSaysWhatWasAskedFor(t *testing.T) {
	in := testConfig(t, 4)
	in.Extra, in.Nodes[2].Advertise = 99, "n2.example:1234"
	in.Classes = []Class{{"a", 333_333}, {"b", 333_333}, {"c", 333_334}}
	c := newCluster(t, in)
	for i := range in.Nodes {
		f := parse(t, c, i)
		if f.Node.Name != in.Nodes[i].Name || f.Gossip.Seeds[2] != "n2.example:1234" || len(f.Gossip.Seeds) != 3 || len(f.Gossip.Keys) != 1 ||
			len(f.Budgets) != 100 || f.Budgets[99].Name != "idle-099" || f.Admin.Listen.String() != "unix:"+in.Dir+"/"+in.Nodes[i].Name+".sock" {
			t.Errorf("node %d: %+v", i, f)
		}
		if got := f.Specs()[0]; int64(got.Budget) != 1000e6 || int64(got.Classes[2].Reservation) != 333_334_000 || got.InsurancePPM != 100_000 {
			t.Errorf("node %d: budget %+v", i, got)
		}
		if want := []int{3, 3, 3, 4}[i]; len(f.Nodes) != want { // who is not in the roster lists itself too
			t.Errorf("node %d lists %d nodes, want %d", i, len(f.Nodes), want)
		}
		if w := f.Warnings(); len(w) > 0 {
			t.Errorf("node %d: warnings %q", i, w)
		}
	}
}

func TestTheNodesAgreeOnAllButTheirOwnPlace(t *testing.T) {
	in := testConfig(t, 4)
	c := newCluster(t, in)
	own := func(i int) string {
		s := string(c.File(i, "new"))
		n := in.Nodes[i]
		for _, part := range []string{
			"node: {name: " + n.Name + "}", filepath.Join(in.Dir, n.Name+".sock"), filepath.Join(in.Dir, n.Name) + `"`,
			fmt.Sprintf("listen: %q", n.Gossip), fmt.Sprintf("listen: %q", n.Proxy),
		} {
			if strings.Count(s, part) != 1 {
				t.Errorf("node %d has %q not once:\n%s", i, part, s)
			}
			s = strings.Replace(s, part, "OWN", 1)
		}
		return s
	}
	for i := range 3 {
		if own(i) != own(0) {
			t.Errorf("node %d differs in more than its place:\n%s\n\n%s", i, own(i), own(0))
		}
	}
}

func TestAnEditSaysWhatChangesAndNoMore(t *testing.T) {
	c := newCluster(t, testConfig(t, 4))
	var roster []config.Node
	for i := range 3 {
		roster = append(roster, config.Node{Name: fmt.Sprintf("n%d", i), Weight: int64(i + 1)})
	}
	for name, e := range map[string]Edit{
		"limit":  {Limit: 500},
		"split":  {Reserve: []int64{300_000, 700_000}},
		"roster": {Roster: []int{0, 3}},
		"all":    {Limit: 700, Reserve: []int64{500_000, 500_000}, Roster: []int{0, 1, 2, 3}, Revert: true, Canary: "n1"},
	} {
		r, next := c.request(e)
		f, err := config.ParseChange("edit.yaml", []byte(r.File), roster)
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, r.File)
		}
		if strings.Contains(r.File, "nodes:") != (e.Roster != nil) || strings.Contains(r.File, "budgets:") != (e.Limit+int64(len(e.Reserve)) > 0) ||
			r.Revert != e.Revert || r.Canary != e.Canary {
			t.Errorf("%s: request %+v", name, r)
		}
		if e.Roster != nil && len(f.Nodes) != len(e.Roster) {
			t.Errorf("%s: nodes %v", name, f.Nodes)
		}
		for _, s := range f.Specs() {
			if int64(s.Budget) != next.limit*1e6 || int64(s.Classes[0].Reservation) != next.limit*next.reserve[0] {
				t.Errorf("%s: budget %+v, want %+v", name, s, next)
			}
		}
	}
	r, next := c.request(Edit{Forget: []int{1}})
	if r.File != "" || len(r.Forget) != 1 || r.Forget[0] != "n1" || fmt.Sprint(next.roster) != "[0 2]" {
		t.Errorf("forget: %+v, leaves %v", r, next.roster)
	}
}

func TestFaultsOfTheSetupAreAllNamed(t *testing.T) {
	_, err := New(Config{Dir: "/no/such/place", Nodes: []Node{{Name: "a"}, {Name: "a", Admin: "unix:/" + strings.Repeat("x", 200)}}})
	for _, want := range []string{"/no/such/place", "two classes", `node "a"`, "shorter directory"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no word of %s in: %v", want, err)
		}
	}
	in := testConfig(t, 1)
	in.Nodes[0].Binary = os.DevNull
	c := newCluster(t, in)
	if err := c.Start(0); err == nil || !strings.Contains(err.Error(), "n0") || c.Alive(0) {
		t.Errorf("started a file that is no program: %v", err)
	}
}
