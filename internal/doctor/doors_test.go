package doctor

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"subak/internal/config"
)

// What keeps a door from opening is found before the node starts.
func TestDoorsThatCannotOpenAreFound(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := t.TempDir()
	garbage := filepath.Join(dir, "cert.pem")
	if err := os.WriteFile(garbage, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := parsed(t, fmt.Sprintf("listen: 127.0.0.63:0, seeds: %q, keys: [%q], profile: local", peers(t)[:1], testKey), nobody, dir)
	for _, listen := range []string{taken.Addr().String(), "unix:" + filepath.Join(dir, "missing", "envoy.sock"), "unix:" + filepath.Join(dir, "envoy.sock")} {
		var e config.Envoy
		if err := e.Listen.UnmarshalText([]byte(listen)); err != nil {
			t.Fatal(err)
		}
		cfg.Envoy = append(cfg.Envoy, e)
	}
	cfg.Listeners[0].TLS.CertFile, cfg.Listeners[0].TLS.KeyFile = garbage, garbage
	checks := Examine(t.Context(), cfg, Options{})
	says(t, checks, "door", "listeners[0].listen", "is free")
	says(t, checks, "door", "envoy[0].listen", "address already in use", "another port")
	says(t, checks, "door", "envoy[1].listen", "no such file", "make the directory")
	says(t, checks, "door", "envoy[2].listen", "envoy.sock is free")
	says(t, checks, "tls", "listeners[0].tls", garbage, "chain")
	if _, err := os.Stat(filepath.Join(dir, "envoy.sock")); err == nil {
		t.Error("the socket that was tried was left behind")
	}
}
