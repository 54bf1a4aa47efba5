//go:build !linux

package child

// awaitStopped: elsewhere the signal has to do.
func (p *Process) awaitStopped() error { return nil }
