package epoch

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"subak/allocator"
	"subak/allocator/ledger"
)

// document is one budget over nodes of the given weights, in the order given.
func document(names []string, weights []int64) *Document {
	d := &Document{Cluster: "edge"}
	for i, n := range names {
		d.Nodes = append(d.Nodes, Node{n, weights[i]})
	}
	for _, name := range []string{"origin", "egress"} {
		d.Budgets = append(d.Budgets, Budget{
			Name: name, Unit: "/s", Burst: time.Second,
			Spec: allocator.Spec{
				Budget: 100_000_003, Weights: slices.Clone(weights),
				Classes: []allocator.ClassSpec{
					{Name: "high", Reservation: 60_000_001, Lend: allocator.Whole, Borrow: allocator.Unlimited, Protect: allocator.Whole},
					{Name: "low", Reservation: 40_000_002, Lend: allocator.Whole, Borrow: allocator.Unlimited, Protect: allocator.Whole},
				},
			},
		})
	}
	return d
}

func root(t *testing.T, d *Document) *ledger.Epoch {
	t.Helper()
	e, err := Root(d, ledger.NewDirectory())
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestTheOrderInWhichNodesAreWrittenDoesNotMatter(t *testing.T) {
	a := root(t, document([]string{"ams", "fra", "sin"}, []int64{1, 2, 3}))
	b := root(t, document([]string{"sin", "ams", "fra"}, []int64{3, 1, 2}))
	if a.ID != b.ID || string(a.Body) != string(b.Body) {
		t.Errorf("ids %v and %v of the same content", a.ID, b.ID)
	}
}

func TestFloorsAndCapsMoveWithTheirNodes(t *testing.T) {
	make := func(names []string, weights []int64, caps []allocator.Rate) *ledger.Epoch {
		d := document(names, weights)
		for i := range d.Budgets {
			d.Budgets[i].Spec.Caps = [][]allocator.Rate{slices.Clone(caps), nil}
		}
		return root(t, d)
	}
	a := make([]string{"ams", "fra"}, []int64{1, 2}, []allocator.Rate{5_000_000, -1})
	b := make([]string{"fra", "ams"}, []int64{2, 1}, []allocator.Rate{-1, 5_000_000})
	if a.ID != b.ID {
		t.Error("the same caps in another order make another epoch")
	}
}

func TestAnyChangeOfWhatNodesMustAgreeOnMakesAnotherEpoch(t *testing.T) {
	base := root(t, document([]string{"ams", "fra"}, []int64{1, 2}))
	for what, change := range map[string]func(*Document){
		"cluster": func(d *Document) { d.Cluster = "other" },
		"weight":  func(d *Document) { d.Nodes[0].Weight, d.Budgets[0].Spec.Weights[0] = 9, 9 },
		"burst":   func(d *Document) { d.Budgets[0].Burst = 2 * time.Second },
		"mode":    func(d *Document) { d.Budgets[0].Spec.Mode = allocator.Paper },
		"shadow":  func(d *Document) { d.Budgets[1].Shadow = true },
		"name":    func(d *Document) { d.Budgets[0].Name = "other" },
		"tenants": func(d *Document) { d.Budgets[0].Tenants = []Tenants{{Class: "low", SharePPM: 100_000, Keys: 5}} },
	} {
		d := document([]string{"ams", "fra"}, []int64{1, 2})
		change(d)
		if e := root(t, d); e.ID == base.ID {
			t.Errorf("another %s, the same epoch", what)
		}
	}
}

func TestBasesOfAnEpochAddUpToEachBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "nodes")
		names, weights := make([]string, n), make([]int64, n)
		for i := range names {
			names[i] = string(rune('a'+i%26)) + strings.Repeat("x", i/26)
			weights[i] = rapid.Int64Range(1, 1_000_000).Draw(t, "weight")
		}
		e, err := Root(document(names, weights), ledger.NewDirectory())
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range e.Budgets {
			var sum allocator.Rate
			for _, r := range b.Base {
				sum += r
			}
			if sum != 100_000_003 {
				t.Fatalf("bases of %s add up to %d", b.Name, sum)
			}
		}
	})
}

func TestABodyComesBackAsTheSameEpochUnderItsIDOnly(t *testing.T) {
	want := root(t, document([]string{"ams", "fra"}, []int64{1, 2}))
	r, err := Decode(want.ID, want.Body, ledger.NewDirectory())
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Epoch; got.ID != want.ID || got.Root != want.Root || len(got.Roster) != 2 || len(got.Budgets) != 2 || r.Doc.Cluster != "edge" || !slices.Equal(got.Budgets[0].Base, want.Budgets[0].Base) {
		t.Errorf("got %+v", got)
	}
	forged := slices.Clone(want.Body)
	forged[len(forged)/2] ^= 1
	if _, err := Decode(want.ID, forged, ledger.NewDirectory()); err == nil {
		t.Error("another body passed under the same id")
	}
	other := ledger.EpochID{Version: 2, Hash: want.ID.Hash}
	if _, err := Decode(other, want.Body, ledger.NewDirectory()); err == nil {
		t.Error("the body passed under another version")
	}
}

// decodeAny is Decode of any JSON under the id that it really hashes to, as
// a hostile peer would send it.
func decodeAny(plain []byte) (*Record, error) {
	var b bytes.Buffer
	b.WriteByte(format)
	w, err := flate.NewWriter(&b, flate.DefaultCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(plain); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	var head struct {
		Version uint64 `json:"version"`
	}
	_ = json.Unmarshal(plain, &head)
	return Decode(ledger.EpochID{Version: head.Version, Hash: hashOf(plain)}, b.Bytes(), ledger.NewDirectory())
}

func TestDocumentsThatCannotBeAreRefused(t *testing.T) {
	for what, change := range map[string]func(*Document){
		"no nodes":            func(d *Document) { d.Nodes = nil },
		"no budgets":          func(d *Document) { d.Budgets = nil },
		"nameless node":       func(d *Document) { d.Nodes[0].Name = "" },
		"long node name":      func(d *Document) { d.Nodes[1].Name = strings.Repeat("z", 65) },
		"weight 0":            func(d *Document) { d.Nodes[0].Weight = 0 },
		"twin nodes":          func(d *Document) { d.Nodes[1].Name = d.Nodes[0].Name },
		"unsorted budgets":    func(d *Document) { slices.Reverse(d.Budgets) },
		"nameless budget":     func(d *Document) { d.Budgets[0].Name = "" },
		"weights missing":     func(d *Document) { d.Budgets[0].Spec.Weights = nil },
		"no burst":            func(d *Document) { d.Budgets[0].Burst = 0 },
		"endless burst":       func(d *Document) { d.Budgets[0].Burst = 2 * time.Hour },
		"budget over total":   func(d *Document) { d.Budgets[0].Spec.Budget++ },
		"tenants of no class": func(d *Document) { d.Budgets[0].Tenants = []Tenants{{Class: "none", SharePPM: 1, Keys: 1}} },
		"tenants twice": func(d *Document) {
			d.Budgets[0].Tenants = []Tenants{{Class: "low", SharePPM: 1, Keys: 1}, {Class: "low", SharePPM: 1, Keys: 1}}
		},
		"tenants out of order": func(d *Document) {
			d.Budgets[0].Tenants = []Tenants{{Class: "low", SharePPM: 1, Keys: 1}, {Class: "high", SharePPM: 1, Keys: 1}}
		},
		"tenants of nothing":    func(d *Document) { d.Budgets[0].Tenants = []Tenants{{Class: "low", Keys: 1}} },
		"tenants of all memory": func(d *Document) { d.Budgets[0].Tenants = []Tenants{{Class: "low", SharePPM: 1, Keys: 1 << 30}} },
	} {
		d := document([]string{"ams", "fra"}, []int64{1, 2})
		d.Canonical()
		change(d)
		if _, err := decodeAny(plainOf(t, &content{Format: format, Version: 1, Document: *d})); err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
	if _, err := Decode(ledger.EpochID{Version: 1, Hash: 1}, make([]byte, BodyMax+1), ledger.NewDirectory()); err == nil {
		t.Error("a body over the limit: accepted")
	}
}

func plainOf(t testing.TB, c *content) []byte {
	plain, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

func FuzzDecode(f *testing.F) {
	d := document([]string{"ams", "fra"}, []int64{1, 2})
	d.Canonical()
	f.Add(plainOf(f, &content{Format: format, Version: 1, Document: *d}))
	f.Add(plainOf(f, &content{
		Format: format, Version: 3, Parent: name{2, 5}, Root: 7, ParentRoster: []string{"ams", "sin"},
		Forced: []forced{{"sin", 9}}, Canary: "ams", History: []uint64{1, 2}, Document: *d,
	}))
	f.Add([]byte(`{"nodes":[{"name":"a","weight":1}],"budgets":[{"spec":{"Classes":null}}]}`))
	f.Fuzz(func(t *testing.T, plain []byte) {
		_, _ = Decode(ledger.EpochID{Version: 1, Hash: 1}, plain, ledger.NewDirectory())
		r, err := decodeAny(plain)
		if err != nil {
			return
		}
		for _, b := range r.Epoch.Budgets {
			if len(b.Base) != len(r.Epoch.Roster) {
				t.Fatalf("%d bases for %d nodes", len(b.Base), len(r.Epoch.Roster))
			}
		}
	})
}
