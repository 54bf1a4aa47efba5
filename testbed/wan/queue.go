//go:build linux

package wan

// flight is a packet under way. Those due at the same time leave in the order
// in which they entered.
type flight struct {
	due   int64
	order uint64
	link  int    // position of its pair in the table
	cuts  uint32 // of its link when it entered
	data  []byte
}

func (f *flight) before(g *flight) bool {
	return f.due < g.due || f.due == g.due && f.order < g.order
}

// queue is a binary heap of packets, the next one due first. container/heap
// would allocate for each packet.
type queue []flight

func (q *queue) push(f flight) {
	h := append(*q, f)
	*q = h
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if !h[i].before(&h[up]) {
			return
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
}

// pop takes the first packet out of a queue that is not empty.
func (q *queue) pop() flight {
	h := *q
	first := h[0]
	end := len(h) - 1
	h[0] = h[end]
	h[end] = flight{}
	h = h[:end]
	*q = h
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < end; child++ {
			if h[child].before(&h[least]) {
				least = child
			}
		}
		if least == i {
			return first
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}
