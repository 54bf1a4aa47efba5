package web

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// address is a parsed and resolved listen address: a TCP address or the path of
// a unix socket.
type address struct {
	text string       // as configured
	host string       // name or IP as configured; "" for a socket or all interfaces
	tcp  *net.TCPAddr // nil for a socket
	path string       // "" for TCP
}

// parseListen resolves "host:port" or "unix:/path". A host name is resolved
// here, once, so that what is checked for loopback is what gets bound.
func parseListen(text string) (address, error) {
	if text == "" {
		text = DefaultListen
	}
	if path, ok := strings.CutPrefix(text, "unix:"); ok {
		if path == "" {
			return address{}, errors.New("admin: listen unix: names no path: use unix:/run/subak.sock")
		}
		return address{text: text, path: path}, nil
	}
	host, _, err := net.SplitHostPort(text)
	if err != nil {
		return address{}, fmt.Errorf("admin: listen %q: %w: use host:port or unix:/path", text, err)
	}
	tcp, err := net.ResolveTCPAddr("tcp", text)
	if err != nil {
		return address{}, fmt.Errorf("admin: listen %q: %w", text, err)
	}
	return address{text: text, host: host, tcp: tcp}, nil
}

// String is the address as configured.
func (a address) String() string { return a.text }

// exposed says whether another machine could connect.
func (a address) exposed() bool { return a.tcp != nil && !a.tcp.IP.IsLoopback() }

// listen binds the address.
func (a address) listen() (net.Listener, error) {
	if a.tcp == nil {
		return listenUnix(a.path)
	}
	l, err := net.ListenTCP("tcp", a.tcp)
	if err != nil {
		return nil, fmt.Errorf("admin: listen on %s: %w", a, err)
	}
	return l, nil
}

// socket is a unix listener that removes its path when it closes, once.
type socket struct {
	*net.UnixListener
	path  string
	once  sync.Once
	inode os.FileInfo
}

// Close closes the listener, then removes the path unless another process has
// put its own socket there meanwhile.
func (s *socket) Close() error {
	err := s.UnixListener.Close()
	s.once.Do(func() {
		if now, statErr := os.Lstat(s.path); statErr == nil && os.SameFile(now, s.inode) {
			_ = os.Remove(s.path) // the listener is closed either way
		}
	})
	return err
}

// listenUnix binds a socket that owner and group may use. It is made in a
// private directory, given its mode there and renamed into place, so that at no
// moment others could connect, and a socket left behind by a crash is replaced.
func listenUnix(path string) (net.Listener, error) {
	if err := refuseTaken(path); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), ".subak-")
	if err != nil {
		return nil, fmt.Errorf("admin: listen on unix:%s: %w", path, err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	private := filepath.Join(dir, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: private, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("admin: listen on unix:%s: %w", path, err)
	}
	l.SetUnlinkOnClose(false)
	if err := errors.Join(os.Chmod(private, 0o660), os.Rename(private, path)); err != nil {
		l.Close()
		return nil, fmt.Errorf("admin: listen on unix:%s: %w", path, err)
	}
	inode, err := os.Lstat(path)
	if err != nil {
		l.Close()
		return nil, fmt.Errorf("admin: listen on unix:%s: %w", path, err)
	}
	return &socket{UnixListener: l, path: path, inode: inode}, nil
}

// refuseTaken fails when path is a socket in use, or something else than a
// socket, which must not be overwritten.
func refuseTaken(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("admin: listen on unix:%s: %w", path, err)
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("admin: listen on unix:%s: the path exists and is no socket: move it away or choose another path", path)
	}
	conn, err := net.Dial("unix", path)
	if err != nil {
		return nil // nobody listens: left behind by a crash
	}
	conn.Close()
	return fmt.Errorf("admin: listen on unix:%s: another process answers there: stop it or choose another path", path)
}
