// Package stricttest compares the faults of a file with marks in the file itself,
// so that a test reads as the file that a person got wrong.
package stricttest

import (
	"strings"
	"testing"

	"subak/internal/strict"
)

// Match fails t unless every line of text that ends in
//
//	# FAULT field: part of what is wrong; part of the mend
//
// has exactly that fault, and no other line has one. A line may have several
// marks.
func Match(t *testing.T, text string, faults strict.Faults) {
	t.Helper()
	line := 0
	for row := range strings.Lines(text) {
		line++
		for i, mark := range strings.Split(strings.TrimSpace(row), "# FAULT ") {
			if i == 0 {
				continue
			}
			field, rest, _ := strings.Cut(strings.TrimSpace(mark), ": ")
			what, mend, _ := strings.Cut(rest, "; ")
			found := false
			for j, f := range faults {
				if f.Line == line && f.Field == field && strings.Contains(f.What, what) && strings.Contains(f.Mend, mend) {
					faults, found = append(faults[:j:j], faults[j+1:]...), true
					break
				}
			}
			if !found {
				t.Errorf("line %d: no fault of %s with %q and mend %q", line, field, what, mend)
			}
		}
	}
	for _, f := range faults {
		t.Errorf("unexpected fault: %v", f)
	}
}
