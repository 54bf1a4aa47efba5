//go:build amd64 || arm64

package clock

// haveTicks says whether the CPU has a counter that programs can read.
const haveTicks = true

// readTicks reads the CPU's counter, and may do so before instructions that come
// earlier are done.
//
//go:noescape
func readTicks() uint64

// readTicksInOrder reads the CPU's counter once all earlier loads are done.
//
//go:noescape
func readTicksInOrder() uint64
