package node

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"subak/internal/api"
	"subak/internal/core"
)

// These tests change clusters of real nodes through their admin interface.

// client asks a node as an operator does.
func (l *live) client() *api.Client {
	l.t.Helper()
	if l.asks == nil {
		var err error
		if l.asks, err = api.NewClient(api.ClientConfig{Address: l.node.web.Addr()}); err != nil {
			l.t.Fatal(err)
		}
		l.t.Cleanup(l.asks.Close)
	}
	return l.asks
}

// budgetFile is a file of budgets alone.
func budgetFile(limit, first int) string {
	return fmt.Sprintf("budgets:\n  - name: origin\n    limit: %d/s\n    classes: [{name: high, reserve: %d%%}, {name: low, reserve: %d%%}]\n", limit, first, 100-first)
}

// change asks for a change that must be made.
func (l *live) change(r api.ChangeRequest) api.Change {
	l.t.Helper()
	c, err := l.client().Change(context.Background(), r)
	if err != nil {
		l.t.Fatalf("%s: %v", l.name, err)
	}
	return c
}

// refused asks for a change that must be refused with a status and words, and
// must change nothing.
func (l *live) refused(t *testing.T, r api.ChangeRequest, status int, words ...string) {
	t.Helper()
	before := l.status().Epoch
	c, err := l.client().Change(context.Background(), r)
	no, ok := errors.AsType[*api.Refused](err)
	if !ok || no.Status != status {
		t.Errorf("%+v, %v; want a refusal by %d", c, err, status)
		return
	}
	for _, w := range append(words, "; mend: ") {
		if !strings.Contains(no.Message, w) {
			t.Errorf("want %q in %q", w, no.Message)
		}
	}
	if after := l.status().Epoch; after.Version != before.Version {
		t.Errorf("the epoch went from %v to %v", before, after)
	}
}

// progress is how far an epoch is at l.
func (l *live) progress(epoch string) api.Change {
	l.t.Helper()
	c, err := l.client().Progress(context.Background(), epoch)
	if err != nil {
		l.t.Fatalf("%s: %v", l.name, err)
	}
	return c
}

// ends waits until the followed change is done in the given state, and returns it.
func (l *live) ends(epoch string, state api.ChangeState) (c api.Change) {
	l.t.Helper()
	eventually(l.t, fmt.Sprintf("%s says that %s is %s", l.name, epoch, state), func() bool { c = l.progress(epoch); return c.State == state })
	return c
}

// everywhere waits until all nodes have the same epoch in force and says which.
func everywhere(t *testing.T, nodes []*live, limit float64) api.Epoch {
	t.Helper()
	eventually(t, fmt.Sprintf("a limit of %v is in force everywhere", limit), func() bool {
		for _, l := range nodes {
			s := l.status()
			if s.Epoch != nodes[0].status().Epoch || !s.Epoch.Active || s.Budgets[0].Limit != limit || s.Change != "" {
				return false
			}
		}
		return true
	})
	return nodes[0].status().Epoch
}

func TestEditsGoThroughOrAreRefusedWithTheMend(t *testing.T) {
	t.Parallel()
	nodes := cluster(t)
	a, b, c := nodes[0], nodes[1], nodes[2]
	everywhere(t, nodes, 3000)

	plan := a.change(api.ChangeRequest{Name: "f.yaml", File: budgetFile(1500, 60), DryRun: true})
	if plan.State != api.ChangePlanned || !strings.Contains(strings.Join(plan.Plan, "|"), "limit 3000/s -> 1500/s") || a.status().Epoch.Version != 1 {
		t.Errorf("dry run: %+v at version %d", plan, a.status().Epoch.Version)
	}
	for _, tc := range []struct {
		name   string
		r      api.ChangeRequest
		status int
		words  []string
	}{
		{"faults", api.ChangeRequest{Name: "f.yaml", File: strings.Replace(budgetFile(1, 60), "1/s", "x/s", 1)}, 400, []string{"f.yaml:3: budgets[0].limit"}},
		{"no content", api.ChangeRequest{Name: "f.yaml", File: "\n"}, 400, []string{"f.yaml:1"}},
		{"a foreign file", api.ChangeRequest{Name: "f.yaml", File: "cluster: {name: prod}\n" + budgetFile(1500, 60)}, 409, []string{`"prod"`, `"test"`}},
		{"another epoch", api.ChangeRequest{Name: "f.yaml", File: budgetFile(1500, 60), Expect: "7-00000000000000aa"}, 409, []string{"7-00000000000000aa"}},
		{"a live node", api.ChangeRequest{Forget: []string{"b"}}, 409, []string{"b was heard"}},
		{"itself", api.ChangeRequest{Forget: []string{"a"}}, 409, []string{"a is this node"}},
		{"nobody", api.ChangeRequest{Forget: []string{"z"}}, 409, []string{`"z"`}},
		{"a long trial", api.ChangeRequest{Name: "f.yaml", File: budgetFile(1500, 60), Canary: "b", CanarySeconds: 1e300}, 400, []string{"1h"}},
	} {
		t.Run(tc.name, func(t *testing.T) { a.refused(t, tc.r, tc.status, tc.words...) })
	}
	if _, err := a.client().Change(context.Background(), api.ChangeRequest{Name: "f.yaml", File: budgetFile(1500, 60), Canary: "z"}); err == nil {
		t.Error("a stranger as canary: no error")
	}
	for _, epoch := range []string{"9-00000000000000aa", "x"} {
		_, err := a.client().Progress(context.Background(), epoch)
		no, _ := errors.AsType[*api.Refused](err)
		if want := map[string]int{"x": 400}[epoch]; no == nil || no.Status != max(want, 404) && no.Status != want {
			t.Errorf("progress of %s: %v", epoch, err)
		}
	}
	same := b.change(api.ChangeRequest{Name: "f.yaml", File: setup{name: "b"}.yaml()})
	if same.State != api.ChangeNone || !strings.HasPrefix(same.Epoch, "1-") {
		t.Errorf("the same file: %+v", same)
	}

	cut := b.change(api.ChangeRequest{Name: "f.yaml", File: budgetFile(1500, 60), Expect: same.Epoch})
	b.ends(cut.Epoch, api.ChangeInForce)
	everywhere(t, nodes, 1500)
	c.refused(t, api.ChangeRequest{Name: "f.yaml", File: setup{name: "c"}.yaml()}, 409, "was in force before", "--revert")
	raised := c.change(api.ChangeRequest{Name: "f.yaml", File: setup{name: "c"}.yaml(), Revert: true})
	c.ends(raised.Epoch, api.ChangeInForce)
	everywhere(t, nodes, 3000)
	if got := b.progress(cut.Epoch); got.State != api.ChangeInForce || !strings.Contains(got.Reason, "follows it") {
		t.Errorf("the epoch before: %s, %q", got.State, got.Reason)
	}

	weights := a.change(api.ChangeRequest{Name: "f.yaml", File: "nodes: [{name: a, weight: 4}, {name: b}, {name: c}]\n"})
	a.ends(weights.Epoch, api.ChangeInForce)
	eventually(t, "b has heard so too", func() bool { return b.status().Epoch.Version == 4 && b.status().Epoch.Active })
	split := b.change(api.ChangeRequest{Name: "f.yaml", File: budgetFile(3000, 30)})
	b.ends(split.Epoch, api.ChangeInForce)
	eventually(t, "c has the new split and the new weight: what a file leaves out stays", func() bool {
		s := c.status()
		return s.Epoch.Active && s.Budgets[0].Limit == 3000 && s.Budgets[0].Classes[0].Reservation == 900 && s.Members[0].Weight == 4
	})
	if got := c.logged.String(); strings.Count(got, "epoch taken up") != 4 || !strings.Contains(got, "epoch in force here") {
		t.Error("not all four changes are in the log of a node that was asked for one")
	}
}

func TestOfTwoEditsAtOnceOneWinsEverywhereAndTheOtherIsTold(t *testing.T) {
	t.Parallel()
	nodes := cluster(t)
	everywhere(t, nodes, 3000)
	// Both loops are held until both are about to edit, so neither can have heard
	// of the other's.
	var both, done sync.WaitGroup
	both.Add(2)
	made := make([]api.Change, 2)
	for i, l := range []*live{nodes[0], nodes[2]} {
		doc := l.node.core.Document().Clone()
		limit := doc.Budgets[0].Spec.Budget / 3 * 2
		if i == 1 {
			limit = doc.Budgets[0].Spec.Budget / 2
		}
		doc.Budgets[0].Spec.Budget = limit
		doc.Budgets[0].Spec.Classes[0].Reservation = limit / 2
		doc.Budgets[0].Spec.Classes[1].Reservation = limit - limit/2
		done.Go(func() {
			var err error
			made[i], err = answered(l.node, func(now int64) (api.Change, error) {
				both.Done()
				both.Wait()
				return l.node.apply(now, core.Change{Document: doc}, 0)
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	done.Wait()
	limits := []float64{2000, 1500}
	winner := 0
	eventually(t, "the two agree", func() bool {
		a, c := nodes[0].status(), nodes[2].status()
		if a.Budgets[0].Limit == limits[1] {
			winner = 1
		}
		return a.Epoch == c.Epoch && a.Epoch.Version == 2 && a.Epoch.Active
	})
	everywhere(t, nodes, limits[winner])
	editors := []*live{nodes[0], nodes[2]}
	editors[winner].ends(made[winner].Epoch, api.ChangeInForce)
	lost := editors[1-winner].ends(made[1-winner].Epoch, api.ChangeSuperseded)
	if !strings.Contains(lost.Reason, made[winner].Epoch) || !strings.Contains(strings.Join(lost.Plan, "|"), fmt.Sprintf("limit %v/s -> %v/s", limits[1-winner], limits[winner])) {
		t.Errorf("the loser is told %q, %q", lost.Reason, lost.Plan)
	}
}

func TestATrialEndsByItselfOrByHandAndItsOperatorIsTold(t *testing.T) {
	t.Parallel()
	nodes := cluster(t)
	a, b, c := nodes[0], nodes[1], nodes[2]
	everywhere(t, nodes, 3000)
	try := func(limit int, seconds float64) string {
		t.Helper()
		trial := a.change(api.ChangeRequest{Name: "f.yaml", File: budgetFile(limit, 60), Canary: "b", CanarySeconds: seconds})
		if trial.State != api.ChangeCanary || trial.Canary != "b" {
			t.Errorf("a trial begins as %+v", trial)
		}
		return trial.Epoch
	}
	onTrial := func(epoch string) {
		t.Helper()
		eventually(t, "c knows of the trial, and b alone has taken it up", func() bool {
			p := c.progress("")
			return p.Epoch == epoch && p.Canary == "b" && p.Nodes[1].Acked && strings.Contains(c.status().Change, "on trial at b")
		})
	}

	trial := try(1500, 0.1)
	if end := a.ends(trial, api.ChangeInForce); end.Epoch == trial {
		t.Error("the trial is in force, not the epoch that promoted it")
	}
	everywhere(t, nodes, 1500)

	trial = try(1000, 3600)
	onTrial(trial)
	if p := c.progress(""); !strings.Contains(p.Reason, "subak change promote") {
		t.Errorf("a node that does not end the trial says %q", p.Reason)
	}
	in := c.status().Epoch
	if p := c.progress(fmt.Sprintf("%d-%s", in.Version, in.Hash)); p.State != api.ChangeInForce || !strings.Contains(p.Reason, "on trial at b") {
		t.Errorf("the epoch in force beside a trial: %+v", p)
	}
	if _, err := c.client().Abandon(context.Background()); err != nil {
		t.Fatal(err)
	}
	a.ends(trial, api.ChangeAbandoned)
	everywhere(t, nodes, 1500)

	trial = try(900, 3600)
	onTrial(trial)
	if _, err := c.client().Promote(context.Background()); err != nil {
		t.Fatal(err)
	}
	a.ends(trial, api.ChangeInForce)
	everywhere(t, nodes, 900)
	_, err := c.client().Promote(context.Background())
	if no, ok := errors.AsType[*api.Refused](err); !ok || no.Status != http.StatusConflict {
		t.Errorf("promoted once more: %v", err)
	}

	trial = try(800, 3600)
	onTrial(trial)
	b.end()
	if end := a.ends(trial, api.ChangeAbandoned); !strings.Contains(end.Reason, "put back") {
		t.Errorf("a canary that died: %q", end.Reason)
	}
	if !strings.Contains(a.logged.String(), "the change is taken back") {
		t.Error("the log does not say that the change was taken back")
	}

	// b is dead: a change waits for it by name, and goes on when it is forgotten.
	cut := a.change(api.ChangeRequest{Name: "f.yaml", File: budgetFile(600, 60), Replace: true})
	eventually(t, "it waits for b alone", func() bool {
		p := c.progress("")
		return p.Epoch == cut.Epoch && p.State == api.ChangeSpreading && p.Reason == "waits for b" && strings.Contains(p.Nodes[1].Waits, "not heard for") &&
			strings.Contains(c.status().Change, "waits for b")
	})
	c.refused(t, api.ChangeRequest{Name: "f.yaml", File: budgetFile(500, 60)}, 409, "under way", "waits for b", "subak forget")
	dead := c.change(api.ChangeRequest{Forget: []string{"b"}})
	c.ends(dead.Epoch, api.ChangeInForce)
	everywhere(t, []*live{a, c}, 600)
	if s := a.status(); s.Budgets[0].Share != 300 {
		t.Errorf("a enforces %v, want half of 600", s.Budgets[0].Share)
	}
}

// A node that does not know what is in force must not judge a file by its own.
func TestANodeWithoutMemoryTakesNoChanges(t *testing.T) {
	t.Parallel()
	a := begin(t, setup{name: "a", dir: t.TempDir(), existing: true})
	a.refused(t, api.ChangeRequest{Name: "f.yaml", File: setup{name: "a"}.yaml()}, 409, "not sure")
	a.refused(t, api.ChangeRequest{Name: "f.yaml", File: budgetFile(500, 60)}, 409, "not sure")
	_, progress := a.client().Progress(context.Background(), "")
	_, promoted := a.client().Promote(context.Background())
	for _, err := range []error{progress, promoted} {
		if no, ok := errors.AsType[*api.Refused](err); !ok || no.Status != 409 {
			t.Errorf("%v, want a refusal", err)
		}
	}
}
