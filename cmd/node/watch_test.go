package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"subak/internal/api"
)

func TestAWatchedStatusGoesOnUntilItIsEnded(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	asks := 0
	address, _ := serve(t, func() api.Status {
		if asks++; asks == 3 {
			end()
		}
		if asks == 2 {
			return troubled()
		}
		return healthy()
	})
	var out, errs bytes.Buffer
	p := &program{out: &out, err: &errs}
	if code := p.main(ctx, []string{"status", "--watch=100ms", "--admin", address}); code != exitOK {
		t.Errorf("exit code %d, want 0: %s", code, errs.String())
	}
	if pages := strings.Count(out.String(), "node "); pages < 2 || !strings.Contains(out.String(), "ready     no") {
		t.Errorf("%d pages, want one of a healthy and one of a troubled node:\n%s", pages, out.String())
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Error("a file gets escapes of a terminal")
	}
}

func TestAWatchIsNotQuickerThanANode(t *testing.T) {
	got := subak(t, nil, "status", "--watch=1ms")
	if got.code != exitUsage || !strings.Contains(got.err, "--watch 1ms is not between 100ms") {
		t.Errorf("code %d: %s", got.code, got.err)
	}
}
