package node

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"subak/internal/web"
)

func TestMetricsAreWellFormedAndLabelledByConfiguredNamesOnly(t *testing.T) {
	t.Parallel()
	nodes := cluster(t)
	reg := nodes[0].node.reg
	problems, err := testutil.GatherAndLint(reg)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	configured := map[string][]string{
		"budget": {"origin"}, "class": {"high", "low"}, "peer": {"a", "b", "c"}, "node": {"a"}, "listener": {"edge"}, "cluster": {"test"},
	}
	seen := map[string]bool{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				allowed, ok := configured[l.GetName()]
				if !ok {
					continue
				}
				seen[l.GetName()] = true
				if !strings.Contains(" "+strings.Join(allowed, " ")+" ", " "+l.GetValue()+" ") {
					t.Errorf("%s has label %s=%q", f.GetName(), l.GetName(), l.GetValue())
				}
			}
		}
	}
	for name := range configured {
		if !seen[name] {
			t.Errorf("no series is labelled by %s: the test does not test", name)
		}
	}
}

func TestStatusIsJSONAndAddsUp(t *testing.T) {
	t.Parallel()
	nodes := cluster(t)
	for _, l := range nodes {
		s := l.status()
		if _, err := json.Marshal(s); err != nil {
			t.Fatal(err)
		}
		b := s.Budgets[0]
		if b.Limit != 3000 || len(b.Cells) != 3 || len(b.Classes) != 2 || len(s.Members) != 3 {
			t.Errorf("%s: limit %v, %d cells, %d classes, %d members", l.name, b.Limit, len(b.Cells), len(b.Classes), len(s.Members))
		}
		if sum := b.Classes[0].Reservation + b.Classes[1].Reservation; sum != b.Limit {
			t.Errorf("%s: reservations add up to %v", l.name, sum)
		}
	}
	eventually(t, "all views agree", func() bool {
		for _, l := range nodes {
			if l.status().Digests != 1 {
				return false
			}
		}
		return true
	})
}

func TestExplainAnswersForEveryCellAndRefusesUnknownNames(t *testing.T) {
	t.Parallel()
	nodes := cluster(t)
	n := nodes[0].node
	for _, class := range []string{"high", "low"} {
		for _, node := range []string{"", "a", "b", "c"} {
			e, err := n.Explain("origin", class, node)
			if err != nil || len(e.Words) == 0 || (e.Share >= 0) != (node == "" || node == "a") {
				t.Errorf("%s at %q: %+v, %v", class, node, e, err)
			}
		}
	}
	for _, q := range [][3]string{{"nope", "high", ""}, {"origin", "nope", ""}, {"origin", "high", "nope"}} {
		if _, err := n.Explain(q[0], q[1], q[2]); !errors.Is(err, web.ErrNotFound) {
			t.Errorf("explain %v: %v, want not found", q, err)
		}
	}
}

func TestFreezeShowsInTheStatusAndReadyStays(t *testing.T) {
	t.Parallel()
	a := begin(t, setup{name: "a", dir: t.TempDir()})
	eventually(t, "a is ready", func() bool { return a.status().Ready })
	if err := a.node.Freeze(true); err != nil {
		t.Fatal(err)
	}
	if s := a.status(); !s.Frozen || !s.Ready {
		t.Errorf("frozen %v, ready %v, want both", s.Frozen, s.Ready)
	}
	if err := a.node.Freeze(false); err != nil {
		t.Fatal(err)
	}
	if a.status().Frozen {
		t.Error("still frozen")
	}
}
