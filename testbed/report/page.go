package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"subak/testbed/evidence"
)

//go:embed page.html
var pageHTML string

// page is what the template shows. Only SVG and CSS made here are typed as such;
// everything else is text and escaped by the template.
type page struct {
	Verdict, Lost, Busy string
	OK                  bool
	Facts               []fact
	Sections            []section
	Contention          []contention

	Schemes, Rules, Font template.CSS
}

type fact struct {
	Name, Text string
	Code       bool
}

// section is one scenario with all its variants.
type section struct {
	ID, Name, Title, Why, Tally string

	Facts    []fact
	Busy     []string
	Claims   []claim
	Says     []string
	BuyHeads []cell
	Buys     [][]string
	Figures  []figure
	Reaction []figure
	Runs     []runPart
}

type claim struct {
	evidence.Verdict
	Variant string
}

type cell struct {
	Text   string
	Number bool
}

type figure struct {
	SVG     template.HTML
	Caption string
}

// runPart is what is shown of each variant.
type runPart struct {
	Suffix     string
	Open       bool // its places are shown without a click
	Legend     string
	Places     []card
	Dots       []titled
	Windows    []line
	Phases     []line
	Slower     string
	Network    string
	Events     []eventLine
	EventCount int
	Left       int
}

type card struct {
	Name, Detail string
	SVG          template.HTML
}

type titled struct {
	Title string
	SVG   template.HTML
}

type line struct {
	Name  string
	Cells []string
	Lost  bool
}

// HTML writes the page.
func HTML(w io.Writer, outcomes []evidence.Outcome, about About) error {
	t, err := template.New("page").Parse(pageHTML)
	if err != nil {
		return fmt.Errorf("report: template: %w", err)
	}
	s := newSheet()
	p, err := s.page(outcomes, about)
	if err != nil {
		return err
	}
	if err := t.Execute(w, p); err != nil {
		return fmt.Errorf("report: write page: %w", err)
	}
	return nil
}

func (s *sheet) page(outcomes []evidence.Outcome, about About) (page, error) {
	sum := tally(outcomes)
	p := page{Verdict: sum.words(), Lost: sum.lost(), Busy: busy(outcomes), OK: sum.ok(), Facts: aboutFacts(outcomes, about)}
	for i, g := range groups(outcomes) {
		sec, err := s.section(g, i)
		if err != nil {
			return p, fmt.Errorf("report: scenario %q: %w", g[0].Run.Scenario, err)
		}
		p.Sections = append(p.Sections, sec)
	}
	var err error
	if p.Contention, err = s.contention(about.Comparisons); err != nil {
		return p, err
	}
	p.Schemes, p.Font = template.CSS(schemes()), template.CSS(fontFamily)
	p.Rules = template.CSS(s.rules.String())
	return p, nil
}

func aboutFacts(outcomes []evidence.Outcome, about About) []fact {
	var out []fact
	add := func(name, text string, code bool) {
		if text != "" {
			out = append(out, fact{name, text, code})
		}
	}
	add("Version", version(outcomes, about), true)
	add("Date", date(outcomes, about), false)
	add("Machine", clean(about.Machine, 200), false)
	add("Command", clean(about.Command, 300), true)
	return out
}

// version is what About says, or what the runs say.
func version(outcomes []evidence.Outcome, about About) string {
	if about.Version != "" {
		return clean(about.Version, 80)
	}
	var all []string
	for i := range outcomes {
		if v := clean(outcomes[i].Run.Version, 80); v != "" && !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	return strings.Join(all, ", ")
}

// date is what About says, or when the first run began.
func date(outcomes []evidence.Outcome, about About) string {
	at := about.Date
	for i := range outcomes {
		if s := outcomes[i].Run.Started; about.Date.IsZero() && !s.IsZero() && (at.IsZero() || s.Before(at)) {
			at = s
		}
	}
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format("2 January 2006, 15:04 MST")
}

// groups puts the outcomes of one scenario together, the product first, in the
// order in which scenarios first appear.
func groups(outcomes []evidence.Outcome) [][]*evidence.Outcome {
	var out [][]*evidence.Outcome
	place := map[string]int{}
	for i := range outcomes {
		o := &outcomes[i]
		g, ok := place[o.Run.Scenario]
		if !ok {
			g = len(out)
			place[o.Run.Scenario] = g
			out = append(out, nil)
		}
		out[g] = append(out[g], o)
	}
	for _, g := range out {
		slices.SortStableFunc(g, func(a, b *evidence.Outcome) int { return rank(a) - rank(b) })
	}
	return out
}

func rank(o *evidence.Outcome) int {
	switch o.Run.Variant {
	case evidence.Subak, "":
		return 0
	case evidence.Static:
		return 1
	}
	return 2
}
