//go:build !baseline

package main

import (
	"strings"
	"testing"
)

func TestTheProductHasNoBaselines(t *testing.T) {
	got := subak(t, nil, "run", "--baseline", "naive")
	if got.code != exitUsage || !strings.Contains(got.err, "unknown flag: --baseline") {
		t.Errorf("got %+v", got)
	}
}
