package node

import (
	"time"

	"subak/allocator/ledger"
	"subak/internal/api"
	"subak/internal/core"
)

// The trial of a canary, when the operator does not say.
const (
	trialDefault = 10 * time.Second
	trialMax     = time.Hour
)

// trial is a change that one node tries, watched by the node that made it. Should
// that node go away, any other can promote or abandon the change.
type trial struct {
	epoch  ledger.EpochID
	canary string
	span   time.Duration // how long the canary must do well
	began  int64
	well   int64 // since when it does; 0 while it does not
}

// trialOf is how long the canary of a request must do well.
func trialOf(r api.ChangeRequest) time.Duration {
	d := time.Duration(r.CanarySeconds * float64(time.Second))
	if d <= 0 {
		return trialDefault
	}
	return min(d, trialMax)
}

// verdict is what becomes of a trial.
type verdict uint8

const (
	goesOn verdict = iota
	promoted
	failed
)

// judge looks at a trial: the canary does well while it is heard under the epoch
// and has acknowledged it. Its time for that, once over, is a term more than the
// span before the change is taken back.
func (t *trial) judge(now int64, p *core.Progress, term time.Duration) verdict {
	well := false
	for _, x := range p.Nodes {
		if x.Node == t.canary {
			well = x.Adopted && x.Acked && (x.Self || x.Heard >= 0 && x.Heard < term)
		}
	}
	switch {
	case !well:
		t.well = 0
	case t.well == 0:
		t.well = now
	}
	switch {
	case well && now-t.well >= t.span.Nanoseconds():
		return promoted
	case !well && now-t.began >= (t.span+3*term).Nanoseconds():
		return failed
	}
	return goesOn
}

// tryCanary ends the trial that this node watches when its time has come: on the
// loop.
func (n *Node) tryCanary(now int64) {
	if n.trial.canary == "" {
		return
	}
	p := n.core.Progress(now)
	if p.Trial != n.trial.epoch {
		n.trial = trial{}
		return
	}
	v := n.trial.judge(now, &p, n.cfg.Gossip.Term)
	if v == goesOn {
		return
	}
	canary, id := n.trial.canary, n.trial.epoch
	_, err := n.endTrial(now, v == promoted)
	switch {
	case err != nil:
		n.log.Error("the trial of a change cannot be ended; end it by subak promote or subak abandon at another node", "epoch", id.String(), "err", err)
		n.trial = trial{}
	case v == promoted:
		n.log.Info("the canary did well: the change goes to all nodes", "canary", canary, "epoch", id.String())
	default:
		n.log.Error("the canary did not take the change up, or fell silent: the change is taken back", "canary", canary, "epoch", id.String())
	}
}
