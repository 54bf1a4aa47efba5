package evaluation

import "subak/allocator"

// serving is how a location turns what its classes may use into what they serve.
type serving struct {
	nodes int
	// guard is what each cell keeps for itself when it lends revocably; nil where
	// every cell serves from its own part only.
	guard []allocator.Rate
}

// serve puts what is served of demand into dst, cell by cell, given what each cell
// may use.
//
// Without lending a cell serves the least of the two. With it, a location's classes
// draw on all that its cells may use, in order of priority, but leave each lower
// class what it asks for up to its guard.
func (s *serving) serve(dst, may, demand []allocator.Rate) {
	if s.guard == nil {
		for c := range dst {
			dst[c] = min(demand[c], may[c])
		}
		return
	}
	for i := range s.nodes {
		var left, kept allocator.Rate
		for c := i; c < len(may); c += s.nodes {
			left += may[c]
			kept += s.keeps(c, may, demand)
		}
		for c := i; c < len(may); c += s.nodes {
			kept -= s.keeps(c, may, demand)
			dst[c] = min(demand[c], left-kept)
			left -= dst[c]
		}
	}
}

// keeps is what cell c is sure to serve of its demand.
func (s *serving) keeps(c int, may, demand []allocator.Rate) allocator.Rate {
	return min(may[c], s.guard[c], demand[c])
}
