//go:build linux

package wan

import "errors"

// ErrNotIsolated says that the process is not in namespaces of its own.
var ErrNotIsolated = errors.New("wan: not isolated")

// Isolate runs the program again in namespaces of its own and returns nil only
// in there; the calling process passes on signals and ends with the status of
// the inner one. An error means that this cannot be had here, and why: the
// process then goes on as it was.
func Isolate() error { return ErrNotIsolated }

// Check says in words what is missing here for Isolate and New; nothing is
// missing when it is empty.
func Check() []string { return nil }
