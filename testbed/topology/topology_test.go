package topology

import (
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestTheBuiltInPlacesAreThoseOfTheEvaluation(t *testing.T) {
	want := "ams55 bom40 cdg45 dfw50 fra80 gru45 hkg25 iad95 icn25 jfk70 lax65 lhr75 mad25 mia40 nrt50 ord55 sea35 sin45 sjc60 arn20 syd30 yyz30"
	if got := listed(Cities22()); got != want {
		t.Errorf("cities22: got  %s\nwant %s", got, want)
	}
	if got, want := listed(Five()), "ams55 fra80 iad95 gru45 sin45"; got != want {
		t.Errorf("five: got %s, want %s", got, want)
	}
}

func listed(t Topology) string {
	var all []string
	for _, p := range t.Places {
		all = append(all, fmt.Sprintf("%s%d", p.Name, p.Weight))
	}
	return strings.Join(all, " ")
}

func TestPlacesLieWhereTheirClocksAndRegionsSay(t *testing.T) {
	for _, p := range Cities22().Places {
		if off := p.Offset.Hours() - p.East/15; off < -1.5 || off > 1.5 {
			t.Errorf("%s: %v from UTC, but its meridian says %.1f h", p.Name, p.Offset, p.East/15)
		}
		var region string
		switch {
		case p.East < -30 && p.North > 15:
			region = NorthAmerica
		case p.East < -30:
			region = SouthAmerica
		case p.North < 0:
			region = Oceania
		case p.East > 45:
			region = Asia
		default:
			region = Europe
		}
		if p.Region != region {
			t.Errorf("%s is in %s by its name and in %s by its place", p.Name, p.Region, region)
		}
	}
}

// The published great-circle distances are between airports, ours between the
// middles of cities: within 1 %.
func TestDistancesAreThoseOfTheEarth(t *testing.T) {
	c := Cities22()
	for _, x := range []struct {
		a, b string
		km   float64
	}{{"lhr", "jfk", 5555}, {"fra", "sin", 10280}, {"gru", "nrt", 18560}, {"ams", "fra", 366}, {"lax", "syd", 12060}} {
		got := Kilometres(c.Places[c.Index(x.a)], c.Places[c.Index(x.b)])
		if got < x.km*0.99 || got > x.km*1.01 {
			t.Errorf("%s to %s: %.0f km, want about %.0f", x.a, x.b, got, x.km)
		}
	}
}

func TestDelayIsLightInFibreHalfAsLongAgainAndTheLastMile(t *testing.T) {
	pole, equator := Place{North: 90}, Place{}
	// A quarter of the Earth's circumference is 10,007.5 km: 75.056 ms and one.
	if got, want := Delay(pole, equator), 76*time.Millisecond+57*time.Microsecond; got < want-time.Microsecond || got > want+time.Microsecond {
		t.Errorf("pole to equator takes %s, want %s", got, want)
	}
	if got := Delay(equator, equator); got != time.Millisecond {
		t.Errorf("from a place to itself takes %s, want the last mile's 1ms", got)
	}
	if got := Scattered22().MaxRTT().Round(time.Millisecond); got != 282*time.Millisecond {
		t.Errorf("longest round trip of the scattered cities %s, want 282ms", got)
	}
	if got := Cities22().MaxRTT().Round(time.Millisecond); got != 280*time.Millisecond {
		t.Errorf("longest round trip of 22 cities %s, want 280ms: from gru to nrt", got)
	}
}

// Every CPU must emulate the same network, or the simulator's traces differ.
func TestGoldenDelays(t *testing.T) {
	h := fnv.New64a()
	for _, row := range Cities22().OneWay {
		for _, d := range row {
			fmt.Fprintln(h, int64(d))
		}
	}
	if got, want := h.Sum64(), uint64(0x6120f8806c6c0fb7); got != want {
		t.Errorf("delays of 22 cities hash to %#x, want %#x", got, want)
	}
}

func TestAnyTwoPlacesAreEquallyFarFromEachOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		place := rapid.Custom(func(t *rapid.T) Place {
			return Place{North: rapid.Float64Range(-90, 90).Draw(t, "north"), East: rapid.Float64Range(-180, 180).Draw(t, "east")}
		})
		a, b, c := place.Draw(t, "a"), place.Draw(t, "b"), place.Draw(t, "c")
		ab, ba := Kilometres(a, b), Kilometres(b, a)
		if d := ab - ba; d > 1e-6 || d < -1e-6 || !(ab >= 0 && ab <= 20_016) {
			t.Fatalf("%v km there, %v back", ab, ba)
		}
		if detour := Kilometres(a, c) + Kilometres(c, b); ab > detour+1e-3 {
			t.Fatalf("%v km straight, %v by a detour", ab, detour)
		}
	})
}

func TestATableIsReadAsItIsWritten(t *testing.T) {
	got, err := FromCSV("mine", strings.NewReader(`# measured in May
rtt_ms, weight, north, east, utc, region, ams, iad, del

iad, 95, 39.04, -77.49, -5, north-america, 81.4, 0, 190
ams, 55, 52.37, 4.9, 1, europe, 0, 81, 130.002
del, , , , 5.5, , , , 0
`))
	if err != nil {
		t.Fatal(err)
	}
	ms := func(x float64) time.Duration { return time.Duration(x * float64(time.Millisecond)) }
	want := Topology{
		Name: "mine",
		Places: []Place{
			{"ams", 52.37, 4.9, 55, time.Hour, Europe},
			{"iad", 39.04, -77.49, 95, -5 * time.Hour, NorthAmerica},
			{"del", 0, 0, 1, 330 * time.Minute, ""},
		},
		OneWay: [][]time.Duration{{0, ms(40.5), ms(65.001)}, {ms(40.7), 0, ms(95)}, {ms(65.001), ms(95), 0}},
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if got.MaxRTT() != ms(190) || got.Index("del") != 2 || got.Index("sin") != -1 {
		t.Errorf("longest round trip %s, del at %d, sin at %d", got.MaxRTT(), got.Index("del"), got.Index("sin"))
	}
}

func TestEveryFaultOfATableIsNamedWithItsLine(t *testing.T) {
	_, err := FromCSV("bad", strings.NewReader(`x,weight,utc,a,b,c
# a comment
a,0,15,5,NaN,20
b,1,0,10,0
z,1,0,1,1,1
b,1,0,1,1,1
c,1,0,20000,-1,
`))
	want := []string{
		`line 3: a weight: "0"; mend: a whole number from 1 to 1000000`,
		`line 3: a utc: "15"; mend: a number from -12 to 14`,
		`line 3: a to a: "5"; mend: a number from 0 to 0`,
		`line 3: a to b: "NaN"; mend: a number from 0.002 to 10000`,
		`line 4: b has 5 cells, the header 6; mend: one cell for each column; it may be empty`,
		`line 5: "z" is not in the header; mend: one of a, b, c`,
		`line 6: b has a row already, in line 4; mend: one row for each place`,
		`line 7: c to a: "20000"; mend: a number from 0.002 to 10000`,
		`line 7: c to b: "-1"; mend: a number from 0.002 to 10000`,
	}
	if err == nil || err.Error() != strings.Join(want, "\n") {
		t.Errorf("got\n%v\nwant\n%s", err, strings.Join(want, "\n"))
	}
}

func TestATableThatCannotBeUsedSaysWhy(t *testing.T) {
	many := "x"
	for i := range MaxPlaces + 1 {
		many += fmt.Sprintf(",p%d", i)
	}
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", "line 1: the table is empty"},
		{"comments only", "# a\n", "line 1: the table is empty"},
		{"one place", "x,a\na,0\n", "line 1: the header names 1 places; mend: 2 to 64"},
		{"too many places", many, "the header names 65 places"},
		{"a name twice", "x,a,a\n", `line 1: columns 2 and 3 are both "a"`},
		{"a name that no node may have", "x,a b,-c,\n", `column 2: "a b" cannot be the name`},
		{"no row", "x,a,b\na,0,1\n", "line 1: b has no row"},
		{"no cell in either direction", "x,a,b,c\na,0,1,\nb,,0,2\nc,,,0\n", "line 2: no round trip from a to c, nor back"},
		{"an open quote", "x,a,b\n\"a,0,1\nb,1,0\n", "close the quotes"},
		{"too long", "x,a,b\n" + strings.Repeat("#\n", maxCSV), "more than 131072 bytes"},
		{"a region that is no word", "x,region,a,b\na,Old World,0,1\nb,,,\n", `line 2: a region: "Old World"`},
	} {
		if _, err := FromCSV("t", strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}

func TestATopologyIsFoundByNameOrFile(t *testing.T) {
	for _, name := range []string{"five", "cities22"} {
		if got, err := Find(name); err != nil || got.Name != name {
			t.Errorf("%s: %q, %v", name, got.Name, err)
		}
	}
	path := filepath.Join(t.TempDir(), "lab.csv")
	if err := os.WriteFile(path, []byte("x,a,b\na,0,1\nb,1,0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := Find(path); err != nil || got.Name != "lab" || len(got.Places) != 2 {
		t.Errorf("file: %v, %v", got, err)
	}
	if err := os.WriteFile(path, []byte("x,a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"six", "", path, "absent.csv"} {
		if _, err := Find(name); err == nil || !strings.Contains(err.Error(), "mend: ") {
			t.Errorf("%q: error %v, want one with a mend", name, err)
		}
	}
}

func FuzzATableNeverBreaksTheReader(f *testing.F) {
	f.Add("x,weight,a,b\na,3,0,1.5\nb,,,0\n")
	f.Add("x,a,b\n\"a\n,0\"")
	f.Fuzz(func(t *testing.T, text string) {
		top, err := FromCSV("f", strings.NewReader(text))
		if err != nil {
			return
		}
		n := len(top.Places)
		if n < 2 || n > MaxPlaces || len(top.OneWay) != n {
			t.Fatalf("%d places, %d rows", n, len(top.OneWay))
		}
		for i, p := range top.Places {
			if p.Weight < 1 || len(top.OneWay[i]) != n || top.Index(p.Name) != i {
				t.Fatalf("place %d: %+v, %d delays", i, p, len(top.OneWay[i]))
			}
			for j, d := range top.OneWay[i] {
				if (d == 0) != (i == j) || d < 0 || d > MaxRTT/2 {
					t.Fatalf("%d to %d takes %s", i, j, d)
				}
			}
		}
	})
}
