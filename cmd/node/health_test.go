package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// probed serves the probes of a live node that answers as told whether it is
// ready.
func probed(t *testing.T, network, address string, readyStatus int, ready string) net.Listener {
	t.Helper()
	listener, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(readyStatus)
		fmt.Fprintln(w, ready)
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok: the decision loop runs") })
	server := httptest.NewUnstartedServer(mux)
	_ = server.Listener.Close()
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
	return listener
}

func TestHealthExitsWith0OnlyWhenTheNodeSaysSo(t *testing.T) {
	well := probed(t, "tcp", "127.0.0.1:0", 200, "ok: in the cluster").Addr().String()
	socket := "unix:" + filepath.Join(t.TempDir(), "s")
	probed(t, "unix", strings.TrimPrefix(socket, "unix:"), 503, "not ok: quarantine")
	gone := "unix:" + filepath.Join(t.TempDir(), "none")
	cases := []struct {
		name, admin string
		args        []string
		code        int
		out, err    string
	}{
		{"ready over TCP", well, nil, exitOK, "ready: in the cluster\n", ""},
		{"not ready over a socket", socket, nil, exitBroken, "", "subak: not ready: quarantine\n"},
		{"live but not ready", socket, []string{"--live"}, exitOK, "live: the decision loop runs\n", ""},
		{"no node", gone, nil, exitBroken, "", "cannot reach the node"},
		{"not ready in JSON", socket, []string{"--json"}, exitBroken, "{\n  \"ok\": false,\n  \"reason\": \"quarantine\"\n}\n", ""},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			got := subak(t, nil, append([]string{"health", "--admin", tc.admin}, tc.args...)...)
			if got.code != tc.code || got.out != tc.out || !strings.Contains(got.err, tc.err) || (tc.err == "") != (got.err == "") {
				t.Errorf("got %+v, want %d, %q, %q", got, tc.code, tc.out, tc.err)
			}
		})
	}
}

func TestHealthGivesUpOnANodeThatHangs(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer server.Close()
	defer close(release)
	got := subak(t, nil, "health", "--admin", server.Listener.Addr().String(), "--timeout", "50ms")
	if got.code != exitBroken || !strings.Contains(got.err, "cannot reach the node") {
		t.Errorf("got %+v", got)
	}
}

func TestHealthFindsTheNodeByItsConfiguration(t *testing.T) {
	_, port, err := net.SplitHostPort(probed(t, "tcp", "127.0.0.1:0", 200, "ok: in the cluster").Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	file := func(listen string) string {
		text := subak(t, nil, "config", "example").out
		name := filepath.Join(t.TempDir(), "subak.yaml")
		text = strings.Replace(text, "listen: 127.0.0.1:7947", "listen: "+listen+"\n  insecure: true", 1)
		text = strings.Replace(text, "  insecure: false\n", "", 1)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	here, nowhere := file("0.0.0.0:"+port), file("unix:/nonexistent/s")
	cases := []struct {
		name string
		env  []string
		args []string
		code int
		err  string
	}{
		{"by the file, an address for all", nil, []string{"-c", here}, exitOK, ""},
		{"by the file of the environment", []string{"SUBAK_CONFIG=" + here}, nil, exitOK, ""},
		{"the environment over its file", []string{"SUBAK_CONFIG=" + nowhere, "SUBAK_ADMIN=127.0.0.1:" + port}, nil, exitOK, ""},
		{"a flag over the environment", []string{"SUBAK_ADMIN=127.0.0.1:" + port}, []string{"-c", nowhere}, exitBroken, "unix:/nonexistent/s"},
		{"the address over all", []string{"SUBAK_CONFIG=" + nowhere}, []string{"-c", nowhere, "--admin", "127.0.0.1:" + port}, exitOK, ""},
		{"a port that nobody knows", nil, []string{"-c", file("127.0.0.1:0")}, exitBroken, "takes any free port"},
		{"no such file", nil, []string{"-c", "/nonexistent"}, exitBroken, "cannot be read"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			got := subak(t, tc.env, append([]string{"health"}, tc.args...)...)
			if got.code != tc.code || !strings.Contains(got.err, tc.err) || (tc.err == "") != (got.err == "") {
				t.Errorf("got %+v, want %d and %q", got, tc.code, tc.err)
			}
		})
	}
}
