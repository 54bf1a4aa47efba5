//go:build !linux

package doctor

// checkClock warns: without CLOCK_BOOTTIME a suspend is not seen.
func (x *examination) checkClock() {
	x.warn("clock", "run nodes on Linux", "this system has no CLOCK_BOOTTIME: after a suspend of the machine, loans that have ended are used for as long as it slept")
}
