package node

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"subak/allocator/ledger"
	"subak/enforce/envoy/quota"
	"subak/internal/config"
	"subak/internal/core"
	"subak/internal/epoch"
	"subak/internal/state"
)

// How a node begins. What it remembers wins over its file: the file says what the
// operator last wrote here, the memory what the cluster agreed on. Without memory
// the file counts only on the operator's word that there is no cluster yet;
// else the node asks (join.go).

// openCore reads the durable state and builds the deciding part.
func (n *Node) openCore() error {
	n.doc, n.costs = document(n.cfg), largestCosts(n.cfg)
	n.doc.Canonical()
	stored, err := n.openState()
	if err != nil {
		return err
	}
	n.watchdog.stallMax = max(time.Second, 5*n.cfg.Gossip.Tick)
	n.watchdog.beat(n.clock.Now())
	dir := ledger.NewDirectory()
	if stored != nil {
		r, err := epoch.Load(stored, dir)
		switch {
		case err == nil:
			return n.begin(dir, r.Epoch, r.Doc, stored, sender{n})
		case errors.Is(err, epoch.ErrNewer):
			return fault("cluster.data_dir", err, "start the version that wrote it, or a later one")
		}
		n.hadMemory = true
		n.log.Error("starting without memory: the stored epoch cannot be read", "err", err)
	}
	doc := n.doc.Clone() // the core keeps it
	e, err := epoch.Root(doc, dir)
	if err != nil {
		return err
	}
	if n.mayBootstrap() {
		return n.begin(dir, e, doc, nil, sender{n})
	}
	n.joiner = newJoiner(n.cfg.Cluster.Name)
	return n.begin(dir, e, doc, nil, mute{}) // for limiters that admit nothing, and to show
}

// mayBootstrap reports the operator's word that no memory can be missing. A file
// that cannot be read shows that it is wrong: there was a memory.
func (n *Node) mayBootstrap() bool {
	return n.cfg.Cluster.State == config.New && !n.hadMemory || n.cfg.Cluster.Single
}

// begin makes the core of a life under epoch e and puts it in force.
func (n *Node) begin(dir *ledger.Directory, e *ledger.Epoch, doc *epoch.Document, stored *ledger.Stored, out core.Outbox) error {
	var floor uint64
	if stored != nil {
		floor = stored.Incarnation
	}
	inc, err := newIncarnation(floor)
	if err != nil {
		return err
	}
	tick := n.cfg.Gossip.Tick
	c, err := core.New(core.Config{
		Self: n.cfg.Node.Name, Inc: inc, Tick: tick, GapMin: min(gapMin, tick), Term: n.cfg.Gossip.Term,
		Live: cmp.Or(n.cfg.Protocol.Live, n.cfg.Gossip.Term), EpsPPM: int64(n.cfg.Protocol.Eps), Guard: n.cfg.Protocol.Guard,
		Bootstrap: n.mayBootstrap(), Durable: n.state != nil, Stored: stored,
		NewLife: newIncarnation, Baseline: n.baseline, LargestCost: n.costs, CarvedBefore: carvedBefore(n.cfg), CountDrop: n.drops.count, Installed: n.installed,
	}, out, dir, e, doc, n.clock.Now())
	if err != nil {
		return err
	}
	n.core = c
	n.putInForce()
	if n.joiner == nil {
		n.warnOfFile()
	}
	return nil
}

// adopt ends the provisional part of a life: the answer of the peers is what this
// node works under, without memory of its own.
func (n *Node) adopt(answer *epoch.Record, dir *ledger.Directory) error {
	before, j := n.core, n.joiner
	n.joiner = nil
	if err := n.begin(dir, answer.Epoch, answer.Doc, nil, sender{n}); err != nil {
		n.joiner = j
		return err
	}
	n.renewGates()
	if before.Frozen() {
		n.core.Freeze(n.clock.Now(), wallMillis(), true)
	}
	n.gossip.SetFingerprint(answer.Epoch.Root)
	n.log.Info("joined: the cluster told the epoch in force", "epoch", answer.Epoch.ID.String(), "lineage", fmt.Sprintf("%016x", answer.Epoch.Root))
	return nil
}

// openState locks the data directory and reads what it remembers. A damaged
// file means a start without memory.
func (n *Node) openState() (*ledger.Stored, error) {
	if n.cfg.Cluster.DataDir == "" {
		n.log.Warn("no cluster.data_dir: a restart of this node will not remember its base")
		return nil, nil
	}
	dir, err := state.Open(n.cfg.Cluster.DataDir, n.cfg.Cluster.Name, n.cfg.Node.Name)
	if err != nil {
		return nil, stateFault(err)
	}
	n.state = dir
	var stored ledger.Stored
	found, err := dir.Load(&stored)
	switch {
	case errors.Is(err, state.ErrTorn):
		n.hadMemory = true
		n.log.Error("cluster.data_dir: starting without memory; the base comes back once a majority of the other nodes has heard of this life; "+
			"mend: see that peers run; only if every node lost its memory, empty all data directories and start all with --bootstrap", "err", err)
		return nil, nil
	case err != nil:
		return nil, stateFault(err)
	case !found:
		return nil, nil
	}
	return &stored, nil
}

// fileDiffers says in words what the file would change in the epoch that this
// node works under: on the loop, or before it runs.
func (n *Node) fileDiffers() []string {
	if n.joiner != nil {
		return nil // unknown yet
	}
	if d := n.core.Document(); n.compared.inForce != d || n.compared.file != n.doc {
		n.compared = compared{inForce: d, file: n.doc}
		for _, x := range epoch.Diff(d, n.doc) {
			n.compared.words = append(n.compared.words, x.String())
		}
	}
	return n.compared.words
}

// compared is what was found when two documents were compared last; neither is
// ever changed.
type compared struct {
	inForce, file *epoch.Document
	words         []string // read only
}

// warnOfFile says once that the file is not what is in force.
func (n *Node) warnOfFile() {
	const shown = 5
	words := n.fileDiffers()
	if len(words) == 0 {
		return
	}
	if more := len(words) - shown; more > 0 {
		words = append(slices.Clone(words[:shown]), fmt.Sprintf("and %d more", more))
	}
	n.log.Warn("the file differs from the epoch in force, which counts; `subak apply -f FILE` or SIGHUP puts the file in force",
		"epoch", n.core.Epoch().ID.String(), "differs", strings.Join(words, "; "))
}

// newIncarnation returns an incarnation above floor that no process of this name
// had or will have (assumption A3).
func newIncarnation(floor uint64) (uint64, error) {
	return ledger.IncarnationAbove(floor, uint64(time.Now().UnixMilli()), rand.Uint32())
}

// carvedBefore is for how long after a start Envoys may spend what a former life
// of this node assigned to them. Where the file had quotas then and has none now,
// their part is not known.
func carvedBefore(cfg *config.Config) (longest time.Duration) {
	for i := range cfg.Envoy {
		if e := &cfg.Envoy[i]; e.Quota.Enabled {
			longest = max(longest, quota.Config{TTL: e.Quota.TTL}.Hold())
		}
	}
	return longest
}

// largestCosts is the cost of the dearest request that rules name, by budget.
func largestCosts(cfg *config.Config) map[string]int64 {
	costs := map[string]int64{}
	note := func(budget string, cost int64) { costs[budget] = max(costs[budget], cost) }
	for _, l := range cfg.Listeners {
		for _, r := range l.Rules {
			note(r.Budget, r.Cost)
		}
	}
	for _, e := range cfg.Envoy {
		for _, d := range e.Domains {
			for _, r := range d.Rules {
				note(cmp.Or(r.Budget, d.Budget), r.Cost)
			}
		}
	}
	return costs
}
