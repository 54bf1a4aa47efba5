package epoch

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"subak/allocator"
	"subak/allocator/ledger"
)

func rootRecord(t testing.TB, d *Document, dir *ledger.Directory) *Record {
	t.Helper()
	e, err := Root(d, dir)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Decode(e.ID, e.Body, dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func three() *Document { return document([]string{"ams", "fra", "sin"}, []int64{1, 2, 3}) }

// scaled is three with another limit, which must be odd by a few units.
func scaled(units int64) *Document {
	d := three()
	for b := range d.Budgets {
		s := &d.Budgets[b].Spec
		s.Budget = allocator.Rate(units) * allocator.Unit
		s.Classes[0].Reservation = s.Budget / 2
		s.Classes[1].Reservation = s.Budget - s.Budget/2
	}
	return d
}

func child(t testing.TB, r *Record, e Edit, dir *ledger.Directory) *Record {
	t.Helper()
	c, err := r.Child(e, dir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAChildComesBackFromItsBodyAlone(t *testing.T) {
	dir := ledger.NewDirectory()
	r := rootRecord(t, three(), dir)
	d := scaled(70).Without(func(n string) bool { return n == "sin" })
	c := child(t, r, Edit{Document: d, Forced: map[string]uint64{"sin": 17}, Canary: "ams", Above: 6}, dir)
	other := ledger.NewDirectory()
	other.Intern("other process, other numbers")
	got, err := Load(&ledger.Stored{Epoch: c.Epoch.ID, Body: c.Epoch.Body}, other)
	if err != nil {
		t.Fatal(err)
	}
	e := got.Epoch
	if e.ID.Version != 7 || e.Parent != r.Epoch.ID || e.Root != r.Epoch.Root || got.Canary != "ams" || len(e.Roster) != 2 {
		t.Errorf("epoch %+v, canary %q", e, got.Canary)
	}
	sin, _ := other.Lookup("sin")
	if e.Forced[sin] != 17 || len(e.Forced) != 1 || got.Forced()["sin"] != 17 {
		t.Errorf("forced %v", e.Forced)
	}
	names := make([]string, 0, 3)
	for _, id := range e.ParentRoster {
		names = append(names, other.Name(id))
	}
	if !slices.Equal(names, []string{"ams", "fra", "sin"}) || !slices.Equal(got.ParentRoster(), names) {
		t.Errorf("parent's roster %v", names)
	}
	if got.Content != c.Content || !got.Was(r.Content) || got.Was(got.Content) {
		t.Errorf("content %x, history %x", got.Content, got.History)
	}
	if err := e.Validate(other); err != nil {
		t.Error(err)
	}
}

func TestTheSameEditMakesTheSameEpochAnywhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		units := rapid.Int64Range(1, 1000).Draw(t, "limit")
		forced := map[string]uint64{}
		for _, n := range []string{"x", "y", "z", "w"} {
			if rapid.Bool().Draw(t, n) {
				forced[n] = rapid.Uint64Range(1, 9).Draw(t, "inc")
			}
		}
		make := func(order []string, weights []int64) *Record {
			dir := ledger.NewDirectory()
			e, err := Root(three(), dir)
			if err != nil {
				t.Fatal(err)
			}
			r, err := Decode(e.ID, e.Body, dir)
			if err != nil {
				t.Fatal(err)
			}
			d := document(order, weights)
			for b := range d.Budgets {
				d.Budgets[b].Spec.Budget = allocator.Rate(units) * allocator.Unit
				d.Budgets[b].Spec.Classes[0].Reservation = 0
				d.Budgets[b].Spec.Classes[1].Reservation = allocator.Rate(units) * allocator.Unit
			}
			c, err := r.Child(Edit{Document: d, Forced: forced}, dir)
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		a := make([]string{"ams", "fra", "sin"}, []int64{1, 2, 3})
		b := make([]string{"sin", "fra", "ams"}, []int64{3, 2, 1})
		if a.Epoch.ID != b.Epoch.ID || string(a.Epoch.Body) != string(b.Epoch.Body) || a.Content != b.Content {
			t.Fatalf("%v and %v", a.Epoch.ID, b.Epoch.ID)
		}
	})
}

func TestEverythingInARecordIsPartOfItsName(t *testing.T) {
	dir := ledger.NewDirectory()
	r := rootRecord(t, three(), dir)
	seen := map[ledger.EpochID]string{}
	for what, e := range map[string]Edit{
		"nothing": {Document: scaled(70)},
		"content": {Document: scaled(71)},
		"forced":  {Document: scaled(70), Forced: map[string]uint64{"x": 1}},
		"life":    {Document: scaled(70), Forced: map[string]uint64{"x": 2}},
		"canary":  {Document: scaled(70), Canary: "fra"},
		"above":   {Document: scaled(70), Above: 5},
	} {
		id := child(t, r, e, dir).Epoch.ID
		if other := seen[id]; other != "" {
			t.Errorf("%s and %s make one epoch", what, other)
		}
		seen[id] = what
	}
	cousin := rootRecord(t, scaled(5), dir)
	if id := child(t, cousin, Edit{Document: scaled(70)}, dir).Epoch.ID; seen[id] != "" {
		t.Error("the same edit of another parent makes the same epoch")
	}
}

func TestASiblingIsWhatTheParentWouldMakeAboveIt(t *testing.T) {
	dir := ledger.NewDirectory()
	r := rootRecord(t, three(), dir)
	lost := child(t, r, Edit{Document: scaled(70)}, dir)
	again, err := lost.Sibling(Edit{Document: scaled(80)}, dir)
	if err != nil {
		t.Fatal(err)
	}
	if want := child(t, r, Edit{Document: scaled(80), Above: 2}, dir); again.Epoch.ID != want.Epoch.ID {
		t.Errorf("%v, want %v", again.Epoch.ID, want.Epoch.ID)
	}
	if !lost.Epoch.ID.Less(again.Epoch.ID) || again.Was(lost.Content) {
		t.Error("it does not win, or takes the lost content for an ancestor's")
	}
	if _, err := r.Sibling(Edit{Document: scaled(80)}, dir); err == nil {
		t.Error("a root has a sibling")
	}
}

func TestTheHistoryIsBounded(t *testing.T) {
	dir := ledger.NewDirectory()
	first := rootRecord(t, three(), dir)
	r := first
	for i := range HistoryMax + 5 {
		r = child(t, r, Edit{Document: scaled(int64(200 + i))}, dir)
		if want := min(i+1, HistoryMax); len(r.History) != want {
			t.Fatalf("%d contents after %d changes", len(r.History), i+1)
		}
		if was := r.Was(first.Content); was != (i < HistoryMax) {
			t.Fatalf("after %d changes the first content is remembered: %v", i+1, was)
		}
	}
}

func TestRecordsThatCannotBeAreRefused(t *testing.T) {
	dir := ledger.NewDirectory()
	r := rootRecord(t, three(), dir)
	good := child(t, r, Edit{Document: scaled(70).Without(func(n string) bool { return n == "sin" }), Forced: map[string]uint64{"sin": 3}, Canary: "fra"}, dir)
	for what, change := range map[string]func(*content){
		"no version":         func(c *content) { c.Version = 0 },
		"not after parent":   func(c *content) { c.Parent.Version = c.Version },
		"no root":            func(c *content) { c.Root = 0 },
		"no parent":          func(c *content) { c.Parent = name{} },
		"no parent's nodes":  func(c *content) { c.ParentRoster = nil },
		"no history":         func(c *content) { c.History = nil },
		"endless history":    func(c *content) { c.History = make([]uint64, HistoryMax+1) },
		"parent unsorted":    func(c *content) { c.ParentRoster = []string{"sin", "ams", "fra"} },
		"dead life 0":        func(c *content) { c.Forced[0].Incarnation = 0 },
		"dead and listed":    func(c *content) { c.Forced[0].Node = "ams" },
		"stranger as canary": func(c *content) { c.Canary = "lis" },
		"leaver as canary":   func(c *content) { c.Canary = "sin" },
		"format 0":           func(c *content) { c.Format = 0 },
		"class twice":        func(c *content) { c.Document.Budgets[0].Spec.Classes[1].Name = "high" },
	} {
		c := *good.said
		c.Forced = slices.Clone(c.Forced)
		c.Document = *c.Document.Clone()
		change(&c)
		if _, err := decodeAny(plainOf(t, &c)); err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
	if _, err := decodeAny(plainOf(t, good.said)); err != nil {
		t.Errorf("the record itself: %v", err)
	}
	spaced := strings.Replace(string(plainOf(t, good.said)), ",", ", ", 1)
	if _, err := decodeAny([]byte(spaced)); err == nil {
		t.Error("another spelling of the same record: accepted")
	}
}

func TestARecordOfALaterVersionIsNotHalfUnderstood(t *testing.T) {
	dir := ledger.NewDirectory()
	r := rootRecord(t, three(), dir)
	var later map[string]any
	if err := json.Unmarshal(plainOf(t, r.said), &later); err != nil {
		t.Fatal(err)
	}
	later["format"], later["quorum"] = format+1, 3
	plain, err := json.Marshal(later)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := decodeAny(plain); !errors.Is(err, ErrNewer) {
		t.Errorf("a later format: %v", err)
	}
	body := slices.Clone(r.Epoch.Body)
	body[0]++
	if _, err := Decode(r.Epoch.ID, body, dir); !errors.Is(err, ErrNewer) {
		t.Errorf("a later packing: %v", err)
	}
}

func TestABodyCannotUnpackWithoutBound(t *testing.T) {
	bomb := make([]byte, plainMax+1000)
	for i := range bomb {
		bomb[i] = ' '
	}
	if _, err := decodeAny(bomb); err == nil || !strings.Contains(err.Error(), "unpacks to more") {
		t.Errorf("%v", err)
	}
}

func TestEpochsOfPeersCannotFillTheDirectory(t *testing.T) {
	dir := ledger.NewDirectory()
	r := rootRecord(t, three(), dir)
	for i := dir.Len(); i < NamesMax-1; i++ {
		dir.Intern(fmt.Sprint(i))
	}
	other := ledger.NewDirectory()
	d := document([]string{"ams", "x1", "x2"}, []int64{1, 2, 3})
	c := child(t, rootRecord(t, three(), other), Edit{Document: d}, other)
	if _, err := Decode(c.Epoch.ID, c.Epoch.Body, dir); err == nil || dir.Len() != NamesMax-1 {
		t.Errorf("%v, %d names", err, dir.Len())
	}
	if _, err := Decode(r.Epoch.ID, r.Epoch.Body, dir); err != nil {
		t.Errorf("an epoch of known names: %v", err)
	}
}

func TestAThousandBudgetsOverTwentyTwoNodesFit(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	d := &Document{Cluster: "edge"}
	var weights []int64
	for i := range 22 {
		weights = append(weights, 1+rng.Int64N(100))
		d.Nodes = append(d.Nodes, Node{fmt.Sprintf("node-%02d.example", i), weights[i]})
	}
	for i := range 1000 {
		limit := (1 + rng.Int64N(100_000)) * int64(allocator.Unit)
		first := rng.Int64N(limit)
		caps := make([]allocator.Rate, 22)
		for n := range caps {
			caps[n] = allocator.Rate(limit / (1 + rng.Int64N(20)))
		}
		d.Budgets = append(d.Budgets, Budget{
			Name: fmt.Sprintf("customer-%04d", i), Unit: "/s", Burst: time.Second,
			Spec: allocator.Spec{
				Budget: allocator.Rate(limit), Weights: slices.Clone(weights),
				Classes: []allocator.ClassSpec{{Name: "high", Reservation: allocator.Rate(first)}, {Name: "low", Reservation: allocator.Rate(limit - first)}},
			},
		})
		if i%20 == 0 {
			d.Budgets[i].Spec.Caps = [][]allocator.Rate{nil, caps}
		}
	}
	dir := ledger.NewDirectory()
	r := rootRecord(t, d, dir)
	plain := plainOf(t, r.said)
	t.Logf("%d bytes, %d when packed", len(plain), len(r.Epoch.Body))
	if len(r.Epoch.Body) > BodyMax/3 {
		t.Errorf("%d bytes leave no room", len(r.Epoch.Body))
	}
}

func TestDifferencesAreToldInWords(t *testing.T) {
	old, fresh := three(), scaled(70)
	old.Canonical()
	fresh = fresh.Without(func(n string) bool { return n == "ams" })
	fresh.Nodes[0].Weight = 9
	b := &fresh.Budgets[0] // origin; canonical order turns it
	b.Burst, b.Shadow = 2*time.Second, true
	b.Spec.Classes[0].Borrow = 500_000
	b.Tenants = []Tenants{{Class: "high", SharePPM: 100_000, Burst: time.Second, Keys: 5}}
	b.Spec.Classes[1].Name = "batch"
	b.Spec.Caps = [][]allocator.Rate{{7_500_000, -1}, nil}
	fresh.Budgets[1].Name = "zulu"
	fresh.Canonical()
	var got []string
	for _, x := range Diff(old, fresh) {
		got = append(got, x.String())
	}
	want := []string{
		"node ams: removed (was weight 1)",
		"node fra: weight 2 -> 9",
		"budget egress: removed (was 100.000003/s)",
		"budget origin: limit 100.000003/s -> 70/s",
		"budget origin: burst 1s -> 2s",
		"budget origin: shadow no -> yes",
		"budget origin: classes high > low -> high > batch",
		"budget origin: class high: reservation 60.000001/s -> 35/s",
		"budget origin: class high: borrow unlimited -> 50%",
		"budget origin: class high: tenants none -> 10% each, burst 1s, 5 keys",
		"budget origin: class batch added, reservation 35/s",
		"budget origin: class low removed (was 40.000002/s)",
		"budget origin: cap of high at fra none -> 7.5/s",
		"budget zulu: added 70/s",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if d := Diff(old, old.Clone()); len(d) != 0 {
		t.Errorf("differences to itself: %v", d)
	}
}

func TestBasesThatDifferAreListedWithBothSides(t *testing.T) {
	dir := ledger.NewDirectory()
	r := rootRecord(t, three(), dir)
	c := child(t, r, Edit{Document: r.Doc.Without(func(n string) bool { return n == "sin" })}, dir)
	got := Bases(r, c)
	if len(got) != 6 {
		t.Fatalf("%+v", got)
	}
	sum := allocator.Rate(0)
	for _, x := range got {
		if x.Budget == "origin" {
			sum += x.After - x.Before
		}
		if x.Node == "sin" && x.After != 0 || x.Node != "sin" && x.After <= x.Before {
			t.Errorf("%+v", x)
		}
	}
	if sum != 0 {
		t.Errorf("the bases of one budget moved by %d in all", sum)
	}
}
