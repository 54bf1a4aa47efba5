//go:build linux

package wan

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// batch is how many packets are read from a host before those due are delivered
// and the next host is served.
const batch = 64

// wire moves packets between the devices and the core. It is one thread.
type wire struct {
	core   *core
	tuns   []int // of the hosts, non-blocking
	start  time.Time
	buffer []byte
}

// run forwards packets until that fails.
func run(c *core, tuns []int) error {
	w := &wire{core: c, tuns: tuns, start: time.Now(), buffer: make([]byte, 1<<16)}
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	fds := make([]unix.PollFd, len(tuns))
	for i, tun := range tuns {
		fds[i] = unix.PollFd{Fd: int32(tun), Events: unix.POLLIN}
	}
	for {
		var timeout *unix.Timespec
		if wait := w.deliver(); wait >= 0 {
			t := unix.NsecToTimespec(wait)
			timeout = &t
		}
		ready, err := unix.Ppoll(fds, timeout, nil)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("ppoll: %w", err)
		}
		for i := range fds {
			if ready > 0 && fds[i].Revents != 0 {
				if err := w.take(i); err != nil {
					return err
				}
				w.deliver()
			}
		}
	}
}

// now is the clock of the core, in ns.
func (w *wire) now() int64 { return int64(time.Since(w.start)) }

// take reads what a host sent.
func (w *wire) take(host int) error {
	for range batch {
		n, err := unix.Read(w.tuns[host], w.buffer)
		switch {
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
			return nil
		case err != nil:
			return fmt.Errorf("read from host %d: %w", host, err)
		}
		w.core.receive(host, w.buffer[:n], w.now())
	}
	return nil
}

// deliver writes all packets that are due; it returns how many ns remain until
// the next one is, negative when none is under way.
func (w *wire) deliver() int64 {
	for {
		dst, packet, wait, ok := w.core.next(w.now())
		if !ok {
			return wait
		}
		if _, err := unix.Write(w.tuns[dst], packet); err != nil {
			w.core.counts.refused.Add(1)
		} else {
			w.core.counts.delivered.Add(1)
		}
		w.core.release(packet)
	}
}
