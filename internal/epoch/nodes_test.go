package epoch

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"subak/allocator"
)

func TestOtherNodesTakeTheirCellsAlong(t *testing.T) {
	d := &Document{Cluster: "c", Nodes: []Node{{"a", 1}, {"b", 2}}}
	d.Budgets = []Budget{{Name: "x", Spec: allocator.Spec{
		Weights: []int64{1, 2}, Floors: [][]allocator.Rate{{5, 6}}, Caps: [][]allocator.Rate{{7, -1}},
	}}}
	got := d.WithNodes([]Node{{"c", 9}, {"b", 3}})
	want := &Document{Cluster: "c", Nodes: []Node{{"c", 9}, {"b", 3}}}
	want.Budgets = []Budget{{Name: "x", Spec: allocator.Spec{
		Weights: []int64{9, 3}, Floors: [][]allocator.Rate{{0, 6}}, Caps: [][]allocator.Rate{{-1, -1}},
	}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if d.Budgets[0].Spec.Weights[0] != 1 || d.Nodes[0].Name != "a" {
		t.Error("the document that it came from changed")
	}
}
