package allocator

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestSplitServesNeedOfBaseFirstThenTargetThenBase(t *testing.T) {
	s := Spec{Budget: 100, Weights: []int64{1, 1}, Classes: []ClassSpec{{Reservation: 60}, {Reservation: 40}}}
	a := (&scenario{spec: s}).build(t)
	target := []Rate{50, 10, 10, 30} // node 0: class 0 above its base of 30, class 1 below its base of 20
	for _, c := range []struct {
		name  string
		share Rate
		want  []Rate
	}{
		{"nothing", 0, []Rate{0, 0}},
		{"negative is nothing", -5, []Rate{0, 0}},
		{"class 0 to its base", 25, []Rate{25, 0}},
		{"class 1 to its target before class 0 above base", 38, []Rate{30, 8}},
		{"class 0 up to its target", 55, []Rate{45, 10}},
		{"the target", 60, []Rate{50, 10}},
		{"the rest by base", 70, []Rate{56, 14}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := make([]Rate, 2)
			a.Split(got, c.share, 0, target)
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestSplitRevocableLeavesEachClassItsBase(t *testing.T) {
	s := Spec{Budget: 100, Weights: []int64{1, 1}, Classes: []ClassSpec{{Reservation: 60}, {Reservation: 40}}}
	a := (&scenario{spec: s}).build(t)
	target := []Rate{5, 10, 55, 30} // node 0: class 0 idle below its base of 30, class 1 flooded above its base of 20
	for _, c := range []struct {
		name  string
		share Rate
		want  []Rate
	}{
		{"need first", 20, []Rate{5, 15}},
		{"class 0 its base before class 1 more than its own", 45, []Rate{25, 20}},
		{"then class 1 up to its target", 60, []Rate{30, 30}},
		{"all of it", 85, []Rate{30, 55}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := make([]Rate, 2)
			a.SplitRevocable(got, c.share, 0, target)
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestSplitOfANodeWithoutBaseGoesByReservations(t *testing.T) {
	s := Spec{Budget: 100, Weights: []int64{1, 1}, Classes: []ClassSpec{{Reservation: 60}, {Reservation: 40}}}
	a := (&scenario{spec: s, ceilings: []Rate{0, 50}}).build(t)
	got := make([]Rate, 2)
	a.Split(got, 10, 0, make([]Rate, 4))
	if want := []Rate{6, 4}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestSplitNeverExceedsTheShareOrACap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sc := everything(6, 6).draw(t)
		a := sc.build(t)
		target := run(t, a, sc.demand)
		i := rapid.IntRange(0, a.Nodes()-1).Draw(t, "node")
		share := magnitude(t, 1<<61, "share")
		dst := make([]Rate, a.Classes())
		revocable := rapid.Bool().Draw(t, "revocable")
		a.split(dst, share, i, target, revocable)
		own := Rate(0)
		for k, x := range dst {
			c := k*a.Nodes() + i
			own += target[c]
			if x < 0 || a.limits != nil && x > a.limits[c] {
				t.Fatalf("class %d got %d", k, x)
			}
		}
		if got := total(dst); got > share {
			t.Fatalf("split %d of a share of %d", got, share)
		} else if got < share && (a.limits == nil || got < own) {
			t.Fatalf("split only %d of a share of %d", got, share)
		}
		if !revocable && share == own && !slices.Equal(dst, column(a, target, i)) {
			t.Fatalf("a share equal to the target split as %v", dst)
		}
	})
}

// column is one node's part of a class-major vector.
func column(a *Allocator, v []Rate, i int) (out []Rate) {
	for k := range a.k {
		out = append(out, v[k*a.n+i])
	}
	return out
}
