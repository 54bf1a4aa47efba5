package doors

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"subak/internal/child"
	"subak/testbed/cluster"
)

// The addresses in the files that users are shown.
const (
	nginxDoor  = "127.0.0.1:8081" // refuses by 403
	proxyDoor  = "127.0.0.1:8082" // refuses by 429
	envoyAddr  = "127.0.0.1:8083"
	originAddr = "127.0.0.1:9000"
)

// rig is a node, an origin and, once started, a proxy.
type rig struct {
	t      *testing.T
	dir    string
	kids   *child.Supervisor
	origin *origin
	node   *child.Process
	doors  map[string]string // where the node listens, by the address in the files
	site   string            // where the proxy listens
}

// origin is the server behind the proxy.
type origin struct {
	addr     string
	requests atomic.Int64
	checks   atomic.Int64 // of those, the ones that the node should have got
}

// newRig starts a node and an origin.
func newRig(t *testing.T) *rig {
	t.Helper()
	r := prepareRig(t)
	r.startNode()
	return r
}

// prepareRig is newRig before the node starts.
func prepareRig(t *testing.T) *rig {
	t.Helper()
	dir, err := os.MkdirTemp("", "sbk") // short, for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	r := &rig{t: t, dir: dir, kids: child.New(), origin: serveOrigin(t)}
	t.Cleanup(func() { r.kids.Close(10 * time.Second) })
	ports := freePorts(t, 4)
	r.site, r.doors = ports[0], map[string]string{nginxDoor: ports[1], proxyDoor: ports[2]}
	r.write("subak.yaml", fmt.Sprintf(clusterPart, r.dir+"/data", ports[3], r.dir+"/admin.sock")+r.addressed("listeners.yaml"))
	return r
}

// clusterPart is what the node needs beyond listeners.yaml.
const clusterPart = `
cluster: {name: doors, single: true, data_dir: %q}
node: {name: here}
gossip: {listen: %q, tick: 20ms, term: 200ms, profile: local}
admin: {listen: "unix:%s"}
nodes: [{name: here, weight: 1}]
budgets:
  - name: origin
    limit: 1000/s
    revocable: false
    classes:
      - {name: confirmed, reserve: 999.999/s, lend: 0%%, borrow: 0%%}
      - {name: uncleared, reserve: 0.001/s, lend: 0%%, borrow: 0%%}
`

// serveOrigin answers with what it got: method, target, client and body.
func serveOrigin(t *testing.T) *origin {
	o := &origin{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.requests.Add(1)
		if r.URL.Path == "/v1/check" {
			o.checks.Add(1)
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		fmt.Fprintf(w, "origin: %s %s %s for %s", r.Method, r.RequestURI, body, strings.Join(r.Header.Values("X-Forwarded-For"), ", "))
	}))
	t.Cleanup(s.Close)
	o.addr = s.Listener.Addr().String()
	return o
}

func freePorts(t *testing.T, n int) []string {
	t.Helper()
	ports, err := cluster.FreePorts("127.0.0.1", n, rand.New(rand.NewPCG(uint64(os.Getpid()), uint64(time.Now().UnixNano()))))
	if err != nil {
		t.Fatal(err)
	}
	return ports
}

// addressed is a file of this directory with the rig's addresses.
func (r *rig) addressed(name string) string {
	r.t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		r.t.Fatal(err)
	}
	from := []string{originAddr, r.origin.addr}
	for file, here := range r.doors {
		if r.doors[file] != "" {
			from = append(from, file, here)
		}
	}
	return strings.NewReplacer(from...).Replace(string(text))
}

// write puts a file into the rig's directory and returns its path.
func (r *rig) write(name, text string) string {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
	return path
}

// startNode starts the node, or starts it again, and waits until it is ready.
func (r *rig) startNode() {
	r.t.Helper()
	r.node = r.start(child.Launch{
		Name: "subak", Path: binary, Args: []string{"run", "--config", filepath.Join(r.dir, "subak.yaml"), "--bootstrap"},
		Env: child.CleanEnv("SUBAK_"),
	})
	admin := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", r.dir+"/admin.sock")
		},
	}}
	r.until(r.node, "readiness", func() bool {
		res, err := admin.Get("http://subak/readyz")
		if err != nil {
			return false
		}
		_ = res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
	// A bucket starts empty; from here on the class with plenty has some.
	r.until(r.node, "tokens", func() bool { return ask(r.t, "http://"+r.doors[proxyDoor]+"/v1/check") == http.StatusOK })
}

// ask makes the check of a POST that is charged to the class with plenty.
func ask(t *testing.T, url string) int {
	t.Helper()
	return send(t, "GET", url, "", "X-Original-Method: POST", "X-Original-URI: /api/x").StatusCode
}

func (r *rig) start(l child.Launch) *child.Process {
	r.t.Helper()
	p, err := r.kids.Start(l)
	if err != nil {
		r.t.Fatal(err)
	}
	return p
}

// startProxy starts a proxy and waits until it listens at the site's address.
func (r *rig) startProxy(path string, args ...string) *child.Process {
	r.t.Helper()
	p := r.start(child.Launch{
		Name: filepath.Base(path), Path: path, Args: args,
		Env: append(os.Environ(), "XDG_DATA_HOME="+r.dir, "XDG_CONFIG_HOME="+r.dir, "HOME="+r.dir),
	})
	r.until(p, "its socket", func() bool {
		c, err := net.Dial("tcp", r.site)
		if err != nil {
			return false
		}
		return c.Close() == nil
	})
	return p
}

// until waits for what a process does.
func (r *rig) until(p *child.Process, what string, holds func() bool) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for !holds() {
		select {
		case <-p.Done():
			r.t.Fatal(p.Failure())
		case <-ctx.Done():
			r.t.Fatalf("never: %s of %s; its last lines:\n%s", what, p.Name(), p.Last(20))
		case <-look.C:
		}
	}
}

// program finds a proxy, or skips; where CI=true a skip is a failure.
func program(t *testing.T, name string) string {
	t.Helper()
	for _, dir := range append(filepath.SplitList(os.Getenv("PATH")), "/usr/sbin", "/usr/local/sbin") {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path
		}
	}
	text := "no " + name + " on this machine: what docs/doors.md says of it is NOT tested; scripts/setup.sh installs it on Debian"
	if os.Getenv("CI") == "true" {
		t.Fatal(text)
	}
	t.Skip(text)
	return ""
}

// answer is what a client got.
type answer struct {
	*http.Response
	body string
}

// send makes one request on a connection of its own; header lines are "Name: value".
func send(t *testing.T, method, url, body string, header ...string) answer {
	t.Helper()
	a, err := request(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, method, url, body, header...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func request(c *http.Client, method, url, body string, header ...string) (answer, error) {
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		if name == "Host" {
			req.Host = value
		}
		req.Header.Add(name, value)
	}
	res, err := c.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = res.Body.Close() }()
	var b bytes.Buffer
	if _, err := b.ReadFrom(res.Body); err != nil {
		return answer{}, err
	}
	return answer{res, b.String()}, nil
}
