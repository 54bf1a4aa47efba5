package chaos

// Shrink removes elements from a failing list as long as it keeps failing, and
// returns the shorter list; items itself is not changed. fails must accept any
// subsequence. It is asked at most tries times. The result cannot be made
// shorter by taking out any one element, if tries sufficed.
//
// Source: Zeller and Hildebrandt, Simplifying and Isolating Failure-Inducing
// Input (delta debugging), reduced to complements: ever smaller chunks are left
// out.
func Shrink[T any](items []T, tries int, fails func([]T) bool) []T {
	list := append([]T(nil), items...)
	without := make([]T, 0, len(list))
	for size := (len(list) + 1) / 2; size > 0 && tries > 0; {
		removed := false
		// From the end: what comes late is least needed by what remains.
		for end := len(list); end > 0 && tries > 0; end -= size {
			start := max(0, end-size)
			without = append(append(without[:0], list[:start]...), list[end:]...)
			tries--
			if fails(without) {
				list, without = without, list
				removed = true
			}
		}
		if size > 1 {
			size = (size + 1) / 2
		} else if !removed {
			break
		}
	}
	return list
}
