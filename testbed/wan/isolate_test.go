//go:build linux

package wan

import (
	"os/exec"
	"syscall"
	"testing"
)

// dieWithParent ties a process to the thread that starts it.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// burner starts a process that keeps one core busy until the test ends.
func burner(b testing.TB) {
	cmd := exec.Command("sh", "-c", "while :; do :; done")
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
}
