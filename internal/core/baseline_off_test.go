//go:build !baseline

package core

import (
	"strings"
	"testing"

	"subak/allocator/ledger"
	"subak/internal/epoch"
)

func TestTheProductRefusesToBeABaseline(t *testing.T) {
	dir, doc := ledger.NewDirectory(), fiveNodes()
	e, err := epoch.Root(doc, dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(Config{Self: "n0", Baseline: "naive"}, nil, dir, e, doc, 0); err == nil || !strings.Contains(err.Error(), "this build has none") {
		t.Errorf("got %v, want a refusal", err)
	}
}
