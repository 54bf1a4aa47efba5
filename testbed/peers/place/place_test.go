package place

import (
	"slices"
	"testing"
)

func TestServersGetTheLastHalfOfTheCores(t *testing.T) {
	for _, tc := range []struct {
		name               string
		cpus, rest, server []int
	}{
		{"two", []int{0, 1}, []int{0}, []int{1}},
		{"three", []int{0, 1, 2}, []int{0, 1}, []int{2}},
		{"some of many", []int{4, 5, 8, 9}, []int{4, 5}, []int{8, 9}},
		{"one", []int{0}, nil, nil},
	} {
		p := split(tc.cpus)
		if !slices.Equal(p.Rest, tc.rest) || !slices.Equal(p.Server, tc.server) || p.Pinned != (len(tc.cpus) > 1) {
			t.Errorf("%s: %+v", tc.name, p)
		}
	}
}

func TestListsOfCoresAreReadAsWritten(t *testing.T) {
	cpus := []int{0, 3, 17}
	if got, err := parse(list(cpus)); err != nil || !slices.Equal(got, cpus) {
		t.Errorf("%v, %v; want %v", got, err, cpus)
	}
	for _, bad := range []string{"", "a", "1,", "-1"} {
		if got, err := parse(bad); err == nil {
			t.Errorf("%q gave %v", bad, got)
		}
	}
}

func TestBothSidesAreStartedTheSameWay(t *testing.T) {
	p := split([]int{0, 1})
	if got, want := p.Command("/self", p.Server, "/node", "run", "-x"), []string{"/self", "pin", "1", "/node", "run", "-x"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := (Place{}).Command("/self", nil, "/node", "run"), []string{"/node", "run"}; !slices.Equal(got, want) {
		t.Errorf("%q where nothing is bound, want %q", got, want)
	}
}
