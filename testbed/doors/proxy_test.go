package doors

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"subak/internal/child"
)

// proxy is a way to put another proxy in front of the origin.
type proxy struct {
	name string
	door string // the listener that it asks, as in its file
	// start runs it with the rig's addresses.
	start func(t *testing.T, r *rig, p policy) *child.Process
	// keeps is whether it uses connections to the node again.
	keeps bool
	// slow and down are the statuses of a request when the node does not answer
	// or is gone, and the policy is to refuse.
	slow, down int
}

func proxies() []proxy {
	return []proxy{
		{"nginx", nginxDoor, startNginx, true, 503, 503},
		{"caddy", proxyDoor, startCaddy, false, 504, 502},
		{"haproxy", proxyDoor, startHAProxy, true, 503, 503},
	}
}

// each runs a test for every proxy.
func each(t *testing.T, f func(t *testing.T, p proxy)) {
	for _, p := range proxies() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			program(t, p.name)
			f(t, p)
		})
	}
}

// within starts a rig with the proxy in it.
func within(t *testing.T, p proxy) *rig {
	t.Helper()
	r := newRig(t)
	p.start(t, r, patient)
	return r
}

func (r *rig) url(path string) string { return "http://" + r.site + path }

// wantAdmitted checks that a request reached the origin.
func wantAdmitted(t *testing.T, a answer, want string) {
	t.Helper()
	if a.StatusCode != http.StatusOK || !strings.HasPrefix(a.body, "origin: "+want) {
		t.Errorf("status %d, body %q; want 200 and the origin's answer to %s", a.StatusCode, a.body, want)
	}
}

// wantRefused checks everything that a refused client is told.
func wantRefused(t *testing.T, a answer, class string) {
	t.Helper()
	if a.StatusCode != http.StatusTooManyRequests {
		t.Errorf("status %d, want 429", a.StatusCode)
	}
	after := a.Header.Values("Retry-After")
	if n, err := strconv.Atoi(strings.Join(after, "|")); err != nil || n < 1 {
		t.Errorf("Retry-After %q, want whole seconds", after)
	}
	policy := fmt.Sprintf(`"origin/%s";`, class)
	for _, name := range []string{"RateLimit", "RateLimit-Policy"} {
		if v := a.Header.Values(name); len(v) != 1 || !strings.HasPrefix(v[0], policy) {
			t.Errorf("%s %q, want one of %s", name, v, policy)
		}
	}
	if strings.Contains(a.body, "origin:") {
		t.Errorf("the refusal has the origin's answer: %q", a.body)
	}
}

func TestAProxysClientsGetTheOriginOr429(t *testing.T) {
	each(t, func(t *testing.T, p proxy) {
		r := within(t, p)
		wantAdmitted(t, send(t, "POST", r.url("/api/x?y=1"), ""), "POST /api/x?y=1 ")
		before := r.origin.requests.Load()
		for _, method := range []string{"GET", "POST", "PUT", "DELETE"} {
			wantRefused(t, send(t, method, r.url("/page"), ""), "uncleared")
		}
		if a := send(t, "HEAD", r.url("/page"), ""); a.StatusCode != 429 || a.Header.Get("Retry-After") == "" {
			t.Errorf("HEAD: status %d, Retry-After %q; want 429 with one", a.StatusCode, a.Header.Get("Retry-After"))
		}
		if n := r.origin.requests.Load() - before; n != 0 {
			t.Errorf("%d refused requests reached the origin", n)
		}
	})
}

// insist posts as a client that reads what it is told though it could not send all:
// a proxy that answers early may close before it has read the body.
func insist(t *testing.T, url, body string) answer {
	t.Helper()
	req, err := http.NewRequest("POST", url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", req.URL.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	req.Close = true
	_ = req.Write(conn)
	res, err := http.ReadResponse(bufio.NewReader(conn), req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	told, _ := io.ReadAll(res.Body)
	return answer{res, string(told)}
}

func TestBodiesPassAProxyThatAsks(t *testing.T) {
	each(t, func(t *testing.T, p proxy) {
		r := within(t, p)
		for _, size := range []int{1, 4000, 100_000, 500_000} {
			body := strings.Repeat("x", size)
			wantAdmitted(t, send(t, "POST", r.url("/api/x"), body), "POST /api/x "+body)
			if size <= 100_000 { // Caddy hangs up on a client that goes on sending more
				wantRefused(t, insist(t, r.url("/page"), body), "uncleared")
			}
		}
	})
}

// What a client may send in the hope of being taken for another client or request:
// each of them alone, from a class without tokens.
var forged = []string{
	"X-Forwarded-For: 203.0.113.9", "X-Real-IP: 203.0.113.9", "Forwarded: for=203.0.113.9",
	"X-Forwarded-Method: POST", "X-Forwarded-Uri: /api/x", "X-Forwarded-Host: other.example",
	"X-Original-Method: POST", "X-Original-URI: /api/x", "X-Original-Url: /api/x", "X-Rewrite-Url: /api/x",
	"X-HTTP-Method-Override: POST", "X-Subak-Status: 200", "Connection: X-Forwarded-For", "Connection: X-Original-URI",
}

func TestAClientsForgeriesChangeNothing(t *testing.T) {
	each(t, func(t *testing.T, p proxy) {
		r := within(t, p)
		for _, line := range append([]string{"Accept: a/b"}, forged...) {
			t.Run(line, func(t *testing.T) {
				wantRefused(t, send(t, "GET", r.url("/page"), "", line), "uncleared")
				wantAdmitted(t, send(t, "POST", r.url("/api/x"), "", line), "POST /api/x ")
			})
		}
		t.Run("all at once", func(t *testing.T) {
			wantRefused(t, send(t, "GET", r.url("/page"), "", forged...), "uncleared")
			wantAdmitted(t, send(t, "POST", r.url("/api/x"), "", forged...), "POST /api/x ")
		})
		if a := send(t, "POST", r.url("/api/x"), "", "X-Forwarded-For: 203.0.113.9"); !strings.HasSuffix(a.body, "127.0.0.1") {
			t.Errorf("the origin was not told of the client last: %s", a.body)
		}
	})
}

// A connection for each question would be dearer than the question.
func TestAProxyUsesItsConnectionsToTheNodeAgainWhereItCan(t *testing.T) {
	each(t, func(t *testing.T, p proxy) {
		r := newRig(t)
		relay := newRelay(t, r.doors[p.door])
		r.doors[p.door] = relay.addr
		p.start(t, r, patient)
		const rounds = 40
		for range rounds {
			wantAdmitted(t, send(t, "POST", r.url("/api/x"), "some body"), "POST /api/x ")
			wantRefused(t, send(t, "GET", r.url("/page"), ""), "uncleared")
		}
		n := relay.used.Load()
		if !p.keeps {
			if n != 2*rounds {
				t.Errorf("%d connections for %d questions: docs/doors.md says one for each", n, 2*rounds)
			}
			return
		}
		// HAProxy may open a second one while the first is being put back.
		if n < 1 || n > 4 {
			t.Errorf("%d connections for %d questions one after the other, want about one", n, 2*rounds)
		}
	})
}

func TestManyClientsAtOnceGetTheOriginOr429(t *testing.T) {
	each(t, func(t *testing.T, p proxy) {
		r := within(t, p)
		const clients, requests = 32, 40
		var mu sync.Mutex
		statuses := map[int]int{} // guarded by mu
		var all sync.WaitGroup
		for range clients {
			all.Go(func() {
				c := &http.Client{Transport: &http.Transport{}} // keeps its connection
				defer c.CloseIdleConnections()
				for i := range requests {
					method, path := "POST", "/api/x"
					if i%4 == 3 {
						method, path = "GET", "/page"
					}
					a, err := request(c, method, r.url(path), "")
					if err != nil {
						t.Errorf("%s %s: %v", method, path, err)
						return
					}
					switch {
					case a.StatusCode == http.StatusTooManyRequests && (method == "POST" || path == "/page"):
						wantRefused(t, a, map[string]string{"/page": "uncleared", "/api/x": "confirmed"}[path])
					case path == "/page":
						t.Errorf("GET %s: status %d, want 429", path, a.StatusCode)
					default:
						wantAdmitted(t, a, "POST /api/x ")
					}
					mu.Lock()
					statuses[a.StatusCode]++
					mu.Unlock()
				}
			})
		}
		all.Wait()
		if len(statuses) != 2 || statuses[200] == 0 || statuses[429] < clients*requests/4 {
			t.Errorf("statuses %v, want 200 and 429 only", statuses)
		}
		if n := r.origin.checks.Load(); n != 0 {
			t.Errorf("the origin got %d questions that were for the node", n)
		}
		if got := r.origin.requests.Load(); got != int64(statuses[200]) {
			t.Errorf("the origin got %d requests, %d were admitted", got, statuses[200])
		}
	})
}

func TestWithoutTheNodeAProxyDoesWhatItsFileSays(t *testing.T) {
	each(t, func(t *testing.T, p proxy) {
		for name, choice := range map[string]policy{"lets through": open, "refuses": closed} {
			t.Run(name, func(t *testing.T) {
				r := newRig(t)
				p.start(t, r, choice)
				wantSilent := func(refusal int) {
					t.Helper()
					for _, method := range []string{"GET", "POST"} {
						a := send(t, method, r.url("/page"), "a body")
						if choice == closed && a.StatusCode != refusal {
							t.Errorf("%s without the node: status %d, want %d", method, a.StatusCode, refusal)
						}
						if choice == open {
							wantAdmitted(t, a, method+" /page a body")
						}
					}
				}
				wantRefused(t, send(t, "GET", r.url("/page"), ""), "uncleared")
				if err := r.node.Pause(); err != nil { // it accepts and does not answer
					t.Fatal(err)
				}
				wantSilent(p.slow)
				r.node.Kill()
				wantSilent(p.down)
				r.startNode()
				r.until(r.node, "answers through the proxy", func() bool {
					return send(t, "GET", r.url("/page"), "").StatusCode == http.StatusTooManyRequests
				})
				wantAdmitted(t, send(t, "POST", r.url("/api/x"), ""), "POST /api/x ")
			})
		}
	})
}
