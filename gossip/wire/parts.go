package wire

import "subak/allocator/ledger"

// What is longer than a datagram travels in parts of PartSize bytes (the last
// one shorter), each naming the whole, its total length and the part's offset.

// whole names what a part is part of. All fields must agree for two parts to
// belong together.
type whole struct {
	kind   Kind
	digest uint64 // of a vector
	id     ledger.EpochID
	parent ledger.EpochID
	total  int // bytes
}

// Bounds of the unfinished wholes: their number, and their age counted in parts
// that arrived since the last one that fitted.
const (
	maxAssemblies  = 16
	maxAssemblyAge = 4096
)

type assembly struct {
	whole
	parts [][]byte // by offset/PartSize; nil: not here yet
	have  int
	fed   uint64
}

// assemblies joins parts. What it holds is bounded by maxAssemblies times the
// greatest whole, and grows only by bytes that arrived.
type assemblies struct {
	open  []*assembly
	clock uint64 // parts seen
}

// add takes a part, whose length and offset were checked (partFits), and returns
// the joined bytes once all parts of the whole are here.
func (a *assemblies) add(w whole, offset int, part []byte) []byte {
	a.clock++
	if w.total == len(part) {
		return append([]byte{}, part...)
	}
	as := a.find(w)
	as.fed = a.clock
	if slot := &as.parts[offset/PartSize]; *slot == nil {
		*slot = append([]byte{}, part...)
		as.have++
	}
	if as.have < len(as.parts) {
		return nil
	}
	a.drop(as)
	joined := make([]byte, 0, w.total)
	for _, p := range as.parts {
		joined = append(joined, p...)
	}
	return joined
}

// find returns the assembly of w, opening it if need be in place of the one that
// was fed the longest ago.
func (a *assemblies) find(w whole) *assembly {
	var oldest *assembly
	for _, as := range a.open {
		if as.whole == w {
			return as
		}
		if oldest == nil || as.fed < oldest.fed {
			oldest = as
		}
	}
	if oldest != nil && (len(a.open) == maxAssemblies || a.clock-oldest.fed > maxAssemblyAge) {
		a.drop(oldest)
	}
	as := &assembly{whole: w, parts: make([][]byte, partCount(w.total))}
	a.open = append(a.open, as)
	return as
}

func (a *assemblies) drop(as *assembly) {
	for i := range a.open {
		if a.open[i] == as {
			last := len(a.open) - 1
			a.open[i], a.open[last] = a.open[last], nil
			a.open = a.open[:last]
			return
		}
	}
}

func partCount(total int) int { return (total + PartSize - 1) / PartSize }

// partFits reports whether a part of n bytes belongs at offset of total bytes.
func partFits(total, offset, n int) bool {
	return offset%PartSize == 0 && offset < total && n == min(PartSize, total-offset)
}
