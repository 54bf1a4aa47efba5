package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// dial returns a client of a server with one handler.
func dial(t *testing.T, token string, handler http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	c, err := NewClient(ClientConfig{Address: server.Listener.Addr().String(), Token: token})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestEachMethodUsesItsRouteAndTheToken(t *testing.T) {
	var asked string
	c := dial(t, "secret", func(w http.ResponseWriter, r *http.Request) {
		asked = r.Method + " " + r.URL.String() + " " + r.Header.Get("Authorization")
		if r.URL.Path == "/readyz" || r.URL.Path == "/healthz" {
			fmt.Fprint(w, "ok")
			return
		}
		fmt.Fprint(w, `{"node":"ams","members":[{"name":"fra"}],"words":["so it is"]}`)
	})
	ctx := t.Context()
	cases := []struct {
		call func() error
		want string
	}{
		{func() error { s, err := c.Status(ctx); return want(err, s.Node, "ams") }, "GET /v1/status"},
		{func() error { _, err := c.Shares(ctx); return err }, "GET /v1/shares"},
		{func() error { m, err := c.Members(ctx); return want(err, m[0].Name, "fra") }, "GET /v1/status"},
		{func() error { e, err := c.Explain(ctx, "a b", "c", ""); return want(err, e.Words[0], "so it is") }, "GET /v1/explain?budget=a+b&class=c"},
		{func() error { _, err := c.Explain(ctx, "b", "c", "fra"); return err }, "GET /v1/explain?budget=b&class=c&node=fra"},
		{func() error { return c.Freeze(ctx, true) }, "POST /v1/freeze"},
		{func() error { return c.Freeze(ctx, false) }, "POST /v1/unfreeze"},
		{func() error { _, _, err := c.Ready(ctx); return err }, "GET /readyz"},
		{func() error { _, _, err := c.Live(ctx); return err }, "GET /healthz"},
	}
	for _, tc := range cases {
		if err := tc.call(); err != nil {
			t.Errorf("%s: %v", tc.want, err)
		}
		if want := tc.want + " Bearer secret"; asked != want {
			t.Errorf("asked %q, want %q", asked, want)
		}
	}
}

func want(err error, got, want string) error {
	if err == nil && got != want {
		err = fmt.Errorf("got %q, want %q", got, want)
	}
	return err
}

func TestAUnixSocketWorksLikeAPort(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"node":"ams"}`) }))
	server.Listener.Close()
	server.Listener = listener
	server.Start()
	defer server.Close()
	c, err := NewClient(ClientConfig{Address: "unix:" + path})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if s, err := c.Status(t.Context()); err != nil || s.Node != "ams" {
		t.Fatalf("got %q, %v", s.Node, err)
	}
}

func TestARefusalCarriesStatusAndTheNodesWords(t *testing.T) {
	cases := []struct{ name, body, want string }{
		{"json", `{"error":"token missing"}`, "token missing"},
		{"text", "go away\nnow", "go away"},
		{"control characters", "a\x1b[2Jb\x00", "a[2Jb"},
		{"long", strings.Repeat("x", 5000), strings.Repeat("x", 300) + "..."},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			c := dial(t, "", func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusUnauthorized)
				fmt.Fprint(w, tc.body)
			})
			_, err := c.Status(t.Context())
			refused, ok := errors.AsType[*Refused](err)
			if !ok || refused.Status != 401 || refused.Message != tc.want {
				t.Fatalf("got %+v (%v), want 401 %q", refused, err, tc.want)
			}
		})
	}
}

func TestNoAnswerIsUnreachable(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	c, err := NewClient(ClientConfig{Address: address})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Status(t.Context()); !isA[*Unreachable](err) || !strings.Contains(err.Error(), address) {
		t.Errorf("got %v, want unreachable with the address", err)
	}
	if _, err := NewClient(ClientConfig{Address: "nonsense"}); err == nil {
		t.Error("an address without port is taken")
	}
}

func isA[E error](err error) bool { _, ok := errors.AsType[E](err); return ok }

func TestAWrongServerIsGarbledAndARedirectIsNotFollowed(t *testing.T) {
	c := dial(t, "secret", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") })
	if _, err := c.Status(t.Context()); !isA[*Garbled](err) {
		t.Errorf("got %v, want garbled", err)
	}
	c = dial(t, "secret", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) })
	if _, err := c.Status(t.Context()); !isA[*Refused](err) {
		t.Errorf("got %v, want refused", err)
	}
}

func TestAnEndlessAnswerIsCutOff(t *testing.T) {
	c := dial(t, "", func(w http.ResponseWriter, _ *http.Request) {
		block := []byte(`"` + strings.Repeat("x", 1<<20))
		for {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	})
	if _, err := c.Status(t.Context()); !isA[*Garbled](err) {
		t.Errorf("status: got %v, want garbled", err)
	}
	if err := c.Stream(t.Context(), func(Status) {}); !isA[*Garbled](err) {
		t.Errorf("stream: got %v, want garbled", err)
	}
}

func TestReadySaysWhy(t *testing.T) {
	cases := []struct {
		status int
		body   string
		ready  bool
		reason string
	}{
		{200, "ok: joined", true, "joined"},
		{503, "not ok: quarantine", false, "quarantine"},
		{503, `{"ready":false,"reason":"never met a peer"}`, false, "never met a peer"},
	}
	for _, tc := range cases {
		c := dial(t, "", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(tc.status)
			fmt.Fprint(w, tc.body)
		})
		ready, reason, err := c.Ready(t.Context())
		if err != nil || ready != tc.ready || reason != tc.reason {
			t.Errorf("got %v %q %v, want %v %q", ready, reason, err, tc.ready, tc.reason)
		}
	}
}

// A listener of the node itself, or whatever else has the port, would answer 200
// to anything.
func TestAServerThatIsNoNodeIsNotReady(t *testing.T) {
	c := dial(t, "", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") })
	if ready, _, err := c.Ready(t.Context()); ready || !isA[*Garbled](err) {
		t.Errorf("got %v, %v; want garbled", ready, err)
	}
}

func TestAStreamGivesEachStatusAndSkipsTheRest(t *testing.T) {
	c := dial(t, "", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, ": hello\n\nevent: other\ndata: nonsense\n\ndata: {\"node\":\ndata: \"a\"}\n\nevent: status\ndata: {\"node\":\"b\"}\r\n\r\n")
	})
	var got []string
	err := c.Stream(t.Context(), func(s Status) { got = append(got, s.Node) })
	if fmt.Sprint(got) != "[a b]" || !isA[*Unreachable](err) {
		t.Errorf("got %v and %v, want [a b] and a broken stream", got, err)
	}
}

func TestASilentStreamEndsAndACanceledOneToo(t *testing.T) {
	c := dial(t, "", func(w http.ResponseWriter, r *http.Request) {
		status, _ := json.Marshal(Status{Node: "a"})
		fmt.Fprintf(w, "data: %s\n\n", status)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	if err := c.Stream(ctx, func(Status) { cancel() }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want canceled", err)
	}
	c.timeout = 50 * time.Millisecond
	if err := c.Stream(t.Context(), func(Status) {}); err == nil || !strings.Contains(err.Error(), "no news") {
		t.Errorf("got %v, want no news", err)
	}
}

func TestEveryLineOfAStreamIsASignOfLife(t *testing.T) {
	lines := 0
	c := &Client{address: "x"}
	if err := c.events(strings.NewReader(": a\n\n: b\n"), func() { lines++ }, func(Status) {}); err == nil || lines != 3 {
		t.Errorf("%d signs of life, want 3 (%v)", lines, err)
	}
}

func FuzzEventsNeverPanic(f *testing.F) {
	f.Add([]byte("event: status\ndata: {}\n\n"))
	f.Add([]byte("data\n\n:\n"))
	f.Fuzz(func(_ *testing.T, data []byte) {
		c := &Client{address: "x"}
		if c.events(strings.NewReader(string(data)), func() {}, func(Status) {}) == nil {
			panic("a stream ended without an error")
		}
	})
}
