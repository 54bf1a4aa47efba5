package clock

import (
	"bytes"
	"os"
)

// kernelCounts reports whether the kernel itself keeps time by the counter that
// readTicks reads: then it has found it steady and the same on every core.
func kernelCounts() bool {
	name, err := os.ReadFile("/sys/devices/system/clocksource/clocksource0/current_clocksource")
	if err != nil {
		return false
	}
	switch string(bytes.TrimSpace(name)) {
	case "tsc", "arch_sys_counter":
		return true
	}
	return false
}
