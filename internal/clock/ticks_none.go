//go:build !amd64 && !arm64

package clock

const haveTicks = false

func readTicks() uint64 { return 0 }

func readTicksInOrder() uint64 { return 0 }
