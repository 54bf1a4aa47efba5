//go:build !linux

package child

import "syscall"

// attributes: where a child cannot ask to die with its parent, a parent that is
// itself killed by SIGKILL leaves its children running.
func attributes(bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
