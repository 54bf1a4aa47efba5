package web

import (
	"context"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// socketGet asks a server on a unix socket.
func socketGet(t *testing.T, path, route string) int {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		},
	}}
	resp, err := client.Get("http://subak" + route)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

func TestAUnixSocketServesOwnerAndGroupWithoutAToken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "admin.sock")
	s, err := New(Config{Listen: "unix:" + path}, &scripted{scene: fiveCities()})
	if err != nil {
		t.Fatal(err)
	}
	stop := runUntil(t, s)
	if s.Addr() != "unix:"+path {
		t.Errorf("Addr is %q", s.Addr())
	}
	if got := socketGet(t, path, "/v1/status"); got != 200 {
		t.Errorf("status: %d", got)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != fs.ModeSocket|0o660 {
		t.Errorf("mode %v, %v, want a socket for owner and group", info.Mode(), err)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	if err != nil || len(left) != 1 {
		t.Errorf("beside the socket: %v, %v", left, err)
	}
	if _, err := New(Config{Listen: "unix:" + path}, &scripted{}); err == nil || !strings.Contains(err.Error(), "another process answers") {
		t.Errorf("a socket in use was taken over: %v", err)
	}
	stop()
	if _, err := os.Lstat(path); err == nil {
		t.Error("the socket is left behind")
	}
}

func TestASocketLeftByACrashIsReplacedAndAFileIsNot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "admin.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	s := serve(t, Config{Listen: "unix:" + path}, &scripted{scene: fiveCities()})
	if got := socketGet(t, path, "/healthz"); got != 200 {
		t.Errorf("%s: %d", s.Addr(), got)
	}

	file := filepath.Join(t.TempDir(), "precious")
	if err := os.WriteFile(file, []byte("data"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(Config{Listen: "unix:" + file}, &scripted{}); err == nil {
		t.Error("a file was taken for a socket")
	}
	if data, _ := os.ReadFile(file); string(data) != "data" {
		t.Error("the file is gone")
	}
}
