package node

import (
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
	present, err := n.present()
	if err != nil {
		return api.Change{}, err
	}
	ch := core.Change{Canary: r.Canary, Revert: r.Revert, DryRun: r.DryRun, Replace: r.Replace}
	if r.File != "" {
		cfg, err := config.ParseChange(r.Name, []byte(r.File), roster(present))
		if err != nil {
			return api.Change{}, fmt.Errorf("%w:\n%w", web.ErrInvalid, err)
		}
		ch.Document = changed(cfg, present)
	}
	for _, name := range r.Forget {
		if ch.Forget == nil {
			ch.Forget = map[string]uint64{}
		}
		ch.Forget[name] = 0
	}
	if r.Expect != "" {
		id, err := parseEpoch(r.Expect)
		if err != nil {
			return api.Change{}, err
		}
		ch.Expect = &id
	}
	return n.change(ch, trialOf(r))
}

// present returns the document in force.
func (n *Node) present() (*epoch.Document, error) {
	return answered(n, func(int64) (*epoch.Document, error) { return n.core.Document(), nil })
}

// change hands a change to the core.
func (n *Node) change(ch core.Change, span time.Duration) (api.Change, error) {
	out, err := answered(n, func(now int64) (api.Change, error) { return n.apply(now, ch, span) })
	if err != nil {
		return api.Change{}, changeFault(err)
	}
	out.Warnings = n.strays(ch.Document)
	return out, nil
}

func (n *Node) apply(now int64, ch core.Change, span time.Duration) (api.Change, error) {
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
			n.trial = trial{epoch: plan.Epoch, canary: ch.Canary, span: span, began: now}
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
		mend = "apply the newest file; to go back on purpose, say --revert"
	case errors.Is(err, core.ErrForeign):
		mend = "name the file of this cluster"
	case errors.Is(err, core.ErrConflict):
		mend = "look at what is in force (subak change), and decide anew"
	case errors.Is(err, core.ErrNotMember):
		mend = "ask another node by --admin"
	case errors.Is(err, core.ErrNotReady):
		mend = "wait until this node is ready (subak status), or ask another one by --admin"
	case errors.Is(err, core.ErrAlive):
		mend = "stop that node for good first, or remove it from nodes in the file and apply that"
	case errors.Is(err, core.ErrUnknownNode):
		mend = "see subak members for the names"
	case errors.Is(err, core.ErrNoCanary):
		mend = "see subak change for what is under way"
	case errors.Is(err, core.ErrNotSaved):
		mend = "free the disk of cluster.data_dir, and see subak change for whether it went through"
	default:
		if _, ok := errors.AsType[*core.UnderWayError](err); ok {
			mend = "wait for it; or if a node that it waits for is dead, subak forget it; or put this change in its place with --replace"
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
	out, err := answered(n, func(now int64) (api.Change, error) { return n.describe(now, id), nil })
	if err == nil && out.State == "" {
		err = fmt.Errorf("%w: epoch %s is not known here; it may have been replaced long ago, or not have come here yet", web.ErrNotFound, text)
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

// describe says how far an epoch is, zero for the newest; State is empty for an
// epoch that is not known. On the loop.
func (n *Node) describe(now int64, id ledger.EpochID) api.Change {
	p := n.core.Progress(now)
	if id == (ledger.EpochID{}) {
		if id = p.Epoch; p.Trial != (ledger.EpochID{}) {
			id = p.Trial
		}
	}
	out := api.Change{Epoch: id.String(), Plan: []string{}, Nodes: []api.ChangeNode{}, Seconds: n.knownFor(now, id)}
	lost, superseded := n.core.SupersededBy(id)
	switch {
	case superseded:
		out.State, out.Reason = api.ChangeSuperseded, fmt.Sprintf("epoch %v won", lost.Winner)
		for _, d := range lost.Differs {
			out.Plan = append(out.Plan, "it differs in "+d.String())
		}
		return out
	case id == p.Trial:
		out.State, out.Canary = api.ChangeCanary, p.Canary
	case id == p.Epoch:
		out.State = api.ChangeSpreading
	case id == p.Active:
		out.State, out.Reason = api.ChangeInForce, fmt.Sprintf("epoch %v is to follow it", p.Epoch)
		return out
	default:
		return out
	}
	waits := []string{}
	for _, x := range p.Nodes {
		age := -1.0
		if x.Heard >= 0 {
			age = millis(x.Heard)
		}
		out.Nodes = append(out.Nodes, api.ChangeNode{Name: x.Node, Adopted: x.Adopted, Acked: x.Acked, InForce: x.InForce, AgeMillis: age, Waits: x.Why})
		silent := x.Heard < 0 || x.Heard > 2*n.cfg.Gossip.Term
		if !x.InForce && !x.Forced && !(silent && p.InForce && !x.Self) {
			waits = append(waits, x.Node)
		}
	}
	if out.State == api.ChangeSpreading && p.InForce && len(waits) == 0 {
		out.State = api.ChangeInForce
	} else if out.State == api.ChangeSpreading {
		out.Reason = "waits for " + strings.Join(waits, ", ")
	}
	return out
}

// knownFor is how long the newest epochs have been known here.
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

// reload reads the configuration again whenever it is told to, until ctx ends. A
// file with faults changes nothing.
func (n *Node) reload(ctx context.Context, opts Options) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-opts.Reload:
		}
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
	n.ask(func() { n.doc = doc.Clone() }) // for the status alone
	c, err := n.change(core.Change{Document: doc}, 0)
	switch {
	case err != nil:
		n.log.Error("reload: nodes and budgets stay as they are", "err", err)
	case c.State == api.ChangeNone:
		n.log.Info("reload: nodes and budgets are as in force", "epoch", c.Epoch)
	default:
		n.log.Info("reload: nodes and budgets change", "epoch", c.Epoch, "plan", strings.Join(c.Plan, "; "))
	}
	if err := n.setDoors(cfg.Listeners); err != nil {
		n.log.Error("reload: listeners stay as they are", "err", err)
		return
	}
	n.log.Info("reload: listeners are as in the file", "listeners", len(cfg.Listeners))
}
