package doors

import (
	"context"
	"fmt"
	"strings"

	"subak/testbed/peers/drive"
	"subak/testbed/peers/measure"
)

// request is a request of HTTP/1.1 with what a browser's usually has.
func request(path string, more ...string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "GET %s HTTP/1.1\r\nHost: www.example.com\r\n", path)
	for _, f := range append(more, "User-Agent: bench-peers/1", "Accept: */*") {
		fmt.Fprintf(&b, "%s\r\n", f)
	}
	b.WriteString("\r\n")
	return []byte(b.String())
}

// checkFields are what nginx's auth_request adds, by the snippet in the manual.
func checkFields() []string {
	return []string{"X-Original-Method: GET", "X-Original-URI: /api/items?id=7", "X-Forwarded-For: 203.0.113.7"}
}

const checkDoor = `listeners:
  - name: edge
    listen: LISTEN
    check: {enabled: true}
    trusted_hops: 1
    default: {budget: origin, class: uncleared}
    rules: [{match: {path: "/api/*"}, budget: origin, class: confirmed}]
`

const proxyPath = "/api/items?id=7"

// proxyDoor is a listener in front of a backend.
func proxyDoor(backend string) string {
	return fmt.Sprintf(`listeners:
  - name: edge
    listen: LISTEN
    backends: [{url: "http://%s"}]
    default: {budget: origin, class: uncleared}
    rules: [{match: {path: "/api/*"}, budget: origin, class: confirmed}]
`, backend)
}

func checkTarget() drive.Target {
	return drive.Target{Kind: drive.HTTP, Conns: httpConns, Request: request("/v1/check", checkFields()...), Empty: true}
}

func proxyTarget() drive.Target {
	return drive.Target{Kind: drive.HTTP, Conns: httpConns, Request: request(proxyPath)}
}

// check is forward-auth.
func (b *Bench) check() measure.Case {
	return b.door("doors/check", fmt.Sprintf("forward-auth: one check, %d connections", httpConns), checkTarget(), []measure.Claim{
		atLeast("doors/check", "forward-auth: requests/s beside a bare handler's that answers 204", 0, 1, 0.95),
		noted(atMost("doors/check-cpu", "its CPU for each request", measure.CPU, 0)),
		noted(atMost("doors/check-p99", "its p99", measure.Tail, 0)),
		noted(atLeast("doors/check-roomy", "its requests/s beside that handler's with a node's collector", 0, 2, 0)),
	}, append(checks(), ofFloor("net/http, roomy heap", "allow", roomy))...)
}

// behind makes a rival that needs a backend of its own.
func behind(name string, start func(ctx context.Context, r *rig, backend string) (server, error)) rival {
	return rival{name, func(ctx context.Context, r *rig) (server, error) {
		back, err := r.floor("backend")
		if err != nil {
			return server{}, err
		}
		return start(ctx, r, back.addr)
	}}
}

// proxy is the reverse proxy.
func (b *Bench) proxy() measure.Case {
	return b.door("doors/proxy", fmt.Sprintf("reverse proxy: one small GET, %d connections", httpConns), proxyTarget(), []measure.Claim{
		atLeast("doors/proxy", "reverse proxy: requests/s beside a pooled, tuned ReverseProxy's", 0, 1, 0.95),
		atMost("doors/proxy-p99", "reverse proxy: p99 beside that one's", measure.Tail, 1.2),
		noted(atMost("doors/proxy-cpu", "its CPU for each request", measure.CPU, 0)),
		atLeast("doors/proxy-tuned", "that the floor is tuned: its requests/s beside an untuned one's", 1, 2, 1.6),
		noted(atLeast("doors/proxy-roomy", "its requests/s beside the tuned one's with a node's collector", 0, 3, 0)),
	}, append(proxies(), proxyFloor("ReverseProxy, untuned", "proxy"), proxyFloor("tuned, roomy heap", "proxy-tuned", roomy))...)
}

// proxies are the node and its floor, each with a backend.
func proxies() []rival {
	return []rival{
		behind("subak run", func(ctx context.Context, r *rig, back string) (server, error) { return r.node(ctx, proxyDoor(back)) }),
		proxyFloor("ReverseProxy, tuned", "proxy-tuned"),
	}
}

func proxyFloor(name, kind string, more ...string) rival {
	return behind(name, func(_ context.Context, r *rig, back string) (server, error) {
		return r.floor(kind, append([]string{"http://" + back}, more...)...)
	})
}

// checks are the node with its check endpoint, and the floor.
func checks() []rival { return []rival{ofNode(checkDoor), ofFloor("net/http, 204", "allow")} }

// Floors are cases without a node: each floor beside itself. Their ratios are 1 but
// for what disturbs a measurement.
func (b *Bench) Floors() []measure.Case {
	tuned := proxies()[1]
	allow, ok := ofFloor("net/http, 204", "allow"), ofFloor("grpc-go, always OK", "always-ok")
	same := func(id string) []measure.Claim {
		return []measure.Claim{noted(atLeast(id, "a floor beside itself", 0, 1, 0))}
	}
	return []measure.Case{
		b.door("floors/check", "net/http twice", checkTarget(), same("floors/check"), allow, allow),
		b.door("floors/rls", "grpc-go twice", rpcTarget(256), same("floors/rls"), ok, ok),
		b.door("floors/proxy", "ReverseProxy twice", proxyTarget(), same("floors/proxy"), tuned, tuned),
	}
}

// Cases are the cases of all doors.
func (b *Bench) Cases() []measure.Case {
	all := []measure.Case{b.rls(), b.check(), b.proxy()}
	if c, ok := b.wrk("wrk/check", "forward-auth", "/v1/check", checkFields(), checks()...); ok {
		all = append(all, c)
	}
	if c, ok := b.wrk("wrk/proxy", "reverse proxy", proxyPath, nil, proxies()...); ok {
		all = append(all, c)
	}
	return append(all, b.keyCases()...)
}
