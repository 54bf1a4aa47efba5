package doors

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// FindPlace looks at the cores that this process may use.
func FindPlace() Place {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return Place{}
	}
	var cpus []int
	for c := range len(set) * 64 {
		if set.IsSet(c) {
			cpus = append(cpus, c)
		}
	}
	return split(cpus)
}

// Pin binds this process to cores, listed as 0,1, and becomes another program. It
// returns only if that fails.
func Pin(cores, path string, args []string) error {
	cpus, err := parse(cores)
	if err != nil {
		return err
	}
	var set unix.CPUSet
	for _, c := range cpus {
		set.Set(c)
	}
	runtime.LockOSThread() // the thread that is bound is the one that becomes the program
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("bind to cores %s: %w", cores, err)
	}
	if path, err = exec.LookPath(path); err != nil {
		return err
	}
	return fmt.Errorf("run %s: %w", path, syscall.Exec(path, append([]string{path}, args...), os.Environ()))
}

// cpuTime is the CPU time that a process has used with all its threads. It is
// exact, where /proc/PID/stat counts in steps of 10 ms.
func cpuTime(pid int) (time.Duration, error) {
	const processClock = 2 // of all threads, as the scheduler counts it
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|processClock), &ts); err != nil {
		return 0, fmt.Errorf("cpu time of process %d: %w", pid, err)
	}
	return time.Duration(ts.Nano()), nil
}
