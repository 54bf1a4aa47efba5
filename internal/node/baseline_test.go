//go:build baseline

package node

import (
	"strings"
	"testing"
)

func TestABaselineSaysEverywhereThatItIsOne(t *testing.T) {
	t.Parallel()
	l := begin(t, setup{name: "a", dir: t.TempDir(), baseline: "naive"})
	if !strings.Contains(l.logged.String(), "level=WARN msg=\"THIS NODE IS A BASELINE") || !strings.Contains(l.logged.String(), "baseline=naive") {
		t.Errorf("the log does not warn:\n%s", l.logged.String())
	}
	if s := l.status(); s.Baseline != "naive" {
		t.Errorf("the status says %q", s.Baseline)
	}
	if sum, series := metric(t, l, "budget_node_baseline", "naive"); sum != 1 || series != 1 {
		t.Errorf("the metric is %v in %d series", sum, series)
	}
	// Alone, it takes the others for gone: the whole budget, at once.
	if share := l.status().Budgets[0].Share; share != 3000 {
		t.Errorf("enforces %v, want the whole budget", share)
	}
}

func TestABaselineOfNoneSaysNothing(t *testing.T) {
	t.Parallel()
	l := begin(t, setup{name: "a", dir: t.TempDir()})
	if _, series := metric(t, l, "budget_node_baseline"); series != 0 || l.status().Baseline != "" || strings.Contains(l.logged.String(), "BASELINE") {
		t.Errorf("the product says that it is a baseline:\n%s", l.logged.String())
	}
}
