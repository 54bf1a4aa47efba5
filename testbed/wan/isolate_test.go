//go:build linux

package wan

import (
	"syscall"
)

// dieWithParent ties a process to the thread that starts it.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
