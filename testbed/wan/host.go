//go:build linux

package wan

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

const (
	tunPath  = "/dev/net/tun"
	device   = "wan0" // the TUN in every host
	namesDir = "/run/netns"
	// tunQueue is how many packets wait in a host's kernel for the switch; a
	// burst of TCP is larger than the 500 that a TUN has by itself.
	tunQueue = 5000
)

// inside is what a host has in the kernel.
type inside struct {
	mu      sync.RWMutex // guards space
	space   netns.NsHandle
	tun     int // -1 once the switch has it
	netlink *netlink.Handle
	name    string      // file of the namespace, "" if there is none
	starts  chan func() // run on the thread that is the parent of its processes
}

// newHost makes the namespace of a host with its TUN up and addressed. Routes
// leads to further addresses that are reached through the switch.
func newHost(position int, name string, mtu int, routes []netip.Addr) (*Host, error) {
	h := &Host{Name: name, V4: address4(position), V6: address6(position)}
	h.inside = inside{space: netns.None(), tun: -1, starts: make(chan func())}
	built := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread is the host's
		err := h.build(mtu, routes)
		built <- err
		if err != nil {
			return
		}
		for start := range h.inside.starts {
			start()
		}
	}()
	if err := <-built; err != nil {
		return nil, errors.Join(fmt.Errorf("wan: host %s: %w", name, err), h.close())
	}
	return h, nil
}

// build runs on the thread of the host.
func (h *Host) build(mtu int, routes []netip.Addr) error {
	space, err := netns.New()
	if err != nil {
		return fmt.Errorf("make a network namespace: %w", err)
	}
	in := &h.inside
	in.space = space
	in.name = bindName(h.Name)
	if in.netlink, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
		return fmt.Errorf("open netlink: %w", err)
	}
	if err := loopbackUp(); err != nil {
		return fmt.Errorf("bring up the loopback: %w", err)
	}
	if in.tun, err = openTUN(device); err != nil {
		return err
	}
	// No router is there to be asked, and no link-local address is needed. Without
	// these the kernel only sends some packets more.
	_ = os.WriteFile("/proc/sys/net/ipv6/conf/"+device+"/accept_ra", []byte("0"), 0)
	_ = os.WriteFile("/proc/sys/net/ipv6/conf/"+device+"/addr_gen_mode", []byte("1"), 0)
	return h.address(mtu, routes)
}

// address configures the TUN.
func (h *Host) address(mtu int, routes []netip.Addr) error {
	nl := h.inside.netlink
	link, err := nl.LinkByName(device)
	if err != nil {
		return fmt.Errorf("find %s: %w", device, err)
	}
	if err := nl.LinkSetMTU(link, mtu); err != nil {
		return fmt.Errorf("set MTU %d: %w", mtu, err)
	}
	if err := nl.LinkSetTxQLen(link, tunQueue); err != nil {
		return fmt.Errorf("set queue length: %w", err)
	}
	if err := nl.LinkSetUp(link); err != nil {
		return fmt.Errorf("bring up %s: %w", device, err)
	}
	for _, prefix := range []netip.Prefix{netip.PrefixFrom(h.V4, bits4), netip.PrefixFrom(h.V6, bits6)} {
		addr := &netlink.Addr{IPNet: ipNet(prefix)}
		if prefix.Addr().Is6() {
			addr.Flags = unix.IFA_F_NODAD // otherwise tentative until a worker of the kernel has run
		}
		if err := nl.AddrAdd(link, addr); err != nil {
			return fmt.Errorf("add address %s: %w", prefix, err)
		}
	}
	for _, to := range routes {
		route := &netlink.Route{LinkIndex: link.Attrs().Index, Dst: ipNet(netip.PrefixFrom(to, to.BitLen()))}
		if err := nl.RouteAdd(route); err != nil {
			return fmt.Errorf("add route to %s: %w", to, err)
		}
	}
	return nil
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// openTUN makes a TUN in the namespace of this thread; it goes when the file
// descriptor is closed.
func openTUN(name string) (int, error) {
	// Not as an os.File: the runtime's poller would wake up for every packet.
	fd, err := unix.Open(tunPath, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return -1, deviceTrouble(err)
	}
	request, err := unix.NewIfreq(name)
	if err == nil {
		request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, fmt.Errorf("make TUN %s: %w", name, err)
	}
	return fd, nil
}

// loopbackUp brings up the loopback of this thread's namespace.
func loopbackUp() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(lo)
}

// bindName gives this thread's namespace a file for `ip netns`, where Isolate
// has prepared the directory; otherwise it returns "".
func bindName(name string) string {
	var fs unix.Statfs_t
	if unix.Statfs(namesDir, &fs) != nil || fs.Type != unix.TMPFS_MAGIC {
		return ""
	}
	path := filepath.Join(namesDir, name)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o444)
	if err != nil {
		return ""
	}
	f.Close()
	if err := unix.Mount("/proc/thread-self/ns/net", path, "", unix.MS_BIND, ""); err != nil {
		_ = os.Remove(path)
		return ""
	}
	return path
}

// close gives back what the host has in the kernel.
func (h *Host) close() error {
	in := &h.inside
	in.mu.Lock()
	defer in.mu.Unlock()
	var errs []error
	if in.tun >= 0 {
		errs = append(errs, unix.Close(in.tun))
		in.tun = -1
	}
	if in.netlink != nil {
		in.netlink.Close()
	}
	if in.name != "" {
		errs = append(errs, unix.Unmount(in.name, unix.MNT_DETACH), os.Remove(in.name))
		in.name = ""
	}
	if in.space.IsOpen() {
		errs = append(errs, in.space.Close()) // which makes it None
		close(in.starts)
	}
	return errors.Join(errs...)
}

// releaseTUN gives the device of the host away.
func (h *Host) releaseTUN() *os.File {
	h.inside.mu.Lock()
	defer h.inside.mu.Unlock()
	f := os.NewFile(uintptr(h.inside.tun), device)
	h.inside.tun = -1
	return f
}

// enter puts this thread into the host.
func (h *Host) enter() error {
	h.inside.mu.RLock()
	defer h.inside.mu.RUnlock()
	if !h.inside.space.IsOpen() {
		return fmt.Errorf("wan: host %s: %w", h.Name, net.ErrClosed)
	}
	return netns.Set(h.inside.space)
}

// Do runs f on a thread inside the host's network namespace: sockets that f makes
// there stay there. Goroutines that f starts are not inside, and a name looked up
// by f may be asked for outside.
func (h *Host) Do(f func() error) error {
	return onThread(func() error {
		if err := h.enter(); err != nil {
			return err
		}
		return f()
	})
}

// Start starts cmd as a process of the host. The parent of the process, as its
// Pdeathsig understands it, is a thread that lives until Close.
func (h *Host) Start(cmd *exec.Cmd) error {
	h.inside.mu.RLock()
	defer h.inside.mu.RUnlock()
	if !h.inside.space.IsOpen() {
		return fmt.Errorf("wan: host %s: %w", h.Name, net.ErrClosed)
	}
	done := make(chan error, 1)
	h.inside.starts <- func() { done <- cmd.Start() }
	return <-done
}

// Listen listens inside the host. The address is a literal IP, or none for all,
// and a port; for a unix socket it is a path.
func (h *Host) Listen(network, address string) (l net.Listener, err error) {
	if err := literal(network, address); err != nil {
		return nil, err
	}
	err = h.Do(func() error {
		var config net.ListenConfig
		config.SetMultipathTCP(false)
		l, err = config.Listen(context.Background(), network, address)
		return err
	})
	return l, err
}

// ListenPacket opens a socket for datagrams inside the host; see Listen.
func (h *Host) ListenPacket(network, address string) (c net.PacketConn, err error) {
	if err := literal(network, address); err != nil {
		return nil, err
	}
	err = h.Do(func() error {
		c, err = net.ListenPacket(network, address)
		return err
	})
	return c, err
}

// DialContext connects from inside the host. The address is a literal IP and a
// port, or the path of a unix socket. A thread is held until it is done.
func (h *Host) DialContext(ctx context.Context, network, address string) (c net.Conn, err error) {
	if err := literal(network, address); err != nil {
		return nil, err
	}
	err = h.Do(func() error {
		var d net.Dialer
		c, err = d.DialContext(ctx, network, address)
		return err
	})
	return c, err
}

// literal refuses an address that would have to be looked up: the resolver works
// on other threads, which are outside.
func literal(network, address string) error {
	if strings.HasPrefix(network, "unix") {
		return nil
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("wan: %w", err)
	}
	if _, err := netip.ParseAddr(host); err != nil && host != "" {
		return fmt.Errorf("wan: address %q: a literal IP is needed, names are not looked up inside a host", address)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("wan: address %q: a port number is needed", address)
	}
	return nil
}
