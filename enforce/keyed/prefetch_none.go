//go:build !amd64 && !arm64

package keyed

import "unsafe"

func prefetch(unsafe.Pointer) {}
