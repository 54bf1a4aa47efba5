package demo

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"subak/testbed/origin"
)

func testScene() scene {
	s := scene{
		limit: 1000, title: "a flood of uncleared at ams", phase: 2, phases: 5,
		left: 8200 * time.Millisecond, total: 46 * time.Second, shares: 999.6,
		nodes: []nodeScene{
			{name: "ams", demand: 1594, share: 650, admitted: 648},
			{name: "fra", demand: 137, share: 250, admitted: 136},
			{name: "iad", state: "killed"},
			{name: "gru", state: "not ready: quarantine, 1.2 s left"},
			{name: "sin", demand: 0, share: 0, admitted: 0},
		},
	}
	for i := range 60 {
		s.origin = append(s.origin, float64(i*21))
	}
	return s
}

func TestTheFrameReadsWellAndFits(t *testing.T) {
	golden(t, "frame.txt", strings.Join(frame(testScene(), 100), "\n")+"\n")
	for _, width := range []int{60, 80, 200} {
		for _, line := range frame(testScene(), width) {
			if n := utf8.RuneCountInString(line); n > width && width >= 80 {
				t.Errorf("width %d: line of %d: %s", width, n, line)
			}
		}
	}
	frame(scene{limit: 1}, 0) // nothing known yet
}

func TestTheProgressLineNamesWhoIsDown(t *testing.T) {
	got := progress(testScene())
	if !strings.Contains(got, "admitted 784/s") || !strings.Contains(got, "iad killed") || !strings.Contains(got, "origin 1,239/s of 1,000/s") {
		t.Errorf("progress line %q", got)
	}
}

func TestTheSeriesIsAddedUpByHalfSeconds(t *testing.T) {
	r := origin.Report{Bin: 100 * time.Millisecond, Elapsed: 1290 * time.Millisecond, Series: [][]uint32{
		{1, 1, 1, 1, 1, 2, 2}, {10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 99},
	}}
	got := halfSeconds(r)
	if len(got) != 2 || got[0] != 30 || got[1] != 8 {
		t.Errorf("half seconds %v, want 30/s and 8/s", got)
	}
}

func TestWithoutATerminalNothingIsDrawn(t *testing.T) {
	var b bytes.Buffer
	s := newScreen(&b, false)
	s.draw([]string{"frame"})
	s.say("%s", "line")
	s.end()
	if b.String() != "line\n" || s.live() {
		t.Errorf("output %q", b.String())
	}
}
