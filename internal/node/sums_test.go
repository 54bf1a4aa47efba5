package node

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"subak/internal/api"
)

func TestTheHistorysSumsAreThoseOfTheStatus(t *testing.T) {
	t.Parallel()
	nodes := cluster(t)
	for _, l := range nodes {
		sums, err := answered(l.node, func(now int64) (both [2][]api.Sum, _ error) {
			l.node.snapshot(now)
			st := l.node.last.Load()
			return [2][]api.Sum{l.node.sums(now), st.Sums()}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(sums[1], sums[0]); diff != "" || sums[0][0].Share == 0 {
			t.Errorf("%s (-status +sums):\n%s", l.name, diff)
		}
	}
}
