//go:build linux

package wan

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// The program runs several times: outside, as it was called; as the first process
// of the new namespaces, which only furnishes them, passes on signals and reaps;
// and inside, where Isolate returns. The variable tells them apart. New runs it
// once more, as the switch.
const (
	stageVariable = "SUBAK_WAN_STAGE"
	stageInit     = "init"
	stageInside   = "inside"
	reportFD      = 3 // the init says through it whether all went well
	reportOK      = "ok"
)

const namespaces = syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID |
	syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS

// ErrNotIsolated says that the process is not in namespaces of its own.
var ErrNotIsolated = errors.New("wan: not in namespaces of its own")

// Isolate runs the program again in fresh network, process, mount, IPC and host
// name namespaces (for an ordinary user in a user namespace too) and returns nil
// only in there: the innermost process sees itself as root, with a network that
// has a loopback and nothing else and with a /proc of its own. The file system,
// the working directory, arguments, environment and standard streams are those
// of the caller.
//
// The calling process never returns then. It passes on HUP, INT, QUIT, TERM,
// USR1 and USR2, waits, and ends with the status of the inner one (128 + n for a
// death by signal n). If it is killed itself, the kernel kills everything inside.
//
// An error means that this cannot be had here, and why: the process goes on as
// it was. Call it first in main or TestMain, before any goroutine, and once.
func Isolate() error {
	switch os.Getenv(stageVariable) {
	case stageInit:
		os.Exit(beInit())
	case stageSwitch:
		os.Exit(beSwitch())
	case stageInside:
		if os.Getppid() != 1 {
			return fmt.Errorf("%w: %s is set from outside", ErrNotIsolated, stageVariable)
		}
		return errors.Join(os.Unsetenv(stageVariable), os.Setenv(readyVariable, strconv.Itoa(os.Getpid())))
	}
	// The death signal of a child is bound to the thread that started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	signals := passedOn()
	defer signal.Stop(signals)
	user := os.Geteuid() != 0
	child, err := startInit(user)
	if errors.Is(err, unix.EPERM) && !user {
		// Root without the right to make namespaces, as in a plain container.
		child, err = startInit(true)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotIsolated, err)
	}
	go forward(signals, child.Process)
	os.Exit(status(child.Wait()))
	panic("unreachable")
}

// startInit starts the first process of the namespaces and waits until it has
// furnished them.
func startInit(user bool) (*exec.Cmd, error) {
	report, reporter, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer report.Close()
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), stageVariable+"="+stageInit)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.ExtraFiles = []*os.File{reporter} // becomes reportFD
	cmd.SysProcAttr = newNamespaces(user)
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	// A session of its own: a Ctrl-C reaches the caller only, which passes it on
	// once.
	cmd.SysProcAttr.Setsid = true
	err = cmd.Start()
	reporter.Close()
	if err != nil {
		return nil, fmt.Errorf("make namespaces: %w", err)
	}
	said, err := io.ReadAll(report)
	if err == nil && string(said) == reportOK {
		return cmd, nil
	}
	ended := cmd.Wait()
	if len(said) > 0 {
		return nil, errors.New(string(said))
	}
	return nil, fmt.Errorf("the first process inside ended: %w", errors.Join(err, ended))
}

// newNamespaces asks for the namespaces, under a user namespace in which the
// caller is root when user is set.
func newNamespaces(user bool) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Cloneflags: namespaces}
	if user {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	return attr
}

// beInit is the life of the first process: when it ends, the kernel kills all
// others in there.
func beInit() int {
	unix.CloseOnExec(reportFD)
	report := os.NewFile(reportFD, "report")
	signals := passedOn()
	inner, err := furnishAndStart()
	if err != nil {
		fmt.Fprint(report, err)
		return 125
	}
	fmt.Fprint(report, reportOK)
	report.Close()
	go forward(signals, inner)
	return reap(inner.Pid)
}

func furnishAndStart() (*os.Process, error) {
	if err := furnish(); err != nil {
		return nil, err
	}
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, stageVariable+"=") {
			env = append(env, v)
		}
	}
	inner, err := os.StartProcess("/proc/self/exe", os.Args, &os.ProcAttr{
		Env:   append(env, stageVariable+"="+stageInside),
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
	})
	if err != nil {
		return nil, fmt.Errorf("run inside: %w", err)
	}
	return inner, nil
}

// furnish makes the namespaces usable. Mounts are private from here on; /sys
// stays that of outside, so that /sys/fs/cgroup can be used.
func furnish() error {
	if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount a fresh /proc (masked in plain containers): %w", err)
	}
	// Names for `ip netns`, a convenience only: nothing is made if the directory
	// is not there.
	if _, err := os.Stat(namesDir); err == nil {
		_ = unix.Mount("tmpfs", namesDir, "tmpfs", 0, "mode=755")
	}
	if err := loopbackUp(); err != nil {
		return fmt.Errorf("bring up the loopback: %w", err)
	}
	tun, err := openTUN("probe")
	if err != nil {
		return err
	}
	return unix.Close(tun)
}

// reap waits for every process that ends, and returns the status of the one
// given when that does.
func reap(pid int) int {
	for {
		var ws unix.WaitStatus
		ended, err := unix.Wait4(-1, &ws, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 125
		case ended == pid && ws.Signaled():
			return 128 + int(ws.Signal())
		case ended == pid && ws.Exited():
			return ws.ExitStatus()
		}
	}
}

// passedOn catches the signals that mean the inner process.
func passedOn() chan os.Signal {
	c := make(chan os.Signal, 64)
	for _, s := range []os.Signal{
		unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2,
	} {
		if !signal.Ignored(s) { // as under nohup
			signal.Notify(c, s)
		}
	}
	return c
}

func forward(signals <-chan os.Signal, p *os.Process) {
	for s := range signals {
		_ = p.Signal(s) // it may have ended
	}
}

// status is the exit status that a finished process stands for.
func status(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case !errors.As(err, &exit):
		return 125
	case exit.ExitCode() >= 0:
		return exit.ExitCode()
	}
	return 128 + int(exit.Sys().(syscall.WaitStatus).Signal())
}
