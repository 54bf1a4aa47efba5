package doors

import (
	"bufio"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"
)

// curl is what curl shows for its arguments: the last head, and the body.
func curl(t *testing.T, args ...string) answer {
	t.Helper()
	out, err := exec.Command(program(t, "curl"), append([]string{"-sS", "-i", "--max-time", "20"}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("curl %q: %v\n%s", args, err, out)
	}
	text := strings.Replace(string(out), "HTTP/2 ", "HTTP/2.0 ", 1) // as net/http writes it
	res, err := http.ReadResponse(bufio.NewReader(strings.NewReader(text)), nil)
	if err != nil {
		t.Fatalf("curl %q: %v\n%s", args, err, out)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("curl %q: %v\n%s", args, err, out)
	}
	return answer{res, string(body)}
}

func TestCurlGetsTheSameThroughEveryProxy(t *testing.T) {
	each(t, func(t *testing.T, p proxy) {
		r := within(t, p)
		wantRefused(t, curl(t, r.url("/page")), "uncleared")
		wantRefused(t, curl(t, "-d", "a=b", r.url("/page")), "uncleared")
		wantAdmitted(t, curl(t, "-d", "a=b", r.url("/api/x")), "POST /api/x a=b ")
		wantRefused(t, curl(t, "-H", "X-Forwarded-For: 203.0.113.9", "-H", "X-Original-URI: /api/x", r.url("/page")), "uncleared")
	})
}

func TestCurlAsksTheNodeItself(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, version := range []string{"--http1.0", "--http1.1", "--http2-prior-knowledge"} {
		for door, want := range map[string]int{nginxDoor: 403, proxyDoor: 429} {
			url := "http://" + r.doors[door] + "/v1/check"
			if a := curl(t, version, "-H", "X-Original-Method: POST", "-H", "X-Original-URI: /api/x", url); a.StatusCode != 200 || a.body != "" {
				t.Errorf("%s %s: status %d, body %q; want 200 without one", version, door, a.StatusCode, a.body)
			}
			a := curl(t, version, url)
			if a.StatusCode != want || a.body != "" || a.Header.Get("Retry-After") == "" || a.Header.Get("RateLimit") == "" {
				t.Errorf("%s %s: status %d, body %q, header %v; want %d without a body", version, door, a.StatusCode, a.body, a.Header, want)
			}
			if status := a.Header.Get("X-Subak-Status"); (want == 403) != (status == "429") {
				t.Errorf("%s %s: X-Subak-Status %q", version, door, status)
			}
		}
	}
}
