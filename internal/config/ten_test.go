package config

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"subak/internal/strict"
	"subak/internal/strict/stricttest"
)

// Each file in testdata marks its mistakes: a line that ends in
//
//	# FAULT field: part of what is wrong; part of the mend
//
// must give exactly that fault, and no other line may give one.
func TestEveryMistakeIsReportedOnceWithLineFieldAndMend(t *testing.T) {
	for _, name := range []string{"ten.yaml", "cluster.yaml", "budgets.yaml", "listeners.yaml", "doors.yaml", "envoy.yaml", "kinds.yaml"} {
		t.Run(name, func(t *testing.T) {
			file := "testdata/" + name
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			_, err = Load([]string{file}, nil, nil)
			faults, _ := errors.AsType[Faults](err)
			stricttest.Match(t, string(data), faults)
			for _, f := range faults {
				if want := fmt.Sprintf("%s:%d: %s: ", file, f.Line, f.Field); !strings.HasPrefix(f.Error(), want) || f.Mend == "" {
					t.Errorf("%q: want it to begin %q and end with a mend", f.Error(), want)
				}
			}
		})
	}
}

func TestTenMistakesGiveTenMessages(t *testing.T) {
	_, err := Load([]string{"testdata/ten.yaml"}, nil, nil)
	faults, _ := errors.AsType[Faults](err)
	if len(faults) != 10 || len(strings.Split(err.Error(), "\n")) != 10 {
		t.Errorf("got %d faults:\n%v", len(faults), err)
	}
}

func TestBrokenYAMLGivesLineAndColumn(t *testing.T) {
	cases := []struct{ name, text, want string }{
		{"bracket", "cluster: {name: edge\nnodes: []\n", "x.yaml:2:"},
		{"tab", "cluster:\n\tname: edge\n", "x.yaml:2:1: no valid YAML"},
		{"two colons", "cluster:\n  name: a: b\n", "x.yaml:2:"},
		{"empty", "", "x.yaml:1: the file is empty"},
		{"comment only", "# nothing\n", "x.yaml:1: the file is empty"},
		{"two documents", "a: 1\n---\nb: 2\n", "several YAML documents"},
		{"a list", "- a\n- b\n", "x.yaml:1: is a list where a set of fields belongs"},
		{"a text", "hello\n", "x.yaml:1: is a single value"},
		{"deep brackets", "nodes: " + strings.Repeat("[", 5000), "nested too deeply"},
		{"deep dashes", strings.Repeat("- ", 5000), "nested too deeply"},
		{"long line", "a: " + strings.Repeat("x", 20000), "longer than 16 KiB"},
		{"large", strings.Repeat(strings.Repeat("# x", 1000)+"\n", 400), "larger than 1 MiB"},
		{"many lines", strings.Repeat("# x\n", strict.MaxLines+1), "x.yaml:30001: the file has more than 30000 lines"},
		{"many keys", strings.Repeat("a:\n", strict.MaxFields+1), "x.yaml:1001: more than 1000 fields"},
		{"many keys in braces", "a: {" + strings.Repeat("a: 1,\n", strict.MaxFields+1), "x.yaml:1001: more than 1000 fields"},
		{"question mark", "? a\n: b\n", "question mark"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Parse("x.yaml", []byte(tc.text))
			faults, _ := errors.AsType[Faults](err)
			if len(faults) != 1 || !strings.Contains(faults[0].Error(), tc.want) {
				t.Errorf("got %v, want one fault with %q", err, tc.want)
			}
		})
	}
}

// Long lists of short mappings are no excess.
func TestTheBoundsLeaveRoomForALargeCluster(t *testing.T) {
	var text strings.Builder
	text.WriteString(strings.Replace(small, "nodes: [{name: ams}, {name: fra, weight: 2}]", "", 1))
	text.WriteString("nodes:\n  - {name: ams}\n")
	for i := range 3_000 {
		fmt.Fprintf(&text, "  - name: n%d\n    weight: %d\n", i, i+1)
	}
	if _, err := Parse("x", []byte(text.String())); err != nil {
		t.Error(err)
	}
	flow := strings.Replace(small, "nodes: [", "nodes: ["+strings.Repeat("{name: x, weight: 1},\n ", 2000), 1)
	if _, err := Parse("x", []byte(flow)); err == nil || strings.Contains(err.Error(), "fields in one place") {
		t.Errorf("got %v, want only the double names", err)
	}
}

func TestAliasesMayRepeatValuesButNotWithoutEnd(t *testing.T) {
	text := `
cluster: {name: edge}
gossip: {seeds: ["a:1"]}
nodes: [{name: a}, {name: b}]
budgets:
  - name: one
    limit: 5/s
    classes: &std [{name: hi, reserve: 50%}, {name: lo, reserve: 50%}]
  - {name: two, limit: 7/s, classes: *std}
`
	c, err := Parse("x.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c.Budgets[0].Classes, c.Budgets[1].Classes); diff != "" {
		t.Error(diff)
	}
	bomb := "budgets: [{classes: &c [" + strings.Repeat("{class: a},\n ", 300) + "]}]\n" +
		"listeners: [" + strings.Repeat("{rules: *c},\n ", 300) + "]\n"
	for _, tc := range []struct{ text, want string }{
		{bomb, "more than 100000 values"},
		{"nodes: &n [*n]", "a set of fields belongs"},
		{"nodes: *n", "alias *n stands for nothing"},
		{"cluster: {<<: {name: a}}", "merges another mapping"},
		{"cluster: &a *a", "no valid YAML"},
	} {
		if _, err := Parse("x.yaml", []byte(tc.text)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%.30s: want %q", tc.text, tc.want)
		}
	}
}
