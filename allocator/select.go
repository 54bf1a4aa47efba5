package allocator

// Remainders follow the demand that clients make, so an adversary can shape
// them. The selection is therefore a radix selection: one counting pass over
// fixed-width digits after the other, most significant first, each over the
// candidates left by the one before. The number of passes is bounded by the
// word width whatever the input; there is no pivot to spoil.
const (
	// Up to narrowCells cells the first digit is narrow, so that clearing and
	// scanning the histogram does not cost more than the cells.
	narrowCells = 64
	narrowBits  = 5
	wideBits    = 10
	// Up to smallSet candidates are sorted by insertion.
	smallSet = 12
)

// selectLargest chooses the count largest of rem, ties to the lower index. It
// returns least and cut such that exactly those at least as large as least are
// chosen before index cut, and those larger than least from cut on. The
// histogram of rem must be complete; count must be at least 1 and below
// len(rem).
func (p *rounding) selectLargest(rem []uint64, count uint32) (least uint64, cut int) {
	s := p.s
	digit, count, all := bucketOf(s.hist[:1<<p.width], count)
	least = digit << p.shift
	if all {
		return least, len(rem)
	}
	found := 0
	s.passes++
	pick := s.pick[:len(rem)]
	for _, r := range rem {
		pick[found] = r
		found += isZero(r>>p.shift ^ digit)
	}
	least, take, ties := s.nthLargest(pick[:found], p.shift, count)
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

// bucketOf finds the bucket in which the count-th largest element lies, from
// the top. It returns how many elements of that bucket are chosen, and whether
// that is all of them.
func bucketOf(hist []uint32, count uint32) (digit uint64, chosen uint32, all bool) {
	j := len(hist) - 1
	for j > 0 && hist[j] < count {
		count -= hist[j]
		j--
	}
	return uint64(j), count, hist[j] == count
}

// nthLargest returns the count-th largest element of set, which agrees above
// bit shift; how many elements equal to it are among the count largest; and how
// many there are. It reorders set.
func (s *scratch) nthLargest(set []uint64, shift uint, count uint32) (nth uint64, take, ties int) {
	for len(set) > smallSet && shift > 0 {
		width := min(shift, wideBits)
		shift -= width
		s.passes += 2
		hist := s.hist[:1<<width]
		clear(hist)
		mask := uint64(1)<<width - 1
		for _, r := range set {
			hist[r>>shift&mask]++
		}
		var digit uint64
		digit, count, _ = bucketOf(hist, count)
		found := 0
		for _, r := range set {
			set[found] = r
			found += isZero(r>>shift&mask ^ digit)
		}
		set = set[:found]
	}
	if shift > 0 {
		sortDescending(set)
	}
	nth = set[count-1]
	for i, r := range set {
		if r == nth {
			ties++
			if i < int(count) {
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
