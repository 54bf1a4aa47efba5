package report

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
	"pgregory.net/rapid"

	"subak/testbed/evidence"
)

// hostile are names that somebody might give to a node or put in a log.
func hostile() []string {
	return []string{
		`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `</text></svg><script>x</script>`,
		`' style="d" d="M0,0" x="5`, "]]>&amp;&#0;<!--", "a\x00b\x1b[31mred\x07\r\n\tc", "\u202egnp.exe\u2066", "\xff\xfe broken",
		"javascript:alert(1)", "{{.}}", strings.Repeat("W", 3000), "", "日本語 ελληνικά 🌊",
	}
}

func spoilt(name string) (evidence.Outcome, About) {
	o := outcome(synthetic("x", evidence.Subak, 2, 12*time.Second))
	r := &o.Run
	r.Scenario, r.Title, r.Why, r.Variant, r.Version, r.Topology = name, name, name, evidence.Variant(name), name, name
	for i := range r.Nodes {
		r.Nodes[i] = name
	}
	r.Classes = []string{name, name}
	r.Phases[1].Name, r.Load.Phases[1] = name, name
	r.Bands[0].Kind, r.Bands[0].Label = name, name
	r.Events[0].Kind, r.Events[0].Text = name, name
	r.Network = map[string]int64{name: 1}
	for i := range o.Verdicts {
		o.Verdicts[i] = evidence.Verdict{Claim: name, Measured: name, Bound: name}
	}
	about := About{Version: name, Machine: name, Command: name, Figures: []Figure{{Path: name, Caption: name}}}
	about.Comparisons = []Comparison{{Scenario: name, Title: name, Topology: name}}
	return o, about
}

// elements calls with every element of the page.
func elements(t testing.TB, page string, with func(*html.Node)) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	for n := range root.Descendants() {
		if n.Type == html.ElementNode {
			with(n)
		}
	}
}

func TestThePageRunsNothingAndLoadsNothingWhateverNamesAre(t *testing.T) {
	const known = " html head meta title style body header main footer section h1 h2 h3 p dl div dt dd table thead tbody tr th td a span figure figcaption svg g path text details summary code b "
	for _, name := range hostile() {
		a, about := spoilt(name)
		b, c := outcome(synthetic(name, evidence.Naive, 1, 12*time.Second)), evidence.Outcome{}
		b.Run.Scenario, c.Run.Scenario = a.Run.Scenario, name+"!" // of another scenario, but much the same name
		var page bytes.Buffer
		if err := HTML(&page, []evidence.Outcome{a, b, c}, about); err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		ids := map[string]int{}
		elements(t, page.String(), func(n *html.Node) {
			if !strings.Contains(known, " "+n.Data+" ") {
				t.Errorf("%q: element %s", name, n.Data)
			}
			for _, at := range n.Attr {
				switch {
				case strings.HasPrefix(at.Key, "on"), at.Key == "src", at.Key == "style", at.Key == "href" && !strings.HasPrefix(at.Val, "#"):
					t.Errorf("%q: attribute %s=%q of %s", name, at.Key, at.Val, n.Data)
				case at.Key == "id":
					ids[at.Val]++
				}
			}
		})
		elements(t, page.String(), func(n *html.Node) {
			for _, at := range n.Attr {
				if at.Key == "href" && ids[strings.TrimPrefix(at.Val, "#")] != 1 {
					t.Errorf("%q: %s leads to %d places", name, at.Val, ids[at.Val[1:]])
				}
			}
		})
		for _, never := range []string{"url(", "@import", "<script", "\x00", "\x1b", "\u202e"} {
			if strings.Contains(page.String(), never) {
				t.Errorf("%q: the page has %q", name, never)
			}
		}
	}
}

func TestOddEvidenceIsShownAndDoesNotStopTheReport(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := outcome(synthetic("x", rapid.SampledFrom([]evidence.Variant{"", evidence.Subak, evidence.Naive}).Draw(t, "variant"), 2, 6*time.Second))
		r := &o.Run
		cut := func(name string, n int) int { return rapid.IntRange(0, n).Draw(t, name) }
		r.Nodes, r.Classes, r.Weights = r.Nodes[:cut("nodes", 2)], r.Classes[:cut("classes", 2)], r.Weights[:cut("weights", 2)]
		r.Series = r.Series[:cut("series", 2)]
		for i := range r.Series {
			s := &r.Series[i]
			s.Up, s.Share, s.Shares = s.Up[:cut("up", 60)], s.Share[:cut("share", 60)], s.Shares[:cut("shares", 2)]
			s.Offered, s.GossipSent, s.CPU = s.Offered[:cut("offered", 2)], s.GossipSent[:cut("gossip", 60)], s.CPU[:cut("cpu", 1)]
			if len(s.Share) > 0 {
				s.Share[0] = rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), -5, 1e300}).Draw(t, "odd")
			}
		}
		r.Load.Streams, r.Phases = r.Load.Streams[:cut("streams", 4)], r.Phases[:cut("phases", 3)]
		r.Origin.Arrivals = r.Origin.Arrivals[:cut("arrivals", 2)]
		r.Bands[0].Nodes, r.Events[0].Node = []int{-1, 99}, 77
		r.Bin = rapid.SampledFrom([]time.Duration{0, -1, 1, 100 * time.Millisecond, time.Hour}).Draw(t, "bin")
		r.Limit = rapid.SampledFrom([]int64{0, -7, 1100, math.MaxInt64}).Draw(t, "limit")
		r.Length = rapid.SampledFrom([]time.Duration{0, -time.Hour, 6 * time.Second, math.MaxInt64}).Draw(t, "length")
		all := []evidence.Outcome{o, {}}
		var b bytes.Buffer
		for what, err := range map[string]error{"page": HTML(&b, all, About{}), "table": Table(&b, all), "summary": Markdown(&b, all, About{})} {
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
		}
		if strings.Contains(b.String(), "NaN") {
			t.Fatal("NaN is shown")
		}
	})
}

func TestTheSameOutcomesGiveTheSameBytes(t *testing.T) {
	about := someAbout
	about.Comparisons = someComparisons()
	var a, b bytes.Buffer
	if err := HTML(&a, campaign(4, 20*time.Second), about); err != nil {
		t.Fatal(err)
	}
	if err := HTML(&b, campaign(4, 20*time.Second), about); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Error("two pages of the same outcomes differ")
	}
}

func TestARunOfManyPlacesStaysSmall(t *testing.T) {
	size := func(outcomes []evidence.Outcome) int {
		var b bytes.Buffer
		if err := HTML(&b, outcomes, About{}); err != nil {
			t.Fatal(err)
		}
		return b.Len()
	}
	o := outcome(synthetic("x", evidence.Subak, 22, 150*time.Second))
	grew := size([]evidence.Outcome{o}) - size(nil)
	if most := 6_000_000 / 35; grew > most {
		t.Errorf("a run of 22 places takes %d bytes, 35 such are to fit in 6 MB: %d each", grew, most)
	}
}

func TestTheVerdictCountsEveryClaim(t *testing.T) {
	var b bytes.Buffer
	if err := HTML(&b, campaign(5, 60*time.Second), someAbout); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, want := range []string{"7 of 8 claims kept, 1 BROKEN", "Broken in flood.", "v0.4.0-12-gabcdef0", "30 November 2026, 20:15 UTC", "make testbed"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if kept, broken := strings.Count(page, "✓ kept"), strings.Count(page, "✗ BROKEN"); kept != 14 || broken != 2 {
		t.Errorf("%d kept and %d broken claims on the page, want each of 8 twice", kept, broken)
	}
	for _, c := range []struct {
		verdicts []evidence.Verdict
		want     string
		ok       bool
	}{
		{nil, "Nothing was claimed", false},
		{[]evidence.Verdict{{Kept: true}, {Kept: true}}, "All 2 claims kept", true},
		{[]evidence.Verdict{{Kept: true}, {}}, "1 of 2 claims kept, 1 BROKEN", false},
	} {
		s := tally([]evidence.Outcome{{Verdicts: c.verdicts}})
		if s.words() != c.want || s.ok() != c.ok {
			t.Errorf("%v: %q, %v", c.verdicts, s.words(), s.ok())
		}
	}
}

func TestEvidenceFromAFileIsShownAsEvidenceFromARun(t *testing.T) {
	all := campaign(3, 20*time.Second)
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	var again []evidence.Outcome
	if err := json.Unmarshal(text, &again); err != nil {
		t.Fatal(err)
	}
	var a, b bytes.Buffer
	if err := HTML(&a, all, someAbout); err != nil {
		t.Fatal(err)
	}
	if err := HTML(&b, again, someAbout); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Error("the pages differ")
	}
}
