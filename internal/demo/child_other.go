//go:build !linux

package demo

import "syscall"

// childAttributes: where a child cannot ask to die with its parent, a demo that
// is itself killed by SIGKILL leaves its nodes running.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
