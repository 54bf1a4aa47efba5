package place

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Find looks at the cores that this process may use.
func Find() Place {
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
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, favour) // what is not allowed is done without
	if path, err = exec.LookPath(path); err != nil {
		return err
	}
	return fmt.Errorf("run %s: %w", path, syscall.Exec(path, append([]string{path}, args...), os.Environ()))
}

// favour is the priority (-20 the highest, 0 the usual one) of everything that is
// measured, where that is allowed, so that what else the machine does disturbs
// less.
const favour = -15

// autogroup is where the scheduler keeps the priority of this session beside
// other sessions; within one, that of the threads counts.
const autogroup = "/proc/self/autogroup"

// Favour raises the priority of this process, and so of what it starts. The
// session's is lowered again by the function returned.
func Favour() (restore func()) {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return func() {}
	}
	for _, t := range threads {
		if id, err := strconv.Atoi(t.Name()); err == nil {
			_ = unix.Setpriority(unix.PRIO_PROCESS, id, favour) // what is not allowed is done without
		}
	}
	text, err := os.ReadFile(autogroup)
	if err != nil {
		return func() {}
	}
	_, before, ok := strings.Cut(strings.TrimSpace(string(text)), " nice ")
	if !ok || os.WriteFile(autogroup, []byte(strconv.Itoa(favour)), 0) != nil {
		return func() {}
	}
	return func() { _ = os.WriteFile(autogroup, []byte(before), 0) }
}

// CPUTime is the CPU time that a process has used with all its threads. It is
// exact, where /proc/PID/stat counts in steps of 10 ms.
func CPUTime(pid int) (time.Duration, error) {
	const processClock = 2 // of all threads, as the scheduler counts it
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|processClock), &ts); err != nil {
		return 0, fmt.Errorf("cpu time of process %d: %w", pid, err)
	}
	return time.Duration(ts.Nano()), nil
}
