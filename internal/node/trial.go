package node

import (
	"fmt"
	"time"

	"subak/allocator/ledger"
	"subak/internal/api"
	"subak/internal/core"
	"subak/internal/web"
)

// The trial of a canary, when the operator does not say.
const (
	trialDefault = 10 * time.Second
	trialMax     = time.Hour
)

// trialEvery is the time between two looks at a trial.
const trialEvery = 250 * time.Millisecond

// trial is a change that one node tries, watched by the node that made it. Should
// that node go away, any other can promote or abandon the change.
type trial struct {
	epoch  ledger.EpochID
	canary string
	span   time.Duration // how long the canary must do well
	well   int64         // since when it does, lease clock; 0 while it does not
	ill    int64         // since when it does not, or since the trial began
	failed bool          // the trial could not be ended; that is logged
}

// trialOf is how long the canary of a request must do well.
func trialOf(r *api.ChangeRequest) (time.Duration, error) {
	switch s := r.CanarySeconds; {
	case s < 0 || s > trialMax.Seconds():
		return 0, fmt.Errorf("%w: canary_seconds is %v; mend: a trial takes up to %v", web.ErrInvalid, s, trialMax)
	case s == 0:
		return trialDefault, nil
	default:
		return time.Duration(s * float64(time.Second)), nil
	}
}

// verdict is what becomes of a trial.
type verdict uint8

const (
	goesOn verdict = iota
	promoted
	failed
)

// illMax is for how many terms in a row a canary may do badly: to take the change
// up it recalls its loans, which takes one, and may restart meanwhile.
const illMax = 3

// doesWell: the canary is heard under the epoch and has acknowledged it.
func (t *trial) doesWell(p *core.Progress, term time.Duration) bool {
	for _, x := range p.Nodes {
		if x.Node == t.canary {
			return x.Adopted && x.Acked && (x.Self || x.Heard >= 0 && x.Heard < term)
		}
	}
	return false
}

// judge looks at a trial.
func (t *trial) judge(now int64, p *core.Progress, term time.Duration) verdict {
	well := t.doesWell(p, term)
	switch {
	case !well && t.ill == 0:
		t.well, t.ill = 0, now
	case well && t.well == 0:
		t.well, t.ill = now, 0
	}
	switch {
	case well && now-t.well >= t.span.Nanoseconds():
		return promoted
	case !well && now-t.ill >= illMax*term.Nanoseconds():
		return failed
	}
	return goesOn
}

// trialWords says who ends the trial under way, and when: on the loop.
func (n *Node) trialWords(now int64, p *core.Progress) string {
	t, term := n.trial, n.cfg.Gossip.Term
	if t.epoch != p.Trial {
		return "the node that was asked for it ends the trial, or anybody by subak change promote or subak change abandon"
	}
	t.judge(now, p, term) // as of now; the verdict itself is for tryCanary
	if t.well == 0 {
		return fmt.Sprintf("it is taken back in %s unless %s takes it up", seconds(t.ill+illMax*term.Nanoseconds()-now), t.canary)
	}
	return fmt.Sprintf("it goes to all nodes in %s if %s goes on doing well", seconds(t.well+t.span.Nanoseconds()-now), t.canary)
}

func seconds(ns int64) string { return time.Duration(max(ns, 0)).Round(time.Second).String() }

// tryCanary ends the trial that this node watches when its time has come: on the
// loop.
func (n *Node) tryCanary(now int64) {
	p := n.core.Progress(now)
	if p.Trial != n.trial.epoch {
		n.trial = trial{} // ended by another node
		return
	}
	v := n.trial.judge(now, &p, n.cfg.Gossip.Term)
	if v == goesOn {
		return
	}
	canary, id, said := n.trial.canary, n.trial.epoch, n.trial.failed
	end, err := n.endTrial(now, v == promoted)
	switch {
	case err != nil && !said:
		n.log.Error("the trial of a change cannot be ended; it is tried again; or end it by subak change promote or subak change abandon at another node", "epoch", id.String(), "err", err)
		n.trial.failed = true
	case err != nil:
	case v == promoted:
		n.log.Info("the canary did well: the change goes to all nodes", "canary", canary, "trial", id.String(), "epoch", end.Epoch)
	default:
		n.log.Error("the canary did not take the change up, or fell silent: the change is taken back", "canary", canary, "trial", id.String(), "epoch", end.Epoch)
	}
}
