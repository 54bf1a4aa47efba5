package scenario

import (
	"testing"
	"time"

	"subak/testbed/evidence"
)

func TestEveryFileCanBePlayed(t *testing.T) {
	all, err := Files()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		for _, v := range s.Variants {
			story := s.For(evidence.Variant(v.Name))
			if rates, err := story.Rates(); err != nil || len(rates) == 0 {
				t.Errorf("%s: rates %v, %v", s.Name, rates, err)
			}
		}
	}
}

func TestTheWholeListFitsInTwentyMinutes(t *testing.T) {
	all, err := Files()
	if err != nil {
		t.Fatal(err)
	}
	var list, ci time.Duration
	short := 0
	for _, s := range all {
		if s.Group == "" {
			t.Logf("%-20s %v", s.Name, s.Planned())
			list += s.Planned()
		}
		if s.CI {
			short++
			ci += s.Planned()
		}
	}
	if list > 19*time.Minute {
		t.Errorf("the list takes %v, want at most 19m", list)
	}
	t.Logf("list %v, ci %v", list, ci)
	if short != 4 || ci > 100*time.Second {
		t.Errorf("%d scenarios in CI take %v, want exactly 4 and at most 100s", short, ci)
	}
}
