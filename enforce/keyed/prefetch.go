//go:build amd64 || arm64

package keyed

import "unsafe"

// prefetch has a line of memory brought into the cache. Any address will do, nil
// included: it is never read.
//
//go:noescape
func prefetch(line unsafe.Pointer)
