//go:build !subak_portable

package enforce

import _ "unsafe" // for linkname

// core returns a small number that goroutines running at the same time on
// different cores do not share: that of the scheduler's processor. By the time it
// is used the goroutine may run elsewhere, so it is a hint on whose cache a line
// is in, and never a right to anything.
//
// Pinning is what sync.Pool does to find its own processor, in 3 ns; Get and Put
// of a Pool take 12, and cannot be told how many there are. The runtime keeps the
// two names linkable for packages that do this; if that ends, build with the tag
// subak_portable.
func core() int {
	p := procPin()
	procUnpin()
	return p
}

//go:linkname procPin runtime.procPin
func procPin() int

//go:linkname procUnpin runtime.procUnpin
func procUnpin()
