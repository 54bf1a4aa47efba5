package report

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"pgregory.net/rapid"

	"subak/testbed/evidence"
)

func TestEveryInkHasAVariableInBothSchemes(t *testing.T) {
	if got := len(palette()); got != int(inkEnd) {
		t.Fatalf("%d variables for %d inks", got, inkEnd)
	}
	s := newSheet()
	d, err := s.draw(100, 100, "all inks", func(c draw.Canvas) {
		for i := range inkEnd {
			c.FillPolygon(i.color(), []vg.Point{{X: 0, Y: 0}, {X: 1, Y: 1}, {X: 2, Y: 0}})
			c.StrokeLine2(stroke(i, 1), 0, 0, 9, 9)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range palette() {
		if got := strings.Count(s.rules.String(), "var(--"+h.name+")"); got != 2 {
			t.Errorf("%s is in %d rules, want one for fills and one for strokes", h.name, got)
		}
	}
	if strings.Contains(d.body, "style=") || strings.Contains(d.body, "#") {
		t.Errorf("a colour was left: %s", d.body)
	}
}

func TestAColourThatIsNoInkIsAFault(t *testing.T) {
	s := newSheet()
	_, err := s.draw(10, 10, "", func(c draw.Canvas) { c.StrokeLine2(draw.LineStyle{Width: 1}, 0, 0, 9, 9) })
	if err == nil || !strings.Contains(err.Error(), "no ink") {
		t.Errorf("got %v", err)
	}
}

// follow is a second reader of paths: where every M, l, h and v leads.
func follow(number *regexp.Regexp, t *rapid.T, d string) [][2]float64 {
	var out [][2]float64
	var x, y float64
	for d != "" {
		verb := d[0]
		end := strings.IndexAny(d[1:], "Mlhvz") + 1
		if end == 0 {
			end = len(d)
		}
		args := number.FindAllString(d[1:end], -1)
		d = d[end:]
		for i := 0; i < len(args); {
			var a, b float64
			fmt.Sscan(args[i], &a)
			i++
			if verb == 'M' || verb == 'l' {
				fmt.Sscan(args[i], &b)
				i++
			}
			switch verb {
			case 'M':
				x, y = a, b
			case 'l':
				x, y = x+a, y+b
			case 'h':
				x += a
			case 'v':
				y += a
			default:
				t.Fatalf("verb %q", verb)
			}
			out = append(out, [2]float64{x, y})
		}
	}
	return out
}

// between says whether p lies on the line from a to b, in tenths of a point.
func between(p, a, b [2]float64) bool {
	way := math.Hypot(p[0]-a[0], p[1]-a[1]) + math.Hypot(b[0]-p[0], b[1]-p[1])
	return way-math.Hypot(b[0]-a[0], b[1]-a[1]) < 1e-6
}

func TestAShortPathPassesEveryPlaceToATenthOfAPoint(t *testing.T) {
	number := regexp.MustCompile(`-?(\d+(\.\d+)?|\.\d+)`) // as SVG's grammar: "1.5.3" is two
	rapid.Check(t, func(t *rapid.T) {
		pts := rapid.SliceOfN(rapid.IntRange(-999, 9999), 4, 60).Draw(t, "tenths")
		flat := rapid.SliceOfN(rapid.Bool(), 30, 30).Draw(t, "level")
		var d strings.Builder
		var want [][2]float64
		for i := 0; i+1 < len(pts); i += 2 {
			if i > 0 && flat[i/2] {
				pts[i+1] = pts[i-1]
			}
			fmt.Fprintf(&d, "%c%.5g,%.5g", "ML"[min(i, 1)], float64(pts[i])/10+0.03, float64(pts[i+1])/10)
			want = append(want, [2]float64{float64(pts[i]), float64(pts[i+1])})
		}
		short, err := shortPath(d.String())
		if err != nil {
			t.Fatal(err)
		}
		got := follow(number, t, short)
		for i := range got {
			got[i] = [2]float64{math.Round(got[i][0] * 10), math.Round(got[i][1] * 10)}
			if !slices.Contains(want, got[i]) {
				t.Fatalf("%s became %s, which turns at %v", d.String(), short, got[i])
			}
		}
		at := 0
		for _, w := range want {
			for at < len(got) && !between(w, got[max(at-1, 0)], got[at]) {
				at++
			}
			if at == len(got) {
				t.Fatalf("%s became %s, which does not pass %v", d.String(), short, w)
			}
		}
	})
}

func TestPathsAreWrittenShort(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"M1.23,4.56L10,4.56L10,7L9.5,7.25L9.5,7.25Z", "M1.2 4.6h8.8v2.4l-.5.3z"},
		{"M0,0L1,1L2,3", "M0 0l1 1 1 2"},
		{"M0,0L1,0L3,0L2,0L2,1", "M0 0h3-1v1"},
		{"M5,5A3,3 0 0 1 11,5A3,3 0 1 1 5,5", "M5 5a3 3 0 0 1 6 0 3 3 0 1 1-6 0"},
		{"MNaN,1e+300L1e-9,2", "M0 0v2"},
	} {
		got, err := shortPath(c.in)
		if err != nil || got != c.want {
			t.Errorf("%s: got %q, %v, want %q", c.in, got, err, c.want)
		}
	}
	for _, bad := range []string{"M1", "C1,2,3,4,5,6", "Lx,y", "1,2", "M1,2W"} {
		if got, err := shortPath(bad); err == nil {
			t.Errorf("%q became %q", bad, got)
		}
	}
}

func TestFilesAreWellFormedWhateverNamesAre(t *testing.T) {
	for _, name := range hostile() {
		o := outcome(synthetic("x", evidence.Subak, 2, 12*second))
		o.Run.Scenario, o.Run.Classes[0], o.Run.Bands[0].Label, o.Run.Phases[1].Name, o.Run.Variant = name, name, name, name, evidence.Variant(name)
		for what, write := range map[string]func(io.Writer, []evidence.Outcome) error{"origins": Origins, "reactions": Reactions} {
			var b strings.Builder
			if err := write(&b, []evidence.Outcome{o}); err != nil {
				t.Fatalf("%s of %q: %v", what, name, err)
			}
			for d := xml.NewDecoder(strings.NewReader(b.String())); ; {
				tok, err := d.Token()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatalf("%s of %q: %v", what, name, err)
				}
				if e, ok := tok.(xml.StartElement); ok && !strings.Contains(" svg style rect g path text ", " "+e.Name.Local+" ") {
					t.Errorf("%s of %q has an element %s", what, name, e.Name.Local)
				}
			}
		}
	}
}

func TestNothingToDrawIsSaidSo(t *testing.T) {
	if err := Origins(io.Discard, nil); !errors.Is(err, ErrNothing) {
		t.Errorf("origins: %v", err)
	}
	if err := Reactions(io.Discard, []evidence.Outcome{{}}); !errors.Is(err, ErrNothing) {
		t.Errorf("reactions: %v", err)
	}
}

func TestTextKeepsTheWidthItWasLaidOutWith(t *testing.T) {
	s := newSheet()
	d, err := s.draw(100, 20, "", func(c draw.Canvas) {
		style := letters(10, inkText, 0, 0)
		c.FillText(style, vg.Point{X: 5, Y: 5}, `a < "b" & c`)
		c.FillText(bold(style), vg.Point{X: 5, Y: 5}, "abc")
	})
	if err != nil {
		t.Fatal(err)
	}
	w := tenths(round(letters(10, inkText, 0, 0).Width(`a < "b" & c`).Points()))
	if !strings.Contains(d.body, `textLength="`+w+`" lengthAdjust="spacingAndGlyphs">a &lt; &#34;b&#34; &amp; c</text>`) {
		t.Errorf("no width %s in %s", w, d.body)
	}
	if strings.Count(d.body, "textLength") != 1 {
		t.Errorf("three letters need none: %s", d.body)
	}
}
