package epoch

import "subak/allocator"

// WithNodes returns d with another list of nodes, in any order: budgets stay as
// they are, and each node that is new has no floors and no caps.
func (d *Document) WithNodes(nodes []Node) *Document {
	at := map[string]int{}
	for i, n := range d.Nodes {
		at[n.Name] = i
	}
	out := &Document{Cluster: d.Cluster, Nodes: append([]Node(nil), nodes...)}
	for _, b := range d.Budgets {
		s := b.Spec
		s.Weights = make([]int64, len(nodes))
		for i, n := range nodes {
			s.Weights[i] = n.Weight
		}
		s.Floors = moved(s.Floors, nodes, at, 0)
		s.Caps = moved(s.Caps, nodes, at, -1)
		b.Spec = s
		out.Budgets = append(out.Budgets, b)
	}
	return out
}

// moved takes the cells of each class along with their nodes.
func moved(cells [][]allocator.Rate, nodes []Node, at map[string]int, fresh allocator.Rate) [][]allocator.Rate {
	if cells == nil {
		return nil
	}
	out := make([][]allocator.Rate, len(cells))
	for k := range cells {
		out[k] = make([]allocator.Rate, len(nodes))
		for i, n := range nodes {
			out[k][i] = fresh
			if from, ok := at[n.Name]; ok && from < len(cells[k]) {
				out[k][i] = cells[k][from]
			}
		}
	}
	return out
}
