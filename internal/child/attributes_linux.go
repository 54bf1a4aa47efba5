package child

import "syscall"

// attributes: a process group of its own, so that a signal to the parent is not
// one to the children, and, where bound, death with the thread that starts it.
func attributes(bound bool) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true}
	if bound {
		a.Pdeathsig = syscall.SIGKILL
	}
	return a
}
