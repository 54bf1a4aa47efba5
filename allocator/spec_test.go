package allocator

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
)

// twoClasses is a valid spec: 100 units over two locations, 60 to 40.
func twoClasses() Spec {
	return Spec{Budget: 100, Weights: []int64{3, 1}, Classes: []ClassSpec{
		{Name: "gold", Reservation: 60, Lend: Whole, Borrow: Unlimited, Protect: Whole},
		{Name: "iron", Reservation: 40, Lend: Whole, Borrow: Unlimited, Protect: Whole, Rule: MaxMin},
	}}
}

func TestValidateNamesTheFault(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Spec)
		want   string
	}{
		{"no budget", func(s *Spec) { s.Budget = 0 }, "budget 0 must be above 0"},
		{"no classes", func(s *Spec) { s.Classes = nil }, "0 classes: need 1 to 64"},
		{"65 classes", func(s *Spec) { s.Classes = make([]ClassSpec, 65) }, "65 classes: need 1 to 64"},
		{"no locations", func(s *Spec) { s.Weights = nil }, "0 locations"},
		{"zero weight", func(s *Spec) { s.Weights[1] = 0 }, "location 1: weight 0 must be above 0"},
		{"huge weights", func(s *Spec) { s.Weights[0], s.Weights[1] = math.MaxInt64, 1 }, "weights add up to 2^63 or more"},
		{"short reservations", func(s *Spec) { s.Classes[0].Reservation-- }, "reservations add up to 99, not to the budget 100"},
		{"negative reservation", func(s *Spec) { s.Classes[0].Reservation = -1 }, "class 0 (gold): reservation -1 is negative"},
		{"lend", func(s *Spec) { s.Classes[0].Lend = Whole + 1 }, "lend 1000001 ppm"},
		{"borrow", func(s *Spec) { s.Classes[0].Borrow = -2 }, "borrow -2 ppm"},
		{"protect", func(s *Spec) { s.Classes[1].Protect = -1 }, "class 1 (iron): protect -1 ppm"},
		{"rule", func(s *Spec) { s.Classes[0].Rule = 9 }, "unknown level-1 rule 9"},
		{"mode", func(s *Spec) { s.Mode = 2 }, "unknown mode 2"},
		{"headroom", func(s *Spec) { s.Headroom = 3 }, "unknown headroom rule 3"},
		{"insurance", func(s *Spec) { s.InsurancePPM = -1 }, "insurance -1 ppm"},
		{"floors for one class", func(s *Spec) { s.Floors = [][]Rate{nil} }, "floors for 1 classes, there are 2"},
		{"caps for one location", func(s *Spec) { s.Caps = [][]Rate{{1}, nil} }, "class 0: caps for 1 locations, there are 2"},
		{"negative floor", func(s *Spec) { s.Floors = [][]Rate{{-1, 0}, nil} }, "class 0, location 0: floor -1 is negative"},
		{"floor above cap", func(s *Spec) { s.Floors, s.Caps = [][]Rate{{5, 0}, nil}, [][]Rate{{4, -1}, nil} }, "floor 5 is above the cap 4"},
		{"floors above reservation", func(s *Spec) { s.Floors = [][]Rate{nil, {20, 21}} }, "class 1 (iron): floors add up to more than the reservation 40"},
		{"floors overflow", func(s *Spec) { s.Floors = [][]Rate{nil, {math.MaxInt64, math.MaxInt64}} }, "floors add up to more than the reservation 40"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := twoClasses()
			c.change(&s)
			err := s.Validate()
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if _, err := New(s); err == nil {
				t.Error("New accepted it")
			}
		})
	}
}

func TestValidateReportsAllFaultsAtOnce(t *testing.T) {
	s := twoClasses()
	s.Budget, s.Mode, s.Weights[0], s.Classes[1].Lend = 99, 7, -1, 2*Whole
	for _, want := range []string{"not to the budget 99", "unknown mode 7", "weight -1", "lend 2000000 ppm"} {
		if err := s.Validate(); !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in %v", want, err)
		}
	}
}

func TestMaxMinSharingIsRefusedWithThreeClassesInPaperMode(t *testing.T) {
	three := append(twoClasses().Classes, ClassSpec{})
	for _, c := range []struct {
		name      string
		mode      Mode
		classes   []ClassSpec
		insurance PPM
		refused   bool
	}{
		{"two classes", Paper, twoClasses().Classes, 0, false},
		{"two classes and insurance", Paper, twoClasses().Classes, 1, true},
		{"three classes", Paper, three, 0, true},
		{"three classes, pool first", PoolFirst, three, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := twoClasses()
			s.Mode, s.Classes, s.InsurancePPM = c.mode, c.classes, c.insurance
			if err := s.Validate(); (err != nil) != c.refused {
				t.Errorf("got %v", err)
			}
		})
	}
}

// Why the pair is refused: the classmate of an inflater is served more.
func TestMaxMinSharingInPaperModeWouldLetClassmatesGain(t *testing.T) {
	s := Spec{Budget: 400, Mode: Paper, Weights: []int64{1, 1}, Classes: []ClassSpec{
		{Reservation: 100, Borrow: Unlimited}, {Reservation: 100, Borrow: Unlimited}, {Reservation: 200, Lend: Whole},
	}}
	a := (&scenario{spec: s}).build(t)
	for _, j := range a.classIndex {
		a.classes[j].rule = MaxMin // past validation
	}
	honest := run(t, a, []Rate{100, 100, 150, 150, 50, 50})
	lied := run(t, a, []Rate{100, 900, 150, 150, 50, 50})
	if served := min(lied[0], 100); served <= honest[0] {
		t.Fatalf("classmate served %d, %d before: the refusal has lost its reason", served, honest[0])
	}
}

func TestAllocateRefusesBadDemandAndLeavesTheTargetAlone(t *testing.T) {
	insured := twoClasses()
	insured.InsurancePPM = Whole
	capped := twoClasses()
	capped.Caps = [][]Rate{{10, 10}, nil}
	for _, c := range []struct {
		name   string
		spec   Spec
		target int
		demand []Rate
		want   error
	}{
		{"short demand", twoClasses(), 4, []Rate{1, 2, 3}, ErrShape},
		{"short target", twoClasses(), 3, []Rate{1, 2, 3, 4}, ErrShape},
		{"negative", twoClasses(), 4, []Rate{1, 2, -3, 4}, ErrNegative},
		{"most negative", twoClasses(), 4, []Rate{1, 2, math.MinInt64, 4}, ErrNegative},
		{"negative under a cap", capped, 4, []Rate{-1, 2, 3, 4}, ErrNegative},
		{"sum of 2^63", twoClasses(), 4, []Rate{math.MaxInt64, 1, 0, 0}, ErrOverflow},
		{"sum that wraps", twoClasses(), 4, []Rate{math.MaxInt64, math.MaxInt64, 2, 0}, ErrOverflow},
		{"sum of 2^63 under a cap", capped, 4, []Rate{math.MaxInt64, 1, 0, 0}, ErrOverflow},
		{"insurance over 2^63", insured, 4, []Rate{1 << 62, 0, 1, 0}, ErrOverflow},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := (&scenario{spec: c.spec}).build(t)
			target := slices.Repeat([]Rate{7}, c.target)
			if err := a.Allocate(target, c.demand); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if !slices.Equal(target, slices.Repeat([]Rate{7}, c.target)) {
				t.Errorf("target became %v", target)
			}
			if _, err := a.Explain(0, 0, c.demand); c.target == 4 && !errors.Is(err, c.want) {
				t.Errorf("explain: got %v, want %v", err, c.want)
			}
		})
	}
}

func TestSetCeilingsRefusesBadInputAndChangesNothing(t *testing.T) {
	a := (&scenario{spec: twoClasses(), ceilings: []Rate{10, 20}}).build(t)
	for _, c := range []struct {
		ceilings []Rate
		want     error
	}{
		{[]Rate{1}, ErrShape}, {[]Rate{}, ErrShape}, {[]Rate{1, -1}, ErrNegative}, {[]Rate{math.MaxInt64, 1}, ErrOverflow},
	} {
		if err := a.SetCeilings(c.ceilings); !errors.Is(err, c.want) {
			t.Errorf("%v: got %v, want %v", c.ceilings, err, c.want)
		}
	}
	if got := total(run(t, a, []Rate{1, 1, 1, 1})); got != 30 {
		t.Errorf("budget in force is %d, want 30", got)
	}
}

func TestLargestRemainderRefusesWhatItCannotSplit(t *testing.T) {
	for _, c := range []struct {
		total   Rate
		weights []int64
	}{
		{-1, []int64{1}}, {1, []int64{1, -1}}, {1, []int64{0, 0}}, {1, nil}, {1, []int64{math.MaxInt64, 1}},
	} {
		if got, err := LargestRemainder(c.total, c.weights); err == nil {
			t.Errorf("split %d over %v as %v", c.total, c.weights, got)
		}
	}
	if got, err := LargestRemainder(0, []int64{0, 0}); err != nil || !slices.Equal(got, []Rate{0, 0}) {
		t.Errorf("nothing over no weights: %v, %v", got, err)
	}
}

func TestDigestDependsOnOrderAndLengths(t *testing.T) {
	seen := map[uint32]string{}
	for name, h := range map[string]uint32{
		"nothing": Digest(), "one empty": Digest(nil), "two empty": Digest(nil, nil), "zero": Digest([]Rate{0}),
		"1 2": Digest([]Rate{1, 2}), "2 1": Digest([]Rate{2, 1}), "1|2": Digest([]Rate{1}, []Rate{2}), "|1 2": Digest(nil, []Rate{1, 2}),
	} {
		if other, ok := seen[h]; ok {
			t.Errorf("%q and %q both give %#x", name, other, h)
		}
		seen[h] = name
	}
	if got, want := Digest([]Rate{1, 2}, []Rate{3}), uint32(0xb3b16251); got != want {
		t.Errorf("got %#08x, want %#08x: nodes of two versions would seem to disagree", got, want)
	}
}
