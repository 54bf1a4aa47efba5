package evaluation

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"subak/allocator"
)

var twoByTwo = Names{Nodes: []string{"ams", "fra"}, Classes: []string{"high", "low"}}

func read(text string) (*Recorded, error) { return ReadCSV(strings.NewReader(text), twoByTwo, nil) }

// cyclesOf plays a trace to its end.
func cyclesOf(t testing.TB, trace Trace) (demands, legits [][]allocator.Rate) {
	for {
		demand, legit := make([]allocator.Rate, trace.Nodes()*trace.Classes()), make([]allocator.Rate, trace.Nodes())
		ok, err := trace.Next(demand, legit)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return demands, legits
		}
		demands, legits = append(demands, demand), append(legits, legit)
	}
}

func TestATraceIsReadRowByRow(t *testing.T) {
	r, err := read("time,location,class,demand,legit\n" +
		"0,ams,high,10,0\n0,fra,low,2.5,1.25\n" +
		"1.5,fra,high,0.000001,0\n1.5,ams,low,7,7\n1.5,ams,high,1,0\n")
	if err != nil {
		t.Fatal(err)
	}
	demands, legits := cyclesOf(t, r.Replay())
	if diff := cmp.Diff([][]allocator.Rate{{10_000_000, 0, 0, 2_500_000}, {1_000_000, 1, 7_000_000, 0}}, demands); diff != "" {
		t.Errorf("demand (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([][]allocator.Rate{{0, 1_250_000}, {7_000_000, 0}}, legits); diff != "" {
		t.Errorf("legitimate (-want +got):\n%s", diff)
	}
	if first, last := r.Span(); r.Cycles() != 2 || r.Rows() != 5 || r.Missing != 3 || first != "0" || last != "1.5" {
		t.Errorf("%d cycles, %d rows, %d missing, from %s to %s", r.Cycles(), r.Rows(), r.Missing, first, last)
	}
}

func TestWhatIsWrittenIsReadAgain(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cycle := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) allocator.Rate {
			return allocator.Rate(rapid.Int64Range(0, maxDemand*int64(allocator.Unit)).Draw(t, "demand"))
		}), 4, 4)
		cycles := rapid.SliceOfN(cycle, 1, 20).Draw(rt, "cycles")
		var file bytes.Buffer
		w, err := NewCSVWriter(&file, twoByTwo)
		if err != nil {
			rt.Fatal(err)
		}
		for i, c := range cycles {
			if err := w.Write(fmt.Sprintf("2026-11-30T12:00:%02d.5Z", i), c); err != nil {
				rt.Fatal(err)
			}
		}
		if err := w.Flush(); err != nil {
			rt.Fatal(err)
		}
		r, err := ReadCSV(&file, twoByTwo, nil)
		if err != nil {
			rt.Fatal(err)
		}
		got, _ := cyclesOf(t, r.Replay())
		if diff := cmp.Diff(cycles, got); diff != "" {
			rt.Fatalf("(-written +read):\n%s", diff)
		}
	})
}

func TestAFaultOfATraceIsSaidWithItsPlaceAndMend(t *testing.T) {
	const head = "time,location,class,demand\n"
	for _, c := range []struct{ name, text, says string }{
		{"empty", "", "the file is empty; mend: begin with the line time,location"},
		{"no rows", head, "the file has no rows"},
		{"other columns", "when,location,class,demand\n", `line 1, column 1: time is expected here, not "when"`},
		{"too few columns", "time,location\n", "line 1, column 1: 2 columns; mend"},
		{"too few fields", head + "0,ams,high\n", "line 2, column 1: 3 fields, not 4"},
		{"no node", head + "0,ams,high,1\n0,lhr,high,1\n", `line 3, column 3: location "lhr" is no node of the budget; mend: write one of ams, fra`},
		{"no class", head + "0,ams,mid,1\n", `line 2, column 7: class "mid" is no class of the budget; mend: write one of high, low`},
		{"no rate", head + "0,ams,high,many\n", `line 2, column 12: demand "many" is no rate; mend: write units per second`},
		{"negative", head + "0,ams,high,-1\n", `demand "-1" is no rate`},
		{"too fine", head + "0,ams,high,0.0000001\n", `demand "0.0000001" is no rate`},
		{"NaN", head + "0,ams,high,NaN\n", `demand "NaN" is no rate`},
		{"too much", head + "0,ams,high,1000000001\n", "demand 1000000001 is too much; mend: write at most 1000000000"},
		{"twice", head + "0,ams,high,1\n0,ams,high,1\n", "line 3, column 3: location ams asks for class high a second time at 0"},
		{"no time", head + "soon,ams,high,1\n", `line 2, column 1: time "soon" is no time; mend: write seconds`},
		{"backwards", head + "1,ams,high,1\n0,ams,high,1\n", "line 3, column 1: time 0 is not after 1; mend: sort the rows"},
		{"written otherwise", head + "1,ams,high,1\n1.0,fra,high,1\n", "time 1.0 is not after 1"},
		{"mixed", head + "1,ams,high,1\n2026-11-30T12:00:00Z,ams,high,1\n", "is of another form than the one before"},
		{"quotes", head + "0,\"ams,high,1\n", "line 2, column"},
		{"legit above demand", "time,location,class,demand,legit\n0,ams,low,1,2\n", "line 2, column 13: legit 2 is more than the demand 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := read(c.text)
			if _, ok := errors.AsType[*FileError](err); !ok || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %q", err, c.says)
			}
		})
	}
}

func TestProgressOfALongTraceIsTold(t *testing.T) {
	var file bytes.Buffer
	fmt.Fprintln(&file, "time,location,class,demand")
	const rows = 200_000
	for i := range rows {
		fmt.Fprintf(&file, "%d,ams,high,%d\n", i, i%1000)
	}
	var told []int
	r, err := ReadCSV(&file, twoByTwo, func(rows int) { told = append(told, rows) })
	if err != nil {
		t.Fatal(err)
	}
	if r.Cycles() != rows || len(told) != 4 || told[3] != rows {
		t.Errorf("%d cycles, progress %v, want four reports up to %d", r.Cycles(), told, rows)
	}
}

func FuzzReadCSV(f *testing.F) {
	f.Add("time,location,class,demand\n0,ams,high,1\n1,fra,low,2.5\n")
	f.Add("time,location,class,demand,legit\n2026-11-30T12:00:00Z,ams,low,1,0.5\n")
	f.Add("\ufefftime,location,class,demand\n\"0\",ams,high,9223372036854775807\n")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := read(text)
		if err != nil {
			if !strings.Contains(err.Error(), "; mend: ") {
				t.Errorf("%v says no mend", err)
			}
			return
		}
		demands, legits := cyclesOf(t, r.Replay())
		if len(demands) != r.Cycles() || len(demands) == 0 {
			t.Fatalf("%d cycles played of %d", len(demands), r.Cycles())
		}
		for i := range demands {
			for n, l := range legits[i] {
				if d := demands[i][2+n]; l < 0 || l > d {
					t.Fatalf("legitimate %d of %d", l, d)
				}
			}
		}
	})
}

// BenchmarkReadCSV is a user's trace of a million rows.
func BenchmarkReadCSV(b *testing.B) {
	var file bytes.Buffer
	fmt.Fprintln(&file, "time,location,class,demand")
	for i := range 250_000 {
		for _, cell := range []string{"ams,high", "fra,high", "ams,low", "fra,low"} {
			fmt.Fprintf(&file, "%d,%s,%d.5\n", i, cell, i%100_000)
		}
	}
	b.SetBytes(int64(file.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ReadCSV(bytes.NewReader(file.Bytes()), twoByTwo, nil); err != nil {
			b.Fatal(err)
		}
	}
}
