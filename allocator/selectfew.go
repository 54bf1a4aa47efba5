package allocator

import "math/bits"

// The selection of the largest remainders among few cells. A cycle over few
// cells spends more on selection than on arithmetic, and branches that demand
// decides cost more than either, so this one has almost none.
//
// It is a radix selection by single bits over the leading digit of every
// remainder, with sets of cells as words: one "plane" for each bit of the
// digit, the set of the cells in whose remainder it is 1. From the top plane
// down, the cells still in question are halved by it. Only cells with equal
// digits are then compared in full.

const (
	// fewCells is the number of cells up to which selectFew chooses.
	fewCells = 64
	// lowBits is the lowest bit of each byte of a word.
	lowBits = 0x0101010101010101
)

// selectFew chooses the count largest of the first n of rem, ties to the lower
// index, and returns them as a set: bit i is cell i. All of rem must be below
// 2^63, n at most fewCells, count at least 1 and below n. The length of rem
// must be a multiple of 8; what it holds from n on does not matter.
//
// It takes O(n) steps, and O(n^2) if remainders agree in their first 7 bits but
// differ from each other; n being at most fewCells, that too is a constant, and
// no more than the radix passes of selectLargest take over as many such cells.
//
//go:noinline
func selectFew(rem []uint64, n int, count uint64) (chosen uint64) {
	var p6, p5, p4, p3, p2, p1, p0 uint64
	// One word holds the digits, bits 56 to 62, of 8 cells, one in each byte.
	// In the planes byte j, bit g is cell 8g+j: so the bits of one word go to
	// their planes together, and move up as the words before it follow.
	for at := (n - 1) / 8 * 8; at >= 0; at -= 8 {
		r := (*[8]uint64)(rem[at:])
		w := r[0]>>56 | r[1]>>56<<8 | r[2]>>56<<16 | r[3]>>56<<24 |
			r[4]>>56<<32 | r[5]>>56<<40 | r[6]>>56<<48 | r[7]>>56<<56
		if at+8 > n {
			w &= 1<<(n%8*8) - 1
		}
		p6 = p6*2 + w>>6&lowBits
		p5 = p5*2 + w>>5&lowBits
		p4 = p4*2 + w>>4&lowBits
		p3 = p3*2 + w>>3&lowBits
		p2 = p2*2 + w>>2&lowBits
		p1 = p1*2 + w>>1&lowBits
		p0 = p0*2 + w&lowBits
	}
	s := halving{open: ^uint64(0), count: int64(count)}
	s = s.by(p6).by(p5).by(p4).by(p3).by(p2).by(p1).by(p0)
	if int64(bits.OnesCount64(s.open)) == s.count {
		return transpose(s.sure | s.open)
	}

	cells := uint64(1)<<n - 1 // places from n on count as digit 0
	return transpose(s.sure) | largestOf(rem, transpose(s.open)&cells, int(s.count))
}

// halving is a selection under way: the cells chosen for sure, those still in
// question, and how many of these are to be chosen.
type halving struct {
	sure, open uint64
	count      int64
}

// by decides between the open cells in plane, which are larger, and the others.
// The three conditions are one, written so that each is a conditional move.
func (s halving) by(plane uint64) halving {
	high := s.open & plane
	next := halving{s.sure | high, s.open &^ plane, s.count - int64(bits.OnesCount64(high))}
	enough := next.count <= 0
	if enough {
		next.count = s.count
	}
	if enough {
		next.open = high
	}
	if enough {
		next.sure = s.sure
	}
	return next
}

// transpose swaps the bits 8g+j and 8j+g for all g and j: single bits within
// squares of 2 by 2, then squares within larger ones.
func transpose(x uint64) uint64 {
	t := (x ^ x>>7) & 0x00aa00aa00aa00aa
	x ^= t ^ t<<7
	t = (x ^ x>>14) & 0x0000cccc0000cccc
	x ^= t ^ t<<14
	t = (x ^ x>>28) & 0x00000000f0f0f0f0
	return x ^ t ^ t<<28
}

// largestOf chooses count cells of set with the largest remainders, ties to the
// lower index. The set must hold as many.
func largestOf(rem []uint64, set uint64, count int) (chosen uint64) {
	for count > 0 {
		var best, ties uint64
		for rest := set; rest != 0; rest &= rest - 1 {
			r := rem[bits.TrailingZeros64(rest)]
			if r > best {
				best, ties = r, 0
			}
			if r == best {
				ties |= rest & -rest
			}
		}
		if ties == 0 {
			panic("allocator: fewer candidates than counted")
		}
		set &^= ties
		for ; ties != 0 && count > 0; ties &= ties - 1 {
			chosen |= ties & -ties
			count--
		}
	}
	return chosen
}

// bumpSet adds one to every cell of set.
//
//go:noinline
func bumpSet(out []Rate, set uint64) {
	for i := range out {
		out[i] += Rate(set & 1)
		set >>= 1
	}
}
