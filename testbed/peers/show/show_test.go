package show

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"subak/testbed/peers/measure"
)

// sample is a case with its figures and the results of its claims.
func sample() (*measure.Case, measure.Figures, []measure.Result) {
	c := &measure.Case{
		ID: "doors/x", What: "one <request>", Show: []measure.Metric{measure.Rate, measure.CPU, measure.Tail},
		Sides: []measure.Side{{Name: "ours"}, {Name: "theirs"}},
		Claims: []measure.Claim{
			{ID: "doors/x", What: "rate", Metric: measure.Rate, Other: 1, Sense: measure.AtLeast, Bound: 0.95},
			{ID: "doors/x-cpu", What: "CPU", Metric: measure.CPU, Other: 1, Sense: measure.NoBound},
			{ID: "doors/x-p99", What: "p99", Metric: measure.Tail, Other: 1, Bound: 1.2},
		},
	}
	f := make(measure.Figures, 3)
	for r := range f {
		f[r] = make([][measure.Metrics]float64, 2)
		for side, v := range []float64{9000 + 100*float64(r), 10_000} {
			f[r][side][measure.Rate], f[r][side][measure.CPU], f[r][side][measure.Tail] = v, 1e9/v, math.NaN()
		}
	}
	var results []measure.Result
	for _, cl := range c.Claims {
		results = append(results, cl.Judge(f))
	}
	return c, f, results
}

func TestACaseIsATableOfItsSidesAndClaims(t *testing.T) {
	c, f, results := sample()
	var b strings.Builder
	Case(&b, c, f, results)
	want := `              rate  CPU each  p99
  ours     9100 /s    110 us    ?
  theirs  10000 /s    100 us    ?
  SHORT    doors/x      0.910  >= 0.950  (0.900 to 0.920)  rate
  -        doors/x-cpu  1.099            (1.087 to 1.111)  CPU
  MISSING  doors/x-p99      ?  <= 1.200                    p99: no figure
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestTheSummaryHasOnlyWhatIsJudged(t *testing.T) {
	_, _, results := sample()
	var b strings.Builder
	Summary(&b, results)
	if s := b.String(); strings.Contains(s, "doors/x-cpu") || !strings.Contains(s, "doors/x-p99") || strings.Count(s, "\n") != 2 {
		t.Errorf("%s", s)
	}
}

func TestTheReportIsJSONWithNullForWhatIsMissing(t *testing.T) {
	c, f, results := sample()
	r := Report{Rounds: 3, Verdict: "FAILED"}
	r.AddCase(c, f)
	r.AddClaims(results)
	var b bytes.Buffer
	if err := r.JSON(&b); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Claims []struct {
			ID, State, Sense string
			Value, Bound     *float64
		}
		Cases []struct {
			Sides []struct {
				Name   string
				Rounds map[string][]*float64
			}
		}
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	first, noted, missing := got.Claims[0], got.Claims[1], got.Claims[2]
	if first.State != "short" || *first.Value != 0.91 || *first.Bound != 0.95 || first.Sense != "at_least" {
		t.Errorf("%+v", first)
	}
	if noted.State != "noted" || noted.Bound != nil {
		t.Errorf("%+v", noted)
	}
	if missing.State != "missing" || missing.Value != nil || missing.Sense != "at_most" {
		t.Errorf("%+v", missing)
	}
	side := got.Cases[0].Sides[0]
	if rates := side.Rounds["ops_per_second"]; len(rates) != 3 || *rates[2] != 9200 || side.Rounds["p99_ns"][0] != nil {
		t.Errorf("%+v", side)
	}
}

func TestTheChartIsXMLWithABarForEveryRatioThatIsJudged(t *testing.T) {
	_, _, results := sample()
	for _, all := range [][]measure.Result{results, nil} {
		var b bytes.Buffer
		if err := Chart(&b, "of <this> & that", all); err != nil {
			t.Fatal(err)
		}
		text := b.String()
		for d := xml.NewDecoder(&b); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		if got, want := strings.Contains(text, "doors/x<"), len(all) > 0; got != want || strings.Contains(text, "doors/x-p99") {
			t.Errorf("%d results, a bar: %v, want %v and none for what is missing", len(all), got, want)
		}
	}
}
