package place

import (
	"os"
	"testing"
)

func TestCPUTimeGrowsWithWork(t *testing.T) {
	before, err := CPUTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	x := 0
	for i := range 50_000_000 {
		x ^= i
	}
	after, err := CPUTime(os.Getpid())
	if err != nil || after <= before {
		t.Errorf("%v, then %v (%v, %d)", before, after, err, x)
	}
	if _, err := CPUTime(1<<22 + 1); err == nil {
		t.Error("no error for a process beyond the highest number")
	}
}

func TestEveryCoreOfThisProcessHasAPlace(t *testing.T) {
	p := Find()
	if p.Pinned != (len(p.Rest)+len(p.Server) > 1) || p.String() == "" {
		t.Errorf("%+v", p)
	}
}

func TestPinningToNoCoreOrForNothingIsAnError(t *testing.T) {
	for _, tc := range [][2]string{{"x", "/bin/true"}, {"999", "/bin/true"}} {
		if err := Pin(tc[0], tc[1], nil); err == nil {
			t.Errorf("no error for cores %q, program %q", tc[0], tc[1])
		}
	}
}
