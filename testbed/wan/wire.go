//go:build linux

package wan

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// batch is how many packets are read from a host before those due are delivered
// and the next host is served.
const batch = 64

// wire is the one thread that moves packets between the devices and the core.
type wire struct {
	core  *core
	hosts []*Host
	wake  int // eventfd: written to stop
	ended chan error
}

func startWire(c *core, hosts []*Host) (*wire, error) {
	wake, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("wan: eventfd: %w", err)
	}
	w := &wire{core: c, hosts: hosts, wake: wake, ended: make(chan error, 1)}
	go func() {
		runtime.LockOSThread() // never unlocked: its priority must not reach others
		raise()
		w.ended <- w.run()
	}()
	return w, nil
}

// close stops the thread and waits for it.
func (w *wire) close() error {
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	if _, err := unix.Write(w.wake, one[:]); err != nil {
		return fmt.Errorf("wan: stop the switch: %w", err)
	}
	return errors.Join(<-w.ended, unix.Close(w.wake))
}

func (w *wire) run() error {
	start := time.Now()
	now := func() int64 { return int64(time.Since(start)) }
	fds := make([]unix.PollFd, len(w.hosts)+1)
	for i, h := range w.hosts {
		fds[i] = unix.PollFd{Fd: int32(h.inside.tun), Events: unix.POLLIN}
	}
	stop := &fds[len(w.hosts)]
	*stop = unix.PollFd{Fd: int32(w.wake), Events: unix.POLLIN}
	buffer := make([]byte, 1<<16)
	for {
		var timeout *unix.Timespec
		if wait := w.deliver(now); wait >= 0 {
			t := unix.NsecToTimespec(wait)
			timeout = &t
		}
		ready, err := unix.Ppoll(fds, timeout, nil)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("wan: the switch stopped: ppoll: %w", err)
		}
		if ready <= 0 {
			continue
		}
		if stop.Revents != 0 {
			return nil
		}
		for i := range w.hosts {
			if fds[i].Revents&unix.POLLIN != 0 {
				w.take(i, buffer, now)
				w.deliver(now)
			}
		}
	}
}

// take reads what a host sent.
func (w *wire) take(host int, buffer []byte, now func() int64) {
	for range batch {
		n, err := unix.Read(w.hosts[host].inside.tun, buffer)
		if err != nil || n <= 0 {
			return
		}
		w.core.receive(host, buffer[:n], now())
	}
}

// deliver writes all packets that are due; it returns how many ns remain until
// the next one is, negative when none is under way.
func (w *wire) deliver(now func() int64) int64 {
	for {
		dst, packet, wait, ok := w.core.next(now())
		if !ok {
			return wait
		}
		if _, err := unix.Write(w.hosts[dst].inside.tun, packet); err != nil {
			w.core.counts.refused.Add(1)
		} else {
			w.core.counts.delivered.Add(1)
		}
		w.core.release(packet)
	}
}
