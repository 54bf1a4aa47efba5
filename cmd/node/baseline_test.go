//go:build baseline

package main

import (
	"strings"
	"testing"
)

func TestTheBaselineBuildSaysSo(t *testing.T) {
	if got := subak(t, nil, "version"); !strings.Contains(got.out, "+baseline") {
		t.Errorf("the version says %q", got.out)
	}
	if got := subak(t, nil, "run", "--help"); !strings.Contains(got.out, "BREAKS the budget") {
		t.Errorf("the help does not warn:\n%s", got.out)
	}
}
