package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"subak/allocator"
	"subak/allocator/ledger"
	"subak/internal/api"
	"subak/internal/config"
	"subak/internal/core"
	"subak/internal/epoch"
	"subak/internal/web"
)

// Change implements web.Backend: it makes the epoch of a file, or its plan.
func (n *Node) Change(r api.ChangeRequest) (api.Change, error) {
	span, err := trialOf(&r)
	if err != nil {
		return api.Change{}, err
	}
	ch := core.Change{Canary: r.Canary, Revert: r.Revert, DryRun: r.DryRun, Replace: r.Replace, Forget: map[string]uint64{}}
	for _, name := range r.Forget {
		ch.Forget[name] = 0
	}
	if r.Expect != "" {
		id, err := parseEpoch(r.Expect)
		if err != nil {
			return api.Change{}, err
		}
		ch.Expect = &id
	}
	for range changeTries {
		out, err := n.change(&r, ch, span)
		if !errors.Is(err, errMoved) {
			return out, err
		}
	}
	return api.Change{}, changeFault(fmt.Errorf("%w: again and again while this file was read", core.ErrConflict))
}

// changeTries bounds how often a file is read again because what it leaves out
// has changed meanwhile.
const changeTries = 5

// errMoved: another change was taken up while a file was read.
var errMoved = errors.New("what is in force has changed meanwhile")

// change reads the file of a request against the document in force, and hands it
// to the core if that is still in force then.
func (n *Node) change(r *api.ChangeRequest, ch core.Change, span time.Duration) (api.Change, error) {
	present, err := n.present()
	if err != nil {
		return api.Change{}, changeFault(err)
	}
	if r.File != "" {
		cfg, err := config.ParseChange(r.Name, []byte(r.File), roster(present))
		if err != nil {
			return api.Change{}, fmt.Errorf("%w:\n%w", web.ErrInvalid, err)
		}
		ch.Document = changed(cfg, present)
	}
	out, err := answered(n, func(now int64) (api.Change, error) {
		if n.core.Document() != present {
			return api.Change{}, errMoved
		}
		return n.apply(now, ch, span)
	})
	switch {
	case errors.Is(err, errMoved):
		return out, err
	case err != nil:
		return api.Change{}, changeFault(err)
	}
	out.Warnings = n.strays(ch.Document)
	return out, nil
}

// present returns the document in force, if this node knows it.
func (n *Node) present() (*epoch.Document, error) {
	return answered(n, func(int64) (*epoch.Document, error) {
		if n.joiner != nil {
			return nil, core.ErrNotReady
		}
		return n.core.Document(), nil
	})
}

// apply makes a change: on the loop.
func (n *Node) apply(now int64, ch core.Change, span time.Duration) (api.Change, error) {
	if n.joiner != nil { // the core stands for the file alone
		return api.Change{}, core.ErrNotReady
	}
	plan, err := n.core.Apply(now, wallMillis(), ch)
	if errors.Is(err, core.ErrNothingToChange) {
		return api.Change{
			Epoch: plan.Parent.String(), State: api.ChangeNone, Reason: "the file says what is in force",
			Plan: []string{}, Nodes: []api.ChangeNode{},
		}, nil
	}
	if err != nil {
		return api.Change{}, err
	}
	out := api.Change{Epoch: plan.Parent.String(), State: api.ChangePlanned, Nodes: []api.ChangeNode{}}
	if !ch.DryRun {
		if ch.Canary != "" {
			n.trial = trial{epoch: plan.Epoch, canary: ch.Canary, span: span, ill: now}
		}
		out = n.describe(now, plan.Epoch)
	}
	out.Parent, out.Plan = plan.Parent.String(), words(&plan)
	return out, nil
}

// changeFault adds the mend to a refusal.
func changeFault(err error) error {
	mend := ""
	switch {
	case errors.Is(err, ErrBusy):
		return err
	case errors.Is(err, core.ErrOlder):
		mend = "take the newest file; to go back on purpose: subak apply -f FILE --revert"
	case errors.Is(err, core.ErrForeign):
		mend = "name the file of this cluster"
	case errors.Is(err, core.ErrConflict):
		mend = "look at what is in force (subak change), and decide anew"
	case errors.Is(err, core.ErrNotMember):
		mend = "ask another node by --admin"
	case errors.Is(err, core.ErrNotReady):
		mend = "wait until this node is ready (subak status), or ask another one by --admin"
	case errors.Is(err, core.ErrAlive):
		mend = "stop that node for good, wait until it has not been heard for a while (gossip.term), and try again; one that runs is removed from nodes in the file, by subak apply"
	case errors.Is(err, core.ErrUnknownNode):
		mend = "see subak members for the names"
	case errors.Is(err, core.ErrNoCanary):
		mend = "see subak change for what is under way"
	case errors.Is(err, core.ErrNotSaved):
		mend = "free the disk of cluster.data_dir, and see subak change for whether it went through"
	default:
		if _, ok := errors.AsType[*core.UnderWayError](err); ok {
			mend = "wait for it; start the nodes that it waits for, or subak forget those that will not come back; or put this change in its place with --replace"
			break
		}
		return fmt.Errorf("%w: %w", web.ErrInvalid, err)
	}
	return fmt.Errorf("%w: %w; mend: %s", web.ErrConflict, err, mend)
}

// words is a plan in sentences.
func words(p *core.Plan) []string {
	out := []string{}
	for _, d := range p.Differences {
		out = append(out, d.String())
	}
	if len(p.MustAck) > 0 {
		out = append(out, "must acknowledge: "+strings.Join(p.MustAck, ", "))
	}
	if len(p.Forgotten) > 0 {
		out = append(out, "declared dead: "+strings.Join(p.Forgotten, ", ")+"; their part comes back one term after the others took this up")
	}
	if p.Replaces != (ledger.EpochID{}) {
		out = append(out, "takes the place of "+p.Replaces.String()+", which is under way")
	}
	return out
}

// strays warns of rules of this node's listeners that a document leaves without
// a target.
func (n *Node) strays(doc *epoch.Document) (warnings []string) {
	if doc == nil {
		return nil
	}
	known := func(budget, class string) bool {
		at := slices.IndexFunc(doc.Budgets, func(b epoch.Budget) bool { return b.Name == budget })
		return at >= 0 && slices.ContainsFunc(doc.Budgets[at].Spec.Classes, func(c allocator.ClassSpec) bool { return c.Name == class })
	}
	n.doors.mu.Lock()
	defer n.doors.mu.Unlock()
	for _, d := range n.doors.list {
		for i, r := range d.cfg.Rules {
			if !known(r.Budget, r.Class) {
				warnings = append(warnings, fmt.Sprintf("listener %s of this node: rules[%d] sends to %s/%s, which is not in the file: its requests go the way of on_unknown", d.cfg.Name, i, r.Budget, r.Class))
			}
		}
		if t := d.cfg.Default; t.Budget != "" && !known(t.Budget, t.Class) {
			warnings = append(warnings, fmt.Sprintf("listener %s of this node: its default is %s/%s, which is not in the file: unmatched requests will be refused", d.cfg.Name, t.Budget, t.Class))
		}
	}
	for _, d := range n.doors.envoys {
		warnings = append(warnings, envoyStrays(&d.cfg, known)...)
	}
	return warnings
}

// envoyStrays is strays for a door for Envoys.
func envoyStrays(c *config.Envoy, known func(budget, class string) bool) (warnings []string) {
	stray := func(what, budget, class, then string) {
		if budget+class != "" && !known(budget, class) {
			warnings = append(warnings, fmt.Sprintf("envoy door %s of this node: %s %s/%s, which is not in the file: %s", c.Name, what, budget, class, then))
		}
	}
	const unknown = "its descriptors go the way of on_unknown"
	for _, d := range c.Domains {
		for i, r := range d.Rules {
			stray(fmt.Sprintf("rules[%d] of domain %s sends to", i, d.Name), cmp.Or(r.Budget, d.Budget), cmp.Or(r.Class, d.Class), unknown)
		}
		if d.Class != "" {
			stray("domain "+d.Name+" sends to", d.Budget, d.Class, unknown)
		}
	}
	stray("its default is", c.Default.Budget, c.Default.Class, "unmatched descriptors will be refused")
	return warnings
}

// Progress implements web.Backend.
func (n *Node) Progress(text string) (api.Change, error) {
	var id ledger.EpochID
	if text != "" {
		var err error
		if id, err = parseEpoch(text); err != nil {
			return api.Change{}, err
		}
	}
	out, err := answered(n, func(now int64) (api.Change, error) {
		switch {
		case n.joiner != nil:
			return api.Change{}, core.ErrNotReady
		case text != "" && !n.core.Knows(id):
			return api.Change{}, fmt.Errorf("%w: epoch %s is not known here; it may be long gone, or not have come here yet; mend: see subak change for the newest", web.ErrNotFound, text)
		}
		return n.describe(now, id), nil
	})
	if err != nil && !errors.Is(err, web.ErrNotFound) {
		err = changeFault(err)
	}
	return out, err
}

// EndTrial implements web.Backend.
func (n *Node) EndTrial(promote bool) (api.Change, error) {
	out, err := answered(n, func(now int64) (api.Change, error) { return n.endTrial(now, promote) })
	if err != nil {
		return api.Change{}, changeFault(err)
	}
	return out, nil
}

func (n *Node) endTrial(now int64, promote bool) (api.Change, error) {
	var id ledger.EpochID
	var err error
	if n.joiner != nil {
		return api.Change{}, core.ErrNotReady
	}
	if promote {
		id, err = n.core.Promote(now, wallMillis())
	} else {
		var plan core.Plan
		plan, err = n.core.Abandon(now, wallMillis())
		id = plan.Epoch
	}
	if err != nil {
		return api.Change{}, err
	}
	n.trial = trial{}
	return n.describe(now, id), nil
}

// describe says how far an epoch that is known here has come, zero for the
// newest: on the loop.
func (n *Node) describe(now int64, id ledger.EpochID) api.Change {
	p := n.core.Progress(now)
	if id == (ledger.EpochID{}) {
		if id = p.Epoch; p.Trial != (ledger.EpochID{}) {
			id = p.Trial
		}
	}
	lost, superseded := n.core.SupersededBy(id)
	if superseded && len(lost.Differs) == 0 { // promoted, or the same wish of another node
		return n.describe(now, lost.Winner)
	}
	out := api.Change{Epoch: id.String(), Plan: []string{}, Nodes: []api.ChangeNode{}, Seconds: n.knownFor(now, id)}
	switch {
	case superseded && lost.Undone:
		out.State, out.Reason = api.ChangeAbandoned, fmt.Sprintf("epoch %v put back what was in force before", lost.Winner)
	case superseded:
		out.State, out.Reason = api.ChangeSuperseded, fmt.Sprintf("epoch %v won", lost.Winner)
		for _, d := range lost.Differs {
			out.Plan = append(out.Plan, "it differs in "+d.String())
		}
	case id == p.Trial:
		out.State, out.Canary, out.Reason = api.ChangeCanary, p.Canary, n.trialWords(now, &p)
		out.Nodes, _ = n.nodesOf(&p)
	case p.Epoch.Less(id):
		out.State, out.Reason = api.ChangeSpreading, first(n.diskWords(), "this node has not taken it up yet")
	case id != p.Epoch:
		out.State, out.Reason = api.ChangeInForce, fmt.Sprintf("epoch %v follows it", p.Epoch)
	case p.Trial != (ledger.EpochID{}):
		out.State, out.Reason = api.ChangeInForce, fmt.Sprintf("epoch %v is on trial at %s", p.Trial, p.Canary)
	default:
		var waits []string
		if out.Nodes, waits = n.nodesOf(&p); len(waits) == 0 {
			out.State = api.ChangeInForce
		} else {
			out.State, out.Reason = api.ChangeSpreading, "waits for "+strings.Join(waits, ", ")
		}
	}
	return out
}

// nodesOf lists the nodes of the newest change, and whom it waits for until it
// is in force at all that are heard: nobody once it is.
func (n *Node) nodesOf(p *core.Progress) (nodes []api.ChangeNode, waits []string) {
	var dead, late []string // declared dead, whose loans run out; have acknowledged, and wait themselves
	for _, x := range p.Nodes {
		age := -1.0
		if x.Heard >= 0 {
			age = millis(x.Heard)
		}
		nodes = append(nodes, api.ChangeNode{Name: x.Node, Adopted: x.Adopted, Acked: x.Acked, InForce: x.InForce, AgeMillis: age, Waits: x.Why})
		silent := !x.Self && (x.Heard < 0 || x.Heard > 2*n.cfg.Gossip.Term)
		switch {
		case x.InForce, p.InForce && (silent || x.Forced):
		case x.Forced:
			dead = append(dead, x.Node)
		case x.Acked:
			late = append(late, x.Node)
		default:
			waits = append(waits, x.Node)
		}
	}
	for _, others := range [][]string{dead, late} {
		if len(waits) == 0 {
			waits = others
		}
	}
	return nodes, waits
}

// underWay says in words what changes just now, for the status: on the loop.
func (n *Node) underWay(now int64) string {
	if n.joiner != nil {
		return ""
	}
	p := n.core.Progress(now)
	if p.Trial == (ledger.EpochID{}) && p.Active == p.Epoch {
		return ""
	}
	c := n.describe(now, ledger.EpochID{})
	if c.State == api.ChangeCanary {
		return fmt.Sprintf("epoch %s is on trial at %s; %s", c.Epoch, c.Canary, c.Reason)
	}
	return fmt.Sprintf("epoch %s is not in force here yet; it %s", c.Epoch, c.Reason)
}

func first(words ...string) string {
	for _, w := range words {
		if w != "" {
			return w
		}
	}
	return ""
}

// knownFor is how long an epoch has been known here: on the loop.
func (n *Node) knownFor(now int64, id ledger.EpochID) float64 {
	at, ok := n.known[id]
	if !ok {
		if len(n.known) > 16 {
			clear(n.known)
		}
		n.known[id], at = now, now
	}
	return time.Duration(now - at).Seconds()
}

// parseEpoch reads VERSION-HASH.
func parseEpoch(text string) (ledger.EpochID, error) {
	version, hash, _ := strings.Cut(text, "-")
	v, err1 := strconv.ParseUint(version, 10, 64)
	h, err2 := strconv.ParseUint(hash, 16, 64)
	if err1 != nil || err2 != nil {
		return ledger.EpochID{}, fmt.Errorf("%w: epoch %q is not VERSION-HASH as subak status prints it", web.ErrInvalid, text)
	}
	return ledger.EpochID{Version: v, Hash: h}, nil
}

// reload reads the configuration again whenever it is told to, until ctx ends, and
// the TLS files before it. A file with faults changes nothing.
func (n *Node) reload(ctx context.Context, opts Options) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-opts.Reload:
		}
		n.reloadTLS()
		if opts.Load == nil {
			continue
		}
		cfg, err := opts.Load()
		if err != nil {
			n.log.Error("reload: the configuration has faults; nothing is changed", "err", err)
			continue
		}
		n.take(cfg)
	}
}

// take puts a checked configuration in force: listeners here, nodes and budgets
// in the cluster.
func (n *Node) take(cfg *config.Config) {
	for _, section := range []struct {
		name     string
		old, new any
	}{
		{"cluster", n.cfg.Cluster, cfg.Cluster}, {"node", n.cfg.Node, cfg.Node}, {"gossip", n.cfg.Gossip, cfg.Gossip},
		{"protocol", n.cfg.Protocol, cfg.Protocol}, {"admin", n.cfg.Admin, cfg.Admin}, {"log", n.cfg.Log, cfg.Log},
	} {
		if !reflect.DeepEqual(section.old, section.new) {
			n.log.Warn("reload: this section takes effect at the next start", "section", section.name)
		}
	}
	doc := document(cfg)
	doc.Canonical()
	var c api.Change
	var doors error
	_, err := answered(n, func(now int64) (api.Change, error) {
		n.doc = doc.Clone() // for the status alone
		var err error
		c, doors, err = n.renew(now, doc, cfg)
		return c, err
	})
	if errors.Is(err, ErrBusy) { // the rest may still be written
		n.log.Error("reload: nothing may have changed", "err", err)
		return
	}
	switch {
	case errors.Is(err, core.ErrOlder): // as after a forget: the file lags behind
		n.log.Warn("reload: the file's nodes and budgets were in force before and are left alone: bring the file up to date (subak status says what differs), or go back by subak apply --revert")
	case err != nil:
		n.log.Error("reload: nodes and budgets stay as they are", "err", changeFault(err))
	case c.State == api.ChangeNone:
		n.log.Info("reload: nodes and budgets are as in force", "epoch", c.Epoch)
	default:
		n.log.Info("reload: nodes and budgets change", "epoch", c.Epoch, "plan", strings.Join(c.Plan, "; "))
	}
	if doors != nil {
		n.log.Error("reload: listeners stay as they are", "err", doors)
		return
	}
	n.log.Info("reload: listeners are as in the file", "listeners", len(cfg.Listeners), "envoy", len(cfg.Envoy))
}

// renew puts a document and doors in force in one turn of the loop, so that
// no request meets the rules of one with the budgets of the other. Either may
// fail without the other.
func (n *Node) renew(now int64, doc *epoch.Document, cfg *config.Config) (c api.Change, doors, err error) {
	n.reloading = true
	c, err = n.apply(now, core.Change{Document: doc}, 0)
	if doors = n.setDoors(cfg); doors == nil {
		n.costs = largestCosts(cfg)
		doors = n.core.SetLargestCosts(now, n.costs)
	}
	n.reloading = false
	n.renewGates()
	return c, doors, err
}
