package node

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"subak/internal/api"
)

func TestTheHistorysSumsAreThoseOfTheStatus(t *testing.T) {
	t.Parallel()
	nodes := cluster(t)
	both := func(l *live) [2][]api.Sum {
		sums, err := answered(l.node, func(now int64) (both [2][]api.Sum, _ error) {
			l.node.snapshot(now)
			st := l.node.last.Load()
			return [2][]api.Sum{l.node.sums(now), st.Sums()}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return sums
	}
	for _, l := range nodes {
		var sums [2][]api.Sum
		// Of a sum over zeros nothing can be missing, so two classes of one node are
		// asked for something: not of the last node, whose demand ends the sum.
		eventually(t, l.name+" knows of shares and demand", func() bool {
			busy := nodes[0].node
			for range 10 {
				busy.core.Budgets()[0].Limiter.Decide(busy.clock.Now(), 0, 1)
				busy.core.Budgets()[0].Limiter.Decide(busy.clock.Now(), 1, 1)
			}
			sums = both(l)
			return sums[1][0].Demand > 0 && sums[1][0].Share > 0
		})
		if diff := cmp.Diff(sums[1], sums[0]); diff != "" {
			t.Errorf("%s (-status +sums):\n%s", l.name, diff)
		}
	}
}
