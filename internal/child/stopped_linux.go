package child

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// awaitStopped waits until every thread is stopped, or the process has ended. It
// leaves both for others to wait for.
func (p *Process) awaitStopped() error {
	for {
		err := unix.Waitid(unix.P_PID, p.PID(), nil, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
		switch {
		case err == nil, errors.Is(err, unix.ECHILD): // stopped or ended; ended and waited for
			return nil
		case !errors.Is(err, unix.EINTR):
			return fmt.Errorf("wait for the stop of %s: %w", p.name, err)
		}
	}
}
