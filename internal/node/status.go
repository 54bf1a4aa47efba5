package node

import (
	"errors"
	"fmt"
	"time"

	"subak/allocator"
	"subak/allocator/ledger"
	"subak/enforce"
	"subak/gossip"
	"subak/internal/api"
	"subak/internal/core"
)

// ErrBusy says that the decision loop did not answer in time.
var ErrBusy = errors.New("the decision loop does not answer; try again, and look at /healthz")

// Status returns the newest snapshot, and lets the loop make a new one if it is not
// so new any more: while somebody asks often, four times a second.
func (n *Node) Status() api.Status {
	if s := n.last.Load(); s != nil {
		if age := time.Since(s.Time); age < time.Second {
			if age >= statusEvery/2 {
				n.wanted.Store(true)
			}
			return *s
		}
	}
	n.ask(func() { n.snapshot(n.clock.Now()) })
	if s := n.last.Load(); s != nil {
		return *s
	}
	return api.Status{Time: time.Now(), Node: n.cfg.Node.Name, Cluster: n.cfg.Cluster.Name, Reason: ErrBusy.Error()}
}

// snapshot builds the status on the loop.
func (n *Node) snapshot(now int64) {
	c := n.core
	s := &api.Status{
		Time: time.Now(), Node: n.cfg.Node.Name, Cluster: n.cfg.Cluster.Name, Version: n.version, Baseline: n.baseline,
		Uptime: time.Since(n.started).Seconds(), Join: n.join(), Frozen: c.Frozen(),
		TickMillis: millis(n.cfg.Gossip.Tick), TermMillis: millis(n.cfg.Gossip.Term), Dropped: n.drops.snapshot(),
	}
	report := &n.report
	c.Status(now, report)
	s.Proved, s.Quarantine = report.Proved, report.Quarantine.Seconds()
	s.Epoch = api.Epoch{
		Version: report.Epoch.Version, Hash: fmt.Sprintf("%016x", report.Epoch.Hash),
		Fingerprint: fmt.Sprintf("%016x", c.Epoch().Root), Acked: report.Acked, Active: report.Active == report.Epoch,
	}
	s.Provisional, s.Member, s.FileDiffers = n.joiner != nil, n.joiner == nil && c.Position() >= 0, n.fileDiffers()
	if s.Provisional {
		s.Epoch = api.Epoch{} // that of the file is not in force
	}
	s.Change = n.underWay(now)
	s.Ready, s.Reason = n.readiness(report, s.Join)
	s.Alarms = n.alarms(now)
	n.members(now, s, report)
	for _, b := range c.Budgets() {
		s.Budgets = append(s.Budgets, n.budgetStatus(now, b, report))
	}
	n.last.Store(s)
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func (n *Node) join() api.JoinState {
	if n.joiner == nil && len(n.core.Epoch().Roster) == 1 {
		return api.Alone
	}
	switch n.gossip.Joined().State {
	case gossip.Joined:
		return api.Joined
	case gossip.LostPeers:
		return api.LostPeers
	}
	return api.NeverJoined
}

// readiness says whether this node should get traffic, and why (lesson O25).
func (n *Node) readiness(l *ledger.Status, join api.JoinState) (bool, string) {
	switch {
	case n.leaving.Load():
		return false, "leaving: requests under way are drained, new ones should go elsewhere"
	case n.joiner != nil:
		return false, n.joiner.reason()
	case n.core.Position() < 0:
		return false, "not a member yet: the epoch in force does not list this node, so it enforces 0; add it to nodes and put that in force at a member: subak apply"
	case n.core.Twin().Yielded:
		return false, n.twinWords(n.clock.Now())
	case l.Superseded:
		return false, "another process of this name was seen; starting a new life"
	case l.MemoryOld:
		return false, n.memoryWords(n.clock.Now())
	case l.Quarantine > 0:
		return false, fmt.Sprintf("quarantine after the start: loans of a former life run out in %.1f s", l.Quarantine.Seconds())
	case !l.Proved:
		return false, "not proved after a restart: waiting until about half of the other nodes have heard of it; check that gossip reaches them"
	case join == api.LostPeers && !n.cfg.Admin.ReadyWhenIsolated:
		return false, "lost all peers, and admin.ready_when_isolated is off"
	case n.diskWords() != "":
		return true, n.diskWords()
	case l.Active != l.Epoch:
		return true, "serving on the ceiling of the epoch before: the present one is not in force everywhere yet"
	case n.core.Frozen():
		return true, "frozen: serving on the own base"
	case join == api.Alone:
		return true, "single node: serving on the whole budget"
	case join == api.NeverJoined:
		return true, "no peer met yet: serving on the cold-start share, which is the own base"
	case join == api.LostPeers:
		return true, "lost all peers: serving on the own base"
	}
	return true, "in the cluster, epoch in force"
}

// logReadiness says when readiness changes, and why: on the loop.
func (n *Node) logReadiness(now int64) {
	n.core.Status(now, &n.report)
	ready, reason := n.readiness(&n.report, n.join())
	if n.said != nil && *n.said == ready {
		return
	}
	n.said = &ready
	n.log.Info("readiness", "ready", ready, "reason", reason)
}

// Ready implements web.Backend.
func (n *Node) Ready() (bool, string) {
	s := n.Status()
	return s.Ready, s.Reason
}

// Healthy implements web.Backend: only a loop that stands still for ten seconds
// is a reason to restart the process.
func (n *Node) Healthy() (bool, string) {
	if silent := n.watchdog.silent(n.clock.Now()); silent > 10*time.Second {
		return false, fmt.Sprintf("the decision loop has stood still for %.0f s", silent.Seconds())
	}
	return true, "the decision loop runs"
}

// Freeze implements web.Backend: the kill switch returns the node to its own
// base with no peer's help.
func (n *Node) Freeze(on bool) error {
	if !n.ask(func() { n.core.Freeze(n.clock.Now(), wallMillis(), on); n.snapshot(n.clock.Now()) }) {
		return ErrBusy
	}
	return nil
}

// members lists the roster, then strangers that gossip knows.
func (n *Node) members(now int64, s *api.Status, l *ledger.Status) {
	known := map[string]gossip.Member{}
	for _, m := range n.gossip.Members() {
		known[m.Name] = m
	}
	digests := map[uint32]bool{}
	for i, m := range l.Members {
		name := n.core.NodeName(m.Node)
		x := api.Member{
			Name: name, Self: m.Self, Listed: true, Weight: n.core.Epoch().Roster[i].Weight, Gossip: "unknown", Live: m.Live,
			AgeMillis: -1, RTTMillis: -1, Incarnation: fmt.Sprintf("%016x", m.Inc), Sequence: m.Seq, Digest: fmt.Sprintf("%08x", m.Digest),
		}
		if m.Age >= 0 {
			x.AgeMillis = millis(m.Age)
		}
		x.Clock = clockOf(n.core.Clock(now, m.Node))
		x.Agrees = m.Self || m.Live && n.core.Agrees(now, m.Node)
		if m.Self {
			x.Gossip, x.Address, x.RTTMillis = "alive", n.gossip.Addr(), 0
		}
		if g, ok := known[name]; ok {
			n.fromGossip(&x, g)
			delete(known, name)
		}
		if m.Live && !x.Agrees {
			digests[m.Digest] = true
		}
		s.Members = append(s.Members, x)
	}
	s.Digests = 1 + len(digests)
	for _, m := range n.gossip.Members() {
		if g, ok := known[m.Name]; ok {
			x := api.Member{Name: m.Name, AgeMillis: -1, RTTMillis: -1}
			n.fromGossip(&x, g)
			s.Members = append(s.Members, x)
		}
	}
}

func (n *Node) fromGossip(x *api.Member, g gossip.Member) {
	x.Gossip, x.Address, x.Refused, x.Provisional = g.State.String(), g.Addr, g.Refused, g.Provisional
	if ms, ok := n.gossip.RTTMillis(g.Name); ok {
		x.RTTMillis = ms
	}
}

// units converts a rate for people.
func units(r allocator.Rate) float64 { return float64(r) / float64(allocator.Unit) }

// ownCell is this node's entry of a table by class and roster position; a node
// outside the roster has none.
func ownCell(table []allocator.Rate, position, class, nodes int) allocator.Rate {
	if position < 0 {
		return 0
	}
	return table[class*nodes+position]
}

func modeName(m allocator.Mode) string {
	if m == allocator.Paper {
		return "paper"
	}
	return "pool-first"
}

func (n *Node) budgetStatus(now int64, b *core.Budget, l *ledger.Status) api.Budget {
	led := l.Budgets[b.Index]
	s := api.Budget{
		Name: b.Name, Unit: b.Doc.Unit, Limit: units(b.Doc.Spec.Budget), BurstSeconds: b.Doc.Burst.Seconds(),
		Mode: modeName(b.Doc.Spec.Mode), Shadow: b.Doc.Shadow, Base: units(led.Base), Ceiling: units(led.Ceiling),
		Target: units(ownCell(b.Total, n.core.Position(), 0, 1)), Lent: units(led.Lent), Borrow: units(led.Borrowed),
		Loans: []api.Loan{},
	}
	shares := make([]allocator.Rate, b.Classes())
	s.Share = units(b.Limiter.Share(now, shares))
	counts := make([]enforce.Counts, b.Classes())
	b.Limiter.Counts(counts)
	nodes := len(b.Total)
	for k, c := range b.Doc.Spec.Classes {
		demand, target := b.Demand[k], ownCell(b.Target, n.core.Position(), k, nodes)
		s.Classes = append(s.Classes, api.Class{
			Name: c.Name, Reservation: units(c.Reservation), Demand: units(demand), Target: units(target), Share: units(shares[k]),
			Offered: uint64(counts[k].Offered), Admitted: uint64(counts[k].Admitted), Refused: uint64(counts[k].Refused),
			Borrowed: uint64(counts[k].Borrowed), RefusedRate: units(b.Refused(now, k, counts)),
		})
	}
	n.cells(now, &s, b, l)
	return s
}

// shares are what every roster node may enforce by the rows seen: its ceiling,
// what it has borrowed less what it has lent. Of this node it is what it enforces.
func (n *Node) shares(now int64, b *core.Budget, l *ledger.Status) []float64 {
	shares := make([]float64, len(b.Total))
	for _, loan := range l.Loans {
		if loan.Budget != b.Index {
			continue
		}
		amount := units(loan.Amount)
		if i := n.core.Epoch().Position(loan.From); i >= 0 {
			shares[i] -= amount
		}
		if i := n.core.Epoch().Position(loan.To); i >= 0 {
			shares[i] += amount
		}
	}
	for i := range shares {
		shares[i] = max(0, shares[i]+units(b.View.Ceilings[i]))
	}
	if i := n.core.Position(); i >= 0 {
		shares[i] = units(b.Limiter.Share(now, nil))
	}
	return shares
}

// cells fills the columns of every roster node and the loans, by the rows seen.
func (n *Node) cells(now int64, s *api.Budget, b *core.Budget, l *ledger.Status) {
	for _, loan := range l.Loans {
		if loan.Budget == b.Index {
			s.Loans = append(s.Loans, api.Loan{From: n.core.NodeName(loan.From), To: n.core.NodeName(loan.To), Amount: units(loan.Amount)})
		}
	}
	shares := n.shares(now, b, l)
	nodes, classes := len(b.Total), b.Classes()
	figures := make([]float64, 3*nodes*classes) // of all cells in one piece
	column := func() []float64 {
		c := figures[:classes:classes]
		figures = figures[classes:]
		return c
	}
	s.Cells = make([]api.Location, 0, nodes)
	for i, m := range n.core.Epoch().Roster {
		c := api.Location{Node: n.core.NodeName(m.ID), Live: b.View.Live[i], Ceiling: units(b.View.Ceilings[i]), Share: shares[i]}
		if i == n.core.Position() {
			c.Ceiling = s.Ceiling
		}
		c.Demand, c.Target, c.Refused = column(), column(), column()
		for k := range classes {
			demand, target := units(b.View.Demand[k*nodes+i]), units(b.Target[k*nodes+i])
			c.Demand[k], c.Target[k], c.Refused[k] = demand, target, max(0, demand-target)
			if i == n.core.Position() {
				c.Refused[k] = s.Classes[k].RefusedRate
			}
			s.SumDemand += demand
		}
		s.SumShare += c.Share
		s.Cells = append(s.Cells, c)
	}
}
