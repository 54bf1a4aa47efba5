package poison

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"

	"subak/testbed/cluster"
)

// request is one that no node may do what it says.
type request struct {
	method, path, body string
}

// requests are the broken ones.
func requests() []request {
	const apply = "/v1/apply"
	file := func(text string) request {
		return request{http.MethodPost, apply, `{"name":"x","file":"` + strings.ReplaceAll(text, "\n", `\n`) + `"}`}
	}
	return []request{
		{http.MethodPost, apply, ""},
		{http.MethodPost, apply, "{"},
		{http.MethodPost, apply, `"x"`},
		{http.MethodPost, apply, `{"file":5}`},
		{http.MethodPost, apply, `{"forget":["nobody of this name"]}`},
		{http.MethodPost, apply, `{"canary":"nobody","file":"nodes:\n"}`},
		{http.MethodPost, apply, strings.Repeat("[", 100_000)},
		{http.MethodPost, apply, `{"file":"` + strings.Repeat("x", 2<<20) + `"}`},
		file("budgets:\n  - name: origin\n    limit:\n"), // blank fields, as in the outage of lesson O13
		file("budgets:\n  - name: origin\n    limit: -5/s\n    classes: [{name: a, reserve: 100%}]\n"),
		file("budgets:\n  - name: origin\n    limit: .nan/s\n"),
		file("budgets:\n  - name: origin\n    limit: 1e400/s\n    classes: []\n"),
		file("budgets:\n"), file("nodes: []\n"), file("nodes: [{name: a, weight: 0}]\n"),
		file("a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c,*c,*c]\n"),
		{http.MethodGet, "/v1/explain?budget=%00%ff&class=" + strings.Repeat("y", 5000), ""},
		{http.MethodPut, "/v1/status", "x"},
		{http.MethodPost, "/v1/promote", "{}"},
		{http.MethodGet, "/../../etc/passwd", ""},
	}
}

// ask sends one broken request, and noise in the place of another.
func ask(ctx context.Context, rng *rand.Rand, from cluster.Host, admin string) (requestsSent, refused int) {
	network, to := "tcp", admin
	if path, ok := strings.CutPrefix(admin, "unix:"); ok {
		network, to = "unix", path
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return dialAdmin(ctx, from, network, to) }
	conn, err := dial(ctx, "", "")
	if err != nil {
		return 0, 0
	}
	_, _ = conn.Write(noise(rng)) // however far it goes
	_ = conn.Close()
	client := &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	all := requests()
	r := all[rng.IntN(len(all))]
	q, err := http.NewRequestWithContext(ctx, r.method, "http://subak"+r.path, strings.NewReader(r.body))
	if err != nil {
		return 0, 0
	}
	q.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(q)
	if err != nil {
		return 1, 1 // it hung up
	}
	defer func() { _ = answer.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 1<<20)) // what came will do
	if answer.StatusCode/100 == 2 {
		return 1, 0
	}
	return 1, 1
}
