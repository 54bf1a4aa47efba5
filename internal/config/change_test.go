package config

import (
	"strings"
	"testing"
)

const someBudgets = `
budgets:
  - name: origin
    limit: 100/s
    classes:
      - {name: high, reserve: 60%}
      - {name: low, reserve: 40%}
`

func TestAChangeFileMayBeAWholeConfigurationOrPartsOfOne(t *testing.T) {
	roster := []Node{{Name: "ams", Weight: 2}, {Name: "fra", Weight: 1}}
	nodes := "\nnodes: [{name: ams}, {name: fra}, {name: lon, weight: 3}]\n"
	for name, tc := range map[string]struct {
		text           string
		nodes, budgets int
	}{
		"budgets alone":       {someBudgets, 2, 1},
		"nodes alone":         {nodes, 3, 0},
		"both":                {nodes + someBudgets, 3, 1},
		"with a cluster name": {"cluster: {name: edge}\n" + someBudgets, 2, 1},
		"the whole":           {Example(), 0, 0},
	} {
		c, err := ParseChange("f.yaml", []byte(tc.text), roster)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if tc.nodes > 0 && (len(c.Nodes) != tc.nodes || len(c.Budgets) != tc.budgets || len(c.Specs()) != tc.budgets) {
			t.Errorf("%s: %d nodes, %d budgets; want %d, %d", name, len(c.Nodes), len(c.Budgets), tc.nodes, tc.budgets)
		}
	}
}

func TestAChangeFileWithFaultsNamesFieldAndMend(t *testing.T) {
	roster := []Node{{Name: "ams", Weight: 2}, {Name: "fra", Weight: 1}}
	for name, tc := range map[string]struct{ text, want string }{
		"nothing to change":     {"log: {level: info}", "neither nodes nor budgets"},
		"no budgets left":       {"budgets: []", "lists no budget"},
		"no nodes left":         {"nodes: []", "lists no node"},
		"a wrong sum":           {strings.Replace(someBudgets, "40%", "41%", 1), "add up to 101%"},
		"a cell of a stranger":  {someBudgets + "    cells: [{node: lon, class: low, cap: 1/s}]\n", `no node "lon"`},
		"a field of no meaning": {someBudgets + "budgts: []\n", "unknown field"},
		"no YAML":               {"budgets: [", "no valid YAML"},
		"empty":                 {"", "empty"},
		"a name of no kind":     {"cluster: {name: 'a b'}" + someBudgets, "cluster.name"},
	} {
		_, err := ParseChange("f.yaml", []byte(tc.text), roster)
		if err == nil {
			t.Errorf("%s: accepted", name)
			continue
		}
		if got := err.Error(); !strings.Contains(got, tc.want) || !strings.Contains(got, "f.yaml:") || !strings.Contains(got, "; mend: ") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func FuzzParseChange(f *testing.F) {
	f.Add([]byte(someBudgets))
	f.Add([]byte("nodes: [{name: a}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := ParseChange("f.yaml", data, []Node{{Name: "ams", Weight: 1}})
		if err != nil {
			return
		}
		for i, s := range c.Specs() {
			if s.Validate() != nil {
				t.Fatalf("budget %d is accepted and invalid", i)
			}
		}
	})
}

func TestAChangeWithoutANameIsCalledTheChange(t *testing.T) {
	for _, text := range []string{"", "budgets: []", "log: {}", "budgets: ["} {
		if _, err := ParseChange("", []byte(text), nil); err == nil || !strings.HasPrefix(err.Error(), "the change:") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
