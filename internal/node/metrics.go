package node

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"subak/internal/api"
)

// register adds the node's own metrics. Everything is read at scrape time from
// a snapshot; labels are configured names only (lesson O27).
func (n *Node) register() error {
	for _, c := range []prometheus.Collector{
		newNodeCollector(n),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	} {
		if err := n.reg.Register(c); err != nil {
			return err
		}
	}
	return nil
}

type nodeCollector struct {
	n *Node
	nodeDescs
	alarmDescs
}

// nodeDescs are the series; class series carry budget and class.
type nodeDescs struct {
	build, baseline, ready, frozen, join, digests, live, age, epoch, stalls, silent, jumps, restarts *prometheus.Desc
	limit, base, ceiling, share, target, lent, borrowed                                              *prometheus.Desc
	demand, classTarget, classShare, carveShort                                                      *prometheus.Desc
}

func newNodeCollector(n *Node) *nodeCollector {
	one := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("budget_"+name, help, labels, nil)
	}
	return &nodeCollector{n: n, alarmDescs: newAlarmDescs(), nodeDescs: nodeDescs{
		build:    one("node_info", "Always 1; the labels say which build and node this is.", "version", "node", "cluster"),
		baseline: one("node_baseline", "1 in a node that is no product but what it is compared with; absent else.", "baseline"),
		ready:    one("node_ready", "1 if the node should get traffic."),
		frozen:   one("node_frozen", "1 while the kill switch is on."),
		join:     one("node_join_state", "1 for the state the node is in.", "state"),
		digests:  one("node_view_digests", "Distinct view digests among live peers and this node: 1 is agreement."),
		live:     one("node_live_members", "Members with fresh rows both ways, this node included."),
		age:      one("node_peer_age_seconds", "Age of the newest row of a member; absent if none was ever seen.", "peer"),
		epoch:    one("node_epoch_active", "1 if the adopted config epoch is in force.", "version"),
		stalls:   one("node_loop_stalls_total", "Times the watchdog found the decision loop standing still."),
		silent:   one("node_loop_silent_seconds", "Time since the decision loop last turned."),
		jumps:    one("node_clock_suspended_seconds_total", "Suspended time found by the lease clock."),
		restarts: one("node_own_name_seen_total", "Rows that told of another process of this node's name: the node began a new life each time."),
		limit:    one("limit_rate", "The budget over all nodes, units per second.", "budget"),
		base:     one("base_rate", "This node's own part of the budget, units per second.", "budget"),
		ceiling:  one("ceiling_rate", "Base that may be used or lent now, units per second.", "budget"),
		share:    one("share_rate", "What this node enforces now, units per second.", "budget"),
		target:   one("target_rate", "What the allocation says for this node, units per second.", "budget"),
		lent:     one("lent_rate", "Most that borrowers may be using, units per second.", "budget"),
		borrowed: one("borrowed_rate", "Borrowed and in use, units per second.", "budget"),

		demand:      one("class_demand_rate", "Demand of this node as published, units per second.", "budget", "class"),
		classTarget: one("class_target_rate", "Target of this node, units per second.", "budget", "class"),
		classShare:  one("class_share_rate", "Enforced on this node, units per second.", "budget", "class"),
		carveShort:  one("carve_short_total", "Times a share was set below what Envoys were assigned of it: must stay 0.", "budget"),
	}}
}

// Describe implements prometheus.Collector.
func (c *nodeCollector) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, ch) }

// Collect implements prometheus.Collector.
func (c *nodeCollector) Collect(ch chan<- prometheus.Metric) {
	s := c.n.Status()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	count := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
	}
	gauge(c.build, 1, s.Version, s.Node, s.Cluster)
	if s.Baseline != "" {
		gauge(c.baseline, 1, s.Baseline)
	}
	gauge(c.ready, bit(s.Ready))
	gauge(c.frozen, bit(s.Frozen))
	for _, j := range []api.JoinState{api.NeverJoined, api.Joined, api.LostPeers, api.Alone} {
		gauge(c.join, bit(s.Join == j), string(j))
	}
	gauge(c.digests, float64(s.Digests))
	live := 0
	for _, m := range s.Members {
		if m.Live {
			live++
		}
		if m.Listed && !m.Self && m.AgeMillis >= 0 {
			gauge(c.age, m.AgeMillis/1000, m.Name)
		}
	}
	gauge(c.live, float64(live))
	gauge(c.epoch, bit(s.Epoch.Active), s.Epoch.Hash)
	count(c.stalls, float64(c.n.watchdog.stalls.Load()))
	gauge(c.silent, c.n.watchdog.silent(c.n.clock.Now()).Seconds())
	_, suspended := c.n.clock.Jumps()
	count(c.jumps, suspended.Seconds())
	count(c.restarts, float64(s.Dropped["own_name_higher"]))
	c.alarmDescs.collect(gauge, &s)
	for _, b := range c.n.force.Load().budgets {
		count(c.carveShort, float64(b.Limiter.CarveShort()), b.Name)
	}
	for i := range s.Budgets {
		c.collectBudget(gauge, &s.Budgets[i])
	}
}

func (c *nodeCollector) collectBudget(gauge func(*prometheus.Desc, float64, ...string), b *api.Budget) {
	gauge(c.limit, b.Limit, b.Name)
	gauge(c.base, b.Base, b.Name)
	gauge(c.ceiling, b.Ceiling, b.Name)
	gauge(c.share, b.Share, b.Name)
	gauge(c.target, b.Target, b.Name)
	gauge(c.lent, b.Lent, b.Name)
	gauge(c.borrowed, b.Borrow, b.Name)
	for _, k := range b.Classes {
		gauge(c.demand, k.Demand, b.Name, k.Name)
		gauge(c.classTarget, k.Target, b.Name, k.Name)
		gauge(c.classShare, k.Share, b.Name, k.Name)
	}
}

func bit(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
