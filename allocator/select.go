package allocator

// Remainders follow the demand that clients make, so an adversary can shape
// them. The selection (of more than fewCells; see selectFew) is therefore a
// radix selection: one counting pass over fixed-width digits after the other,
// most significant first, each over the candidates left by the one before. The
// number of passes is bounded by the word width whatever the input; there is no
// pivot to spoil.
const (
	wideBits = 10
	// Up to smallSet candidates are sorted by insertion.
	smallSet = 12
)

// selectLargest chooses the count largest of rem, ties to the lower index. It
// returns least and cut such that exactly those at least as large as least are
// chosen before index cut, and those larger than least from cut on. All of rem
// must be below 2^63; count must be at least 1 and below len(rem).
func (s *scratch) selectLargest(rem []uint64, count uint64) (least uint64, cut int) {
	const shift = 63 - wideBits
	digit, count, all := s.wideDigit(rem, shift, count)
	least = digit << shift
	if all {
		return least, len(rem)
	}
	pick := s.keepDigit(s.pick, rem, shift, digit)
	least, take, ties := s.nthLargest(pick, shift, count)
	if take == ties {
		return least, len(rem)
	}
	for i, r := range rem {
		if r == least {
			if take--; take == 0 {
				return least, i + 1
			}
		}
	}
	panic("allocator: fewer ties than counted")
}

// wideDigit finds the digit, the wideBits bits from shift up, of the count-th
// largest of rem by that digit. It returns how many remainders with that digit
// are chosen, and whether those are all of them.
func (s *scratch) wideDigit(rem []uint64, shift uint, count uint64) (digit, chosen uint64, all bool) {
	s.passes++
	hist := &s.wide
	clear(hist[:])
	for _, r := range rem {
		hist[r>>(shift&63)&(1<<wideBits-1)]++
	}
	j := len(hist) - 1
	for j > 0 && uint64(hist[j]) < count {
		count -= uint64(hist[j])
		j--
	}
	return uint64(j), count, uint64(hist[j]) == count
}

// keepDigit copies to out, which may be set itself, those of set whose digit at
// shift is digit, in order.
func (s *scratch) keepDigit(out, set []uint64, shift uint, digit uint64) []uint64 {
	s.passes++
	return withDigit(out[:len(set)], set, shift, digit)
}

//go:noinline
func withDigit(out, set []uint64, shift uint, digit uint64) []uint64 {
	found := 0
	for _, r := range set {
		out[found] = r
		found += isZero((r>>(shift&63) ^ digit) & (1<<wideBits - 1))
	}
	return out[:found]
}

// nthLargest returns the count-th largest element of set, which agrees from bit
// shift up; how many elements equal to it are among the count largest; and how
// many there are. It reorders set.
func (s *scratch) nthLargest(set []uint64, shift uint, count uint64) (nth uint64, take, ties int) {
	for len(set) > smallSet && shift > 0 {
		shift -= min(shift, wideBits)
		var digit uint64
		digit, count, _ = s.wideDigit(set, shift, count)
		set = s.keepDigit(set, set, shift, digit)
	}
	if shift > 0 {
		sortDescending(set)
	}
	nth = set[count-1]
	for i, r := range set {
		if r == nth {
			ties++
			if uint64(i) < count {
				take++
			}
		}
	}
	return nth, take, ties
}

// sortDescending sorts a set of at most smallSet elements.
func sortDescending(set []uint64) {
	for i := 1; i < len(set); i++ {
		x := set[i]
		j := i
		for ; j > 0 && set[j-1] < x; j-- {
			set[j] = set[j-1]
		}
		set[j] = x
	}
}

// isZero is 1 if x is 0, else 0, without a branch; x must be below 2^63.
func isZero(x uint64) int { return int((x - 1) >> 63) }
