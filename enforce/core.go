//go:build !subak_portable

package enforce

import _ "unsafe" // for linkname

// procPin returns a small number that goroutines running at the same time on
// different cores do not share, that of the scheduler's processor, and procUnpin
// ends what goes with it. After that the goroutine may run elsewhere: the number is
// a hint on whose cache a line is in, and never a right to anything.
//
// sync.Pool finds its own processor so, in 3 ns; Get and Put of a Pool take 12. The
// runtime keeps the two names linkable for packages that do this; if that ends,
// build with the tag subak_portable.
//
//go:linkname procPin runtime.procPin
func procPin() int

//go:linkname procUnpin runtime.procUnpin
func procUnpin()
