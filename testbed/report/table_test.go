package report

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"subak/testbed/evidence"
)

// golden compares got with testdata/name, which "go test . -args update" rewrites.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if slices.Contains(flag.Args(), "update") {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; got:\n%s", file, got)
	}
}

func TestTableIsAsOnFile(t *testing.T) {
	var b bytes.Buffer
	if err := Table(&b, campaign(5, 60*time.Second)); err != nil {
		t.Fatal(err)
	}
	golden(t, "table.txt", b.String())
}

func TestSummaryIsAsOnFile(t *testing.T) {
	about := someAbout
	about.Comparisons = someComparisons()
	about.Figures = []Figure{{Path: "partition.svg", Caption: "Arrivals at the origin, 11/11 partition"}}
	var b bytes.Buffer
	if err := Markdown(&b, campaign(5, 60*time.Second), about); err != nil {
		t.Fatal(err)
	}
	golden(t, "summary.md", b.String())
}

func TestHostileNamesMoveNoTerminalAndAddNoMarkup(t *testing.T) {
	for _, name := range hostile() {
		o, about := spoilt(name)
		var table, summary bytes.Buffer
		if err := Table(&table, []evidence.Outcome{o}); err != nil {
			t.Fatal(err)
		}
		if err := Markdown(&summary, []evidence.Outcome{o}, about); err != nil {
			t.Fatal(err)
		}
		for _, r := range table.String() + summary.String() {
			if r < ' ' && r != '\n' || r == 0x7f || r == 0x202e || r == 0x2066 {
				t.Errorf("%q: %U is written", name, r)
			}
		}
		if got := strings.Count(table.String(), "\n"); got != len(o.Verdicts)+4 {
			t.Errorf("%q: the table has %d lines", name, got)
		}
		for _, l := range strings.Split(summary.String(), "\n") {
			if strings.HasPrefix(l, "|") && strings.Count(strings.ReplaceAll(l, `\|`, ""), "|") < 6 {
				t.Errorf("%q: a row lost a cell: %s", name, l)
			}
			if plain := strings.ReplaceAll(l, `\<`, ""); !strings.HasPrefix(l, "* ") && !strings.HasPrefix(l, "![") && strings.Contains(plain, "<") {
				t.Errorf("%q: markup in %s", name, l)
			}
		}
	}
}

func TestTheProductStandsFirstAmongItsVariants(t *testing.T) {
	g := groups(campaign(2, 12*time.Second))
	var got []string
	for _, o := range g[0] {
		got = append(got, string(o.Run.Variant))
	}
	if want := []string{"subak", "static", "naive"}; !slices.Equal(got, want) || len(g) != 2 {
		t.Errorf("%d groups, the first %v, want %v", len(g), got, want)
	}
}
