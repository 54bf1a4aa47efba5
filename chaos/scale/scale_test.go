package main

import "testing"

func TestTheFarthestRoundTripIs282Milliseconds(t *testing.T) {
	longest := int64(0)
	for _, row := range delays() {
		for _, d := range row {
			longest = max(longest, 2*int64(d))
		}
	}
	if longest != int64(maxRTT) {
		t.Errorf("%d ns", longest)
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
