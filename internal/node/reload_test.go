package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"subak/internal/api"
)

// reload makes a node read a file, and waits until it said what came of it.
func (l *live) reload(text string) (said string) {
	l.t.Helper()
	before := len(l.logged.String())
	l.file.Store(&text)
	l.hangup <- os.Signal(syscall.SIGHUP)
	eventually(l.t, l.name+" has reloaded", func() bool {
		said = l.logged.String()[before:]
		return strings.Contains(said, "reload: listeners") || strings.Contains(said, "nothing is changed")
	})
	return said
}

// mustSay fails unless the log has all words.
func mustSay(t *testing.T, said string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(said, w) {
			t.Errorf("want %q in the log:\n%s", w, said)
		}
	}
}

// metric is the sum of the series of a family that have the label values, and
// how many there are.
func metric(t *testing.T, l *live, name string, values ...string) (sum float64, series int) {
	t.Helper()
	families, err := l.node.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			labels := ""
			for _, p := range m.GetLabel() {
				labels += p.GetName() + "=" + p.GetValue() + " "
			}
			ok := f.GetName() == name
			for _, v := range values {
				ok = ok && strings.Contains(labels, v+" ")
			}
			if ok {
				series++
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum, series
}

// steady sends a request every few milliseconds over connections that are kept,
// until it is stopped, and fails the test if one has no answer or a fault of the
// node for one.
func steady(t *testing.T, l *live, paths ...string) (stop func()) {
	t.Helper()
	over := make(chan struct{})
	address := l.node.doors.list[0].listener.Addr().String()
	client := &http.Client{Transport: &http.Transport{}}
	var load sync.WaitGroup
	answers := map[int]int{}
	load.Go(func() {
		pace := time.NewTicker(5 * time.Millisecond)
		defer pace.Stop()
		for i := 0; ; i++ {
			select {
			case <-over:
				return
			case <-pace.C:
			}
			resp, err := client.Get("http://" + address + paths[i%len(paths)])
			if err != nil {
				t.Errorf("a request had no answer: %v", err)
				return
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if answers[resp.StatusCode]++; resp.StatusCode >= 500 {
				t.Errorf("answer %d", resp.StatusCode)
			}
		}
	})
	return sync.OnceFunc(func() {
		close(over)
		load.Wait()
		client.CloseIdleConnections()
		if answers[200] == 0 {
			t.Errorf("nothing was served: %v", answers)
		}
	})
}

// get asks a node's first door on a connection of its own.
func (l *live) get(path string) int {
	l.t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}
	resp, err := client.Get(l.url(path))
	if err != nil {
		l.t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

func backend(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "served") }))
	t.Cleanup(s.Close)
	return s.URL
}

const extraBudget = "\n  - name: extra\n    limit: 300/s\n    classes: [{name: one, reserve: 50%}, {name: two, reserve: 50%}]\n"

func TestRulesFollowBudgetsThatComeAndGoUnderLoad(t *testing.T) {
	t.Parallel()
	url := backend(t)
	two := []string{"a", "b"}
	a := begin(t, setup{name: "a", dir: t.TempDir(), backend: url, roster: two})
	b := begin(t, setup{name: "b", dir: t.TempDir(), backend: url, seed: a.node.gossip.Addr(), roster: two})
	eventually(t, "both are ready and live", func() bool {
		return a.status().Ready && b.status().Ready && a.liveMembers() == 2 && b.liveMembers() == 2
	})
	stop := steady(t, a, "/high", "/low", "/new")
	defer stop()
	plain := setup{name: "a", backend: url, roster: two}.yaml()
	withExtra := strings.Replace(plain, "\nlisteners:", extraBudget+"listeners:", 1)
	withRule := strings.Replace(withExtra, "rules: [", `rules: [{match: {path: "/new"}, budget: extra, class: one}, `, 1)
	decided := func(budget string) float64 {
		sum, _ := metric(t, a, "budget_gate_decisions_total", "budget="+budget)
		return sum
	}

	mustSay(t, a.reload(withRule), "nodes and budgets change", "extra: added", "listeners are as in the file")
	eventually(t, "b works under it, and the rule of the new budget is met", func() bool { return len(b.status().Budgets) == 2 && decided("extra") > 0 })
	if said := a.logged.String(); strings.Contains(said, "a rule's budget or class is not in force") {
		t.Error("new rules met the old budgets")
	}
	origin := decided("origin")

	gone := b.change(api.ChangeRequest{Name: "f.yaml", File: budgetFile(3000, 60), Revert: true})
	b.ends(gone.Epoch, api.ChangeInForce)
	eventually(t, "a has taken it up, and says that a rule has no budget", func() bool {
		return len(a.status().Budgets) == 1 && strings.Contains(a.logged.String(), "a rule's budget or class is not in force")
	})
	unknown, _ := metric(t, a, "budget_gate_unknown_total")
	eventually(t, "its requests go the way of on_unknown", func() bool { n, _ := metric(t, a, "budget_gate_unknown_total"); return n > unknown })
	for _, family := range []string{"budget_gate_decisions_total", "budget_class_offered_units_total", "budget_limit_rate"} {
		if _, n := metric(t, a, family, "budget=extra"); n != 0 {
			t.Errorf("%s: %d series of a budget that is gone", family, n)
		}
	}
	eventually(t, "the counters go on", func() bool { return decided("origin") > origin })
	if status := a.get("/new"); status != 200 && status != 429 {
		t.Errorf("a request of the default class: %d", status)
	}

	deny := strings.Replace(withRule, "default: {budget: origin, class: low}", "on_unknown: deny", 1)
	mustSay(t, a.reload(deny), "were in force before and are left alone", "subak apply --revert", "listeners are as in the file")
	if status := a.get("/new"); status != 403 {
		t.Errorf("a request without a budget where unknown ones are denied: %d, want 403", status)
	}
	problems, err := testutil.GatherAndLint(a.node.reg)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	stop()
}

// It runs alone: it gives ports back and takes them again.
func TestAReloadOpensAndClosesDoorsOrChangesNothing(t *testing.T) {
	release := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "first\n")
		_ = http.NewResponseController(w).Flush()
		<-release
		_, _ = io.WriteString(w, "last\n")
	}))
	defer slow.Close()
	a := begin(t, setup{name: "a", dir: t.TempDir(), roster: []string{"a", "b"}})
	eventually(t, "a is ready", func() bool { return a.status().Ready })
	plain := setup{name: "a", roster: []string{"a", "b"}}.yaml()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	second := free.Addr().String()
	withSecond := plain + fmt.Sprintf("  - {name: second, listen: %q, backends: [{url: %q}], default: {budget: origin, class: low}}\n", second, slow.URL)

	mustSay(t, a.reload(withSecond), "listeners stay as they are", "listeners[1].listen", "address already in use", "another port")
	if n := len(a.node.gates()); n != 1 {
		t.Errorf("%d doors, want the one from before", n)
	}
	free.Close()
	mustSay(t, a.reload(withSecond), "door opens", "listener=second", "listeners are as in the file")

	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	var resp *http.Response
	eventually(t, "a slow request is admitted", func() bool { // a bucket begins empty
		if resp, err = client.Get("http://" + second + "/"); err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != 200 {
			resp.Body.Close()
		}
		return resp.StatusCode == 200
	})
	defer resp.Body.Close()
	mustSay(t, a.reload(plain), "door closes", "listener=second")
	if c, err := net.Dial("tcp", second); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a door that is gone: %v, want connection refused", err)
		if c != nil {
			c.Close()
		}
	}
	mustSay(t, a.reload(withSecond), "door opens") // at once, while the old one is drained
	mustSay(t, a.reload(plain), "door closes")
	close(release)
	if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "first\nlast\n" {
		t.Errorf("a request under way ended with %q, %v", body, err)
	}

	for name, tc := range map[string]struct{ text, says string }{
		"no YAML":          {plain + "]", "no valid YAML"},
		"unknown class":    {strings.Replace(plain, "class: high}]", "class: higher}]", 1), "higher"},
		"a tick of no use": {strings.Replace(plain, "tick: 100ms", "tick: 100h", 1), "gossip.tick"},
	} {
		before, gates := a.status().Epoch, a.node.gates()[0]
		mustSay(t, a.reload(tc.text), tc.says, "nothing is changed")
		if a.status().Epoch != before || a.node.gates()[0] != gates {
			t.Errorf("%s: something changed", name)
		}
	}
	mustSay(t, a.reload(strings.Replace(plain, "tick: 100ms", "tick: 150ms", 1)), "section=gossip", "at the next start")
}

func TestADearerRuleOfAReloadIsServed(t *testing.T) {
	t.Parallel()
	url := backend(t)
	a := begin(t, setup{name: "a", dir: t.TempDir(), roster: []string{"a", "b"}, backend: url})
	eventually(t, "a is ready", func() bool { return a.status().Ready })
	plain := setup{name: "a", roster: []string{"a", "b"}, backend: url}.yaml()
	dear := strings.Replace(plain, "class: high}]", "class: high, cost: 1600}]", 1) // the share is 1500, for one second
	a.reload(dear)
	eventually(t, "a request of cost 1600 passes", func() bool { return a.get("/high") == 200 })
}

func TestNodesThatReadTheSameFileAtOnceMakeOneEpoch(t *testing.T) {
	t.Parallel()
	nodes := cluster(t)
	everywhere(t, nodes, 3000)
	for _, l := range nodes {
		text := setup{name: l.name, limit: 1500}.yaml()
		l.file.Store(&text)
	}
	for _, l := range nodes {
		l.hangup <- os.Signal(syscall.SIGHUP)
	}
	for _, l := range nodes {
		eventually(t, l.name+" has reloaded", func() bool { return strings.Contains(l.logged.String(), "reload: listeners") })
	}
	if e := everywhere(t, nodes, 1500); e.Version != 2 {
		t.Errorf("version %d after one change, want 2", e.Version)
	}
	for _, l := range nodes {
		if said := l.logged.String(); strings.Contains(said, "level=ERROR") {
			t.Errorf("%s:\n%s", l.name, said)
		}
	}
}

// What a node began is stopped, whenever it ends: TestMain looks for leftovers.
func TestANodeMayEndInTheMiddleOfAnything(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(ended)
	}))
	defer slow.Close()
	a := begin(t, setup{name: "a", dir: t.TempDir(), roster: []string{"a", "b"}, backend: slow.URL})
	b := begin(t, setup{name: "b", dir: t.TempDir(), roster: []string{"a", "b"}, seed: a.node.gossip.Addr()})
	eventually(t, "both are ready and live", func() bool {
		return a.status().Ready && b.status().Ready && a.liveMembers() == 2 && b.liveMembers() == 2
	})
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var resp *http.Response
	eventually(t, "a request that never ends is admitted", func() bool {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, a.url("/high"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp, err = client.Do(r); err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != 200 {
			resp.Body.Close()
		}
		return resp.StatusCode == 200
	})
	defer resp.Body.Close()
	a.change(api.ChangeRequest{Name: "f.yaml", File: budgetFile(1500, 60), Canary: "b", CanarySeconds: 3600})
	moved := strings.Replace(setup{name: "a", roster: []string{"a", "b"}}.yaml(), `edge, listen: "127.0.0.1:0"`, `edge, listen: "[::1]:0"`, 1)
	mustSay(t, a.reload(moved), "door opens", "door closes")
	a.hangup <- os.Signal(syscall.SIGHUP)
	a.end()
	<-ended
	mustSay(t, a.logged.String(), "requests still under way were cut off")
	if b.end(); strings.Contains(b.logged.String(), "level=ERROR") {
		t.Errorf("b:\n%s", b.logged.String())
	}
}
