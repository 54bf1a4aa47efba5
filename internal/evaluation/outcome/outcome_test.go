package outcome

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"subak/internal/contention"
	"subak/internal/evaluation"
	"subak/internal/evaluation/through"
	"subak/testbed/topology"
)

// played is a short evaluation of some scenarios by some methods.
func played(t *testing.T, scenarios, methods []string) *Report {
	t.Helper()
	top := topology.Cities22()
	p := &evaluation.Plan{Lags: []int{1, 0}, Seeds: []uint64{1, 2}, Workers: 2}
	for _, name := range scenarios {
		s, err := contention.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		p.Cases = append(p.Cases, evaluation.Case{Name: name, Title: s.Title, Spec: evaluation.ContendedSpec(top, 1000), Open: func(seed uint64) (evaluation.Trace, error) {
			return evaluation.Contended(&s, top, 1000, seed, 60)
		}})
	}
	var err error
	if p.Methods, err = evaluation.Find(methods); err != nil {
		t.Fatal(err)
	}
	rows, err := evaluation.Run(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	r := New(p, rows)
	r.About.Budget = "1000/s"
	return r
}

func TestEveryFormSaysTheSameFigures(t *testing.T) {
	r := played(t, []string{"S2", "S6"}, []string{"paper", "pool-first"})
	var table, markdown, text, rows bytes.Buffer
	for _, err := range []error{r.Table(&table), r.Markdown(&markdown), r.JSON(&text), r.CSV(&rows)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	var back Report
	if err := json.Unmarshal(text.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(*r, back, cmpopts.IgnoreUnexported(Report{})); diff != "" {
		t.Errorf("JSON read again (-had +read):\n%s", diff)
	}
	records, err := csv.NewReader(&rows).ReadAll()
	if err != nil || len(records) != 1+len(r.Lines)*8 {
		t.Errorf("%d records of CSV, %v, want a head and 8 for each of %d lines", len(records), err, len(r.Lines))
	}
	for _, row := range r.grid(high, 1) {
		if !strings.Contains(markdown.String(), "| "+strings.Join(row, " | ")+" |") {
			t.Errorf("Markdown lacks the row %v", row)
		}
		for _, cell := range row {
			if !strings.Contains(table.String(), cell) {
				t.Errorf("the table lacks %q", cell)
			}
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestAReportThatCannotBeWrittenSaysSo(t *testing.T) {
	r := played(t, []string{"S2"}, []string{"paper"})
	a := NewAblation(r, &Report{})
	for name, err := range map[string]error{"table": r.Table(full{}), "markdown": r.Markdown(full{}), "json": r.JSON(full{}), "csv": r.CSV(full{}), "ablation": a.Table(full{})} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// claimed is the claim whose words contain some.
func claimed(t *testing.T, r *Report, words string) Claim {
	t.Helper()
	for _, c := range r.Claims {
		if strings.Contains(c.Words, words) {
			return c
		}
	}
	t.Fatalf("no claim about %q", words)
	return Claim{}
}

// drawn is a report of S1 to S8 in which every method serves the same.
func drawn() *Report {
	r := &Report{About: About{Lags: []int{1, 0}}}
	for _, m := range []string{"paper", "no-borrowing", "lp1", "lp2", "pool-first", "insurance10", "revocable", "protect50"} {
		r.Ways = append(r.Ways, Name{m, m})
	}
	for _, name := range contention.Names() {
		r.Cases = append(r.Cases, Name{name, name})
		for _, m := range r.Ways {
			for lag := range 2 {
				r.Lines = append(r.Lines, Line{Case: name, Method: m.Name, Lag: lag, Classes: make([]evaluation.Figures, 2)})
			}
		}
	}
	return r
}

func (r *Report) set(method string, lag int, high, legit float64) {
	for _, c := range r.Cases {
		l := r.Find(c.Name, method, lag)
		l.Classes[0].Mean, l.Legit.Mean = high, legit
	}
}

func TestEveryClaimCanFail(t *testing.T) {
	good := func() *Report {
		r := drawn()
		for name, want := range reference() {
			r.Find(name, "paper", 1).Classes[0].Mean = want
			r.Find(name, "no-borrowing", 1).Classes[0].Mean = want
			r.Find(name, "lp1", 1).Classes[0].Mean = want
		}
		r.Find("S6", "no-borrowing", 1).Classes[0].Mean -= 1.5
		r.set("lp2", 1, 50, 50)
		r.set("pool-first", 1, 85, 56)
		r.set("insurance10", 1, 86, 55)
		r.set("revocable", 1, 86, 57)
		r.set("protect50", 1, 95, 50)
		for _, c := range r.Cases {
			r.Protocol = append(r.Protocol, through.Row{Case: c.Name, High: evaluation.Figures{Mean: 80}, Ideal: evaluation.Figures{Mean: 81}, PeakPPM: 1_000_000})
		}
		return r
	}
	r := good()
	r.Judge(nil)
	if len(r.Claims) != 13 || r.Broken() != 0 {
		t.Fatalf("%d of %d claims broken: %+v", r.Broken(), len(r.Claims), r.Claims)
	}
	for _, c := range []struct {
		words string
		spoil func(*Report)
	}{
		{"never over-committed, by any method", func(r *Report) { r.Lines[3].Over = 0.000001 }},
		{"nothing idle", func(r *Report) { r.Find("S4", "paper", 0).Unplaced.Most = 0.01 }},
		{"66 to 93 %", func(r *Report) { r.Find("S5", "paper", 1).Classes[0].Mean = 65 }},
		{"within a point of the reference", func(r *Report) { r.Find("S7", "paper", 1).Classes[0].Mean += 1.1 }},
		{"single-class LP", func(r *Report) { r.set("lp1", 1, 90, 0) }},
		{"two-class LP's centre", func(r *Report) { r.set("lp2", 1, 90, 0) }},
		{"under bursts", func(r *Report) { r.Find("S6", "no-borrowing", 1).Classes[0].Mean += 1 }},
		{"stationary", func(r *Report) { r.Find("S2", "no-borrowing", 1).Classes[0].Mean += 1 }},
		{"pool-first serves", func(r *Report) { r.set("pool-first", 1, 70, 56) }},
		{"reservations untouched", func(r *Report) { r.set("revocable", 1, 85.8, 57) }},
		{"reservations untouched", func(r *Report) { r.set("revocable", 1, 90, 54.4) }},
		{"with preemption", func(r *Report) { r.set("protect50", 1, 95, 48.9) }},
		{"lag-1 ideal", func(r *Report) {
			for i := range r.Protocol {
				r.Protocol[i].High.Mean = 78.9
			}
		}},
		{"at any event", func(r *Report) { r.Protocol[2].PeakPPM++ }},
		{"at any event", func(r *Report) { r.Protocol[2].Objection = "seen" }},
	} {
		r := good()
		c.spoil(r)
		r.Judge(nil)
		if claimed(t, r, c.words).Kept {
			t.Errorf("%q is kept whatever the figures", c.words)
		}
	}
}

func TestADifferenceToTheReferenceCountsAsExplainedWhenItsCauseMakesItUp(t *testing.T) {
	r := drawn()
	for name, want := range reference() {
		r.Find(name, "paper", 1).Classes[0].Mean = want
	}
	r.Find("S7", "paper", 1).Classes[0].Mean += 2
	shifted := *r.Find("S7", "paper", 1)
	shifted.Classes = []evaluation.Figures{{Mean: reference()["S7"] + 0.4}}
	r.Judge(&shifted)
	if c := claimed(t, r, "reference"); !c.Kept || !strings.Contains(c.Note, "half day") {
		t.Errorf("%+v, want it explained", c)
	}
	r.Claims = nil
	shifted.Classes[0].Mean += 1
	r.Judge(&shifted)
	if claimed(t, r, "reference").Kept {
		t.Error("explained by what does not explain it")
	}
}

func TestThePageHoldsEveryFigureAndNeedsNothingElse(t *testing.T) {
	r := played(t, []string{"S2", "S6"}, []string{"paper", "pool-first"})
	r.Cases[0].Name, r.Lines[0].Case = `<b>"x"&y`, `<b>"x"&y` // a user's own name
	var page bytes.Buffer
	if err := r.HTML(&page); err != nil {
		t.Fatal(err)
	}
	text := page.String()
	for _, cell := range r.grid(high, 1)[2] {
		if !strings.Contains(text, ">"+cell) {
			t.Errorf("the page lacks %q", cell)
		}
	}
	if strings.Contains(text, "<b>") || strings.Contains(text, "http-equiv") || strings.Contains(text, "src=") || strings.Contains(text, "<link") || strings.Count(text, "<svg") != 2 {
		t.Error("the page holds a name as markup, wants something from elsewhere, or lacks a plot")
	}
	if err := r.HTML(full{}); err == nil {
		t.Error("a page that cannot be written says nothing")
	}
}
