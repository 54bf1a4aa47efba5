//go:build !linux

package child

import "syscall"

func pdeathsig(*syscall.SysProcAttr) syscall.Signal { return 0 }
