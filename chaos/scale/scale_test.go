package main

import (
	"testing"
	"time"
)

func TestTheFarthestRoundTripIs282Milliseconds(t *testing.T) {
	longest := time.Duration(0)
	for _, row := range delays() {
		for _, d := range row {
			longest = max(longest, 2*d)
		}
	}
	if longest.Round(time.Millisecond) != 282*time.Millisecond {
		t.Errorf("%s", longest)
	}
}

func TestLedgersByTwoTiersShareAllOfTheBudgetAndNeverMore(t *testing.T) {
	f, err := lightSteps(44, true, 0.05, 1)
	if err != nil || f.value > f.limit {
		t.Errorf("%+v %v", f, err)
	}
}

func TestAFewWholeCoresStayWithinTheirBytes(t *testing.T) {
	f, err := coreSteps(5, 0, 1)
	if err != nil || f.value > f.limit {
		t.Errorf("%+v %v", f, err)
	}
}
