package demo

import "syscall"

// childAttributes: a process group of its own, so that a signal to the demo is
// not one to the nodes, and death with the parent, so that nothing is left.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
