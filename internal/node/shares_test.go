package node

import (
	"math"
	"testing"
)

func TestSharesAreToldWithoutTheLoop(t *testing.T) {
	t.Parallel()
	nodes := cluster(t)
	held, release := make(chan struct{}), make(chan struct{})
	go nodes[0].node.ask(func() { close(held); <-release })
	<-held
	got := nodes[0].node.Shares()
	close(release)
	if len(got.Budgets) != 1 || got.Budgets[0].Name != "origin" || len(got.Budgets[0].Classes) != 2 || got.Time.IsZero() {
		t.Fatalf("shares %+v, want those of one budget with two classes", got)
	}
	b := got.Budgets[0]
	if sum := b.Classes[0] + b.Classes[1]; b.Total <= 0 || math.Abs(sum-b.Total) > 0.001*b.Total {
		t.Errorf("classes %v do not add up to %g", b.Classes, b.Total)
	}
}
