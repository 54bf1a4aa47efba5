//go:build linux

package wan

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// Check says in words what is missing here for Isolate and New, and the mend;
// nothing is missing when it is empty. It changes nothing.
func Check() []string {
	var missing []string
	if fd, err := unix.Open(tunPath, unix.O_RDWR|unix.O_CLOEXEC, 0); err != nil {
		missing = append(missing, deviceTrouble(err).Error())
	} else {
		_ = unix.Close(fd)
	}
	if err := tryNamespaces(); err != nil {
		missing = append(missing, fmt.Sprintf("namespaces cannot be made: %v; run as root, with "+
			"CAP_SYS_ADMIN in a container, or allow user namespaces (sysctl user.max_user_namespaces, "+
			"kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns)", err))
	}
	if _, err := os.Stat("/proc/sys/net/ipv6"); err != nil {
		missing = append(missing, "no IPv6: the kernel was started with ipv6.disable=1, or without the module")
	}
	return missing
}

// deviceTrouble says why the TUN device cannot be used and what helps.
func deviceTrouble(err error) error {
	mend := "see that the device is there and may be used"
	switch {
	case errors.Is(err, os.ErrNotExist):
		mend = "load the module (modprobe tun), or give the container the device (--device /dev/net/tun)"
	case errors.Is(err, os.ErrPermission):
		mend = "run as root, or let this user open it (chmod 666 /dev/net/tun), " +
			"or allow the device to the container"
	case errors.Is(err, unix.ENODEV), errors.Is(err, unix.ENXIO):
		mend = "load the module (modprobe tun)"
	}
	return fmt.Errorf("%s cannot be used: %w; %s", tunPath, err, mend)
}

// tryNamespaces makes namespaces that vanish at once: by a thread for one who
// may, otherwise by a child in a user namespace.
func tryNamespaces() error {
	err := onThread(func() error { return unix.Unshare(unix.CLONE_NEWNET) })
	if err == nil {
		return nil
	}
	path, lookErr := exec.LookPath("true")
	if lookErr != nil {
		return err
	}
	cmd := exec.Command(path)
	cmd.SysProcAttr = newNamespaces(true)
	return cmd.Run()
}

// onThread runs f on a thread that ends with it, whatever f did to the thread.
func onThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the runtime ends the thread
		done <- f()
	}()
	return <-done
}
