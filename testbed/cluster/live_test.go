package cluster

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"subak/internal/child"
)

// watched samples a cluster until the test ends.
func watched(t *testing.T, c *Cluster) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		c.Watch(ctx, Pace{Status: 20 * time.Millisecond, Usage: 20 * time.Millisecond, Metrics: 50 * time.Millisecond})
	})
	stop = func() { cancel(); wg.Wait() }
	t.Cleanup(stop)
	return stop
}

func TestWhatIsDoneToANodeShowsInItsSeriesAndHoldsUpNobody(t *testing.T) {
	t.Parallel()
	c := run(t, testConfig(t, 3))
	start := time.Now()
	stop := watched(t, c)
	latest := func(i int) Point { p, _ := c.Latest(i); return p }
	const bin = 10 * time.Millisecond
	// What is done takes time itself, so that what holds before it is looked at in
	// the last bin before it began, and what holds after it in the one it ended in.
	wholeBin := func() {
		t.Helper()
		since := time.Now()
		until(t, "a whole bin", func() bool { return time.Since(since) > 2*bin })
	}
	until(t, "samples of both", func() bool { return latest(0).Live == 2 && latest(1).Live == 2 && latest(1).Share > 0 })
	wholeBin()
	pausing := time.Now()
	must(t, c.Pause(1))
	paused := time.Now()
	held := latest(1).Got
	for range 3 { // further answers of the other one
		last := latest(0).Got
		until(t, "an answer while the other is paused", func() bool { return latest(0).Got.After(last) })
	}
	if got := latest(1).Got; got.Sub(held) > time.Second {
		t.Errorf("a paused node answered, %v after its pause", got.Sub(held))
	}
	wholeBin()
	resuming := time.Now()
	must(t, c.Resume(1))
	resumed := time.Now()
	until(t, "answers after the pause", func() bool { return latest(1).Got.After(resumed) })
	wholeBin()
	killing := time.Now()
	c.Kill(1)
	killed := time.Now()
	if c.Alive(1) || c.Crashed() != nil {
		t.Errorf("killed on purpose: alive %v, crashed %v", c.Alive(1), c.Crashed())
	}
	last := latest(0).Got
	until(t, "an answer after the kill", func() bool { return latest(0).Got.After(last) })
	wholeBin()
	stop()
	all := c.Series(start, bin, int(time.Since(start)/bin))
	in := func(at time.Time) int { return int(at.Sub(start) / bin) }
	s := all[1]
	before, during := s.Up[in(pausing)-1], s.Up[in(paused):in(resuming)]
	between, after := s.Up[in(killing)-1], s.Up[in(killed):]
	if before != 1 || slices.Contains(during, 1) || between != 1 || slices.Contains(after, 1) || s.Digest[in(killed)] != "" {
		t.Errorf("up %v; paused in bins %d to %d, resumed from %d, killed in %d to %d", s.Up, in(pausing), in(paused), in(resuming), in(killing), in(killed))
	}
	if slices.Contains(all[0].Up[in(pausing):], 0) {
		t.Errorf("the other one counts as down: %v", all[0].Up)
	}
	end := len(s.RSS) - 1
	if s.RSS[end] < 1<<20 || s.CPU[end] <= 0 || all[0].GossipSent[end] <= 0 || all[0].GossipReceived[end] <= 0 {
		t.Errorf("no usage or bytes: %d %d %d %d", s.RSS[end], s.CPU[end], all[0].GossipSent[end], all[0].GossipReceived[end])
	}
	k := all[0].Counters
	if some, direct := k["budget_gossip_inbox_queued_total"], k[`budget_gossip_inbox_queued_total{via="direct"}`]; direct <= 0 || some < direct || k["no_such_metric"] != 0 {
		t.Errorf("counters %v", k)
	}
	if len(c.Points(2)) != 0 || slices.Contains(all[2].Up, 1) {
		t.Error("a node that never ran has samples")
	}
}

func TestACrashIsNamedAndKeptWithItsLog(t *testing.T) {
	t.Parallel()
	c := run(t, testConfig(t, 3))
	c.Scrape(t.Context())
	must(t, c.Signal(0, syscall.SIGQUIT)) // Go programs end by it with all stacks
	until(t, "a crash", func() bool { return c.Crashed() != nil })
	if text := c.Crashed().Error(); !strings.Contains(text, "node n0: exit status 2") || c.Alive(0) {
		t.Errorf("crash: %s", text)
	}
	if err := c.AwaitReady(soon(t), nil, nil); err == nil || !strings.Contains(err.Error(), "node n0") {
		t.Errorf("it is waited for a node that is gone: %v", err)
	}
	dir := filepath.Join(t.TempDir(), "kept")
	must(t, c.Keep(dir))
	for name, want := range map[string]string{"n0.log": "goroutine ", "n0.yaml": "node: {name: n0}", "n0.metrics": "budget_share_rate"} {
		if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s (%v) has no %q", name, err, want)
		}
	}
	must(t, c.Start(0)) // as people do after a crash
	must(t, c.AwaitReady(soon(t), nil, nil))
}

func TestRestartsOfAllKindsComeBackAsOneCluster(t *testing.T) {
	t.Parallel()
	c := run(t, testConfig(t, 3))
	if err := c.Start(0); err == nil {
		t.Error("a node was started twice")
	}
	if how, err := c.Limit(1, 30); err != nil || how == "" {
		t.Errorf("limit by %q: %v", how, err)
	}
	must(t, c.each([]int{0, 1}, func(i int) error { c.Kill(i); return nil }))
	must(t, c.each([]int{0, 1}, c.Start))
	if err := c.Wipe(0); err == nil {
		t.Error("the memory of a node that runs was wiped")
	}
	if killed := c.Stop(0); killed || c.Alive(0) {
		t.Errorf("stop: killed %v, alive %v", killed, c.Alive(0))
	}
	must(t, c.Wipe(0))
	if err := c.Pause(0); err == nil {
		t.Error("a node that does not run was paused")
	}
	c.Use(0, os.DevNull)
	if err := c.Start(0); err == nil {
		t.Error("the binary of a node cannot be changed")
	}
	c.Use(0, binary())
	must(t, c.Start(0))
	must(t, c.AwaitReady(soon(t), nil, nil))
}

func TestNodesJoinChangeAndLeave(t *testing.T) {
	t.Parallel()
	c := run(t, testConfig(t, 4))
	ctx := soon(t)
	inForce := func(ask int, epoch string, err error) {
		t.Helper()
		must(t, err)
		_, err = c.AwaitChange(ctx, ask, epoch)
		must(t, err)
	}
	must(t, c.Start(3))
	must(t, c.AwaitMet(ctx, 3, 1))
	joined, err := c.Apply(ctx, 1, Edit{Roster: append(c.Roster(), 3)})
	inForce(1, joined.Epoch, err)
	must(t, c.AwaitReady(ctx, nil, nil))
	cut, err := c.Apply(ctx, 0, Edit{Limit: 500})
	inForce(0, cut.Epoch, err)
	until(t, "the cut seen at the node that joined", func() bool { return limitAt(t, c, 3) == 500 })
	must(t, c.Reload([]int{0, 1, 2, 3}, Edit{Limit: 800, Reserve: []int64{500_000, 500_000}}))
	until(t, "the reloaded limit in force everywhere", func() bool { return limitAt(t, c, 0) == 800 && limitAt(t, c, 3) == 800 })
	must(t, c.AwaitReady(ctx, nil, nil))
	removed, err := c.Apply(ctx, 2, Edit{Roster: []int{1, 2, 3}})
	inForce(2, removed.Epoch, err)
	c.Stop(0)
	c.Kill(1)
	forgotten, err := c.Apply(ctx, 3, Edit{Forget: []int{1}}) // which it is heard too well for at first
	inForce(3, forgotten.Epoch, err)
	if got := c.Roster(); !slices.Equal(got, []int{2, 3}) || c.Alive(0) || c.Alive(1) {
		t.Errorf("roster %v, want 2 and 3 alone", got)
	}
	must(t, c.AwaitReady(ctx, nil, nil))
	if _, err := c.Apply(ctx, 2, Edit{Reserve: []int64{1, 1}}); err == nil {
		t.Error("a split that does not add up was accepted")
	}
}

func limitAt(t *testing.T, c *Cluster, i int) float64 {
	t.Helper()
	s, err := c.Client(i).Status(soon(t))
	must(t, err)
	return s.Budgets[0].Limit
}

func TestKeysAreThoseOfTheNextStart(t *testing.T) {
	t.Parallel()
	c := run(t, testConfig(t, 3))
	old, fresh := c.Keys()[0], NewKey()
	for i, keys := range [][]string{{old, fresh}, {fresh, old}} { // the second one is heard by the first alone
		c.SetKeys(keys)
		c.Stop(i)
		must(t, c.Start(i))
		must(t, c.AwaitReady(soon(t), nil, nil))
	}
	text, err := os.ReadFile(filepath.Join(c.cfg.Dir, "n1.yaml"))
	if want := quoted([]string{fresh, old}); err != nil || !strings.Contains(string(text), "keys: ["+want+"]") {
		t.Errorf("no keys %s (%v) in:\n%s", want, err, text)
	}
}

func TestSupervisorsThatAreGivenStayOpen(t *testing.T) {
	t.Parallel()
	in := testConfig(t, 1)
	in.Children = child.New()
	c := newCluster(t, in)
	must(t, c.Start(0))
	c.Close()
	p, err := in.Children.Start(child.Launch{Name: "other", Path: binary(), Args: []string{"version"}})
	must(t, err)
	<-p.Done()
	in.Children.Close(time.Minute)
}

func TestWaitingEndsWithItsContextAndSaysForWhom(t *testing.T) {
	t.Parallel()
	c := newCluster(t, testConfig(t, 3))
	must(t, c.Start(0))
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	var said []string
	err := c.AwaitReady(ctx, nil, func(waiting []string) { said = waiting })
	if err == nil || !strings.Contains(err.Error(), "n1 (no answer yet)") || len(said) != 2 {
		t.Errorf("waiting for %q: %v", said, err)
	}
}
