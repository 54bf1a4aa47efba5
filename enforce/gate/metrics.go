package gate

import (
	"github.com/prometheus/client_golang/prometheus"

	"subak/enforce"
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("budget_"+name, help, labels, nil)
}

func counter(ch chan<- prometheus.Metric, d *prometheus.Desc, v int64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
}

// gateDescs are the series of one listener.
type gateDescs struct {
	decisions, unknown, failures, gone, forged, malformed *prometheus.Desc
	inFlight, shed, retried, badBodies, cut, paced        *prometheus.Desc
}

func newGateDescs() gateDescs {
	return gateDescs{
		decisions: desc("gate_decisions_total", "Requests decided, by reason; in shadow mode refusals pass.",
			"listener", "budget", "class", "reason"),
		unknown: desc("gate_unknown_total", "Requests that no rule matched.", "listener"),
		failures: desc("gate_backend_failures_total", "Attempts that a backend did not answer: admitted requests that got a 502 or 504 made here, or went on to another backend.",
			"listener", "backend"),
		gone:      desc("gate_client_gone_total", "Clients that left before the backend answered.", "listener"),
		forged:    desc("gate_check_forged_total", "Check requests refused because they describe the request twice.", "listener"),
		malformed: desc("gate_malformed_total", "Requests refused because their target has no one meaning.", "listener"),
		inFlight:  desc("gate_requests_in_flight", "Requests being served, WebSockets included.", "listener"),
		shed:      desc("gate_shed_total", "Requests refused with 503 because too many were in flight.", "listener"),
		retried:   desc("gate_retries_total", "Requests sent on to another backend because one could not be reached.", "listener"),
		badBodies: desc("gate_bad_bodies_total", "Request bodies that were too large, too slow or malformed.", "listener"),
		cut:       desc("gate_responses_cut_total", "Responses that ended too early, by who ended them.", "listener", "by"),
		paced:     desc("gate_egress_waits_total", "Pieces of responses that had to wait for egress.", "listener"),
	}
}

func (d *gateDescs) all() []*prometheus.Desc {
	return []*prometheus.Desc{
		d.decisions, d.unknown, d.failures, d.gone, d.forged, d.malformed,
		d.inFlight, d.shed, d.retried, d.badBodies, d.cut, d.paced,
	}
}

type gateCollector struct {
	descs gateDescs
	gates func() []*Gate
}

// NewCollector collects what the present gates of a process count. Series are
// bounded by the configuration: listeners, classes, backends, reasons.
func NewCollector(gates func() []*Gate) prometheus.Collector {
	return &gateCollector{newGateDescs(), gates}
}

// Describe implements prometheus.Collector.
func (c *gateCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range c.descs.all() {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *gateCollector) Collect(ch chan<- prometheus.Metric) {
	for _, g := range c.gates() {
		c.collect(ch, g)
	}
}

func (c *gateCollector) collect(ch chan<- prometheus.Metric, g *Gate) {
	name, t := g.cfg.Name, g.tally
	for _, to := range g.targets {
		for r := range enforce.Reason(enforce.Reasons) {
			counter(ch, c.descs.decisions, to.counts[r].Load(), name, to.budget, to.class, r.String())
		}
	}
	counter(ch, c.descs.unknown, t.unknown.Load(), name)
	counter(ch, c.descs.gone, t.gone.Load(), name)
	counter(ch, c.descs.forged, t.forged.Load(), name)
	counter(ch, c.descs.malformed, t.malformed.Load(), name)
	ch <- prometheus.MustNewConstMetric(c.descs.inFlight, prometheus.GaugeValue, float64(t.inFlight.Load()), name)
	counter(ch, c.descs.shed, t.shed.Load(), name)
	counter(ch, c.descs.retried, t.retried.Load(), name)
	counter(ch, c.descs.badBodies, t.badBodies.Load(), name)
	counter(ch, c.descs.cut, t.cutByClient.Load(), name, "client")
	counter(ch, c.descs.cut, t.cutByBackend.Load(), name, "backend")
	counter(ch, c.descs.cut, t.cutByEgress.Load(), name, "egress")
	counter(ch, c.descs.paced, t.paced.Load(), name)
	if g.pool == nil {
		return
	}
	// Backends of one host share a label, and a series must not come twice.
	failures := map[string]int64{}
	for _, b := range g.pool.backends {
		failures[b.name] = b.failures.Load()
	}
	for host, n := range failures {
		counter(ch, c.descs.failures, n, name, host)
	}
}

type limitCollector struct {
	budgets                                       func() Budgets
	offered, admitted, refused, borrowed, retried *prometheus.Desc
}

// NewLimitCollector collects the present limiters' cumulative figures, in units of cost.
func NewLimitCollector(budgets func() Budgets) prometheus.Collector {
	labels := []string{"budget", "class"}
	return &limitCollector{
		budgets:  budgets,
		offered:  desc("class_offered_units_total", "Demand: admitted and refused, retries of refused requests left out.", labels...),
		admitted: desc("class_admitted_units_total", "Cost admitted.", labels...),
		refused:  desc("class_refused_units_total", "Cost refused, or that would have been in shadow mode.", labels...),
		borrowed: desc("class_borrowed_units_total", "Cost admitted on another class's unused tokens.", labels...),
		retried:  desc("class_retried_units_total", "Cost not counted as demand again.", labels...),
	}
}

// Describe implements prometheus.Collector.
func (c *limitCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.offered, c.admitted, c.refused, c.borrowed, c.retried} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *limitCollector) Collect(ch chan<- prometheus.Metric) {
	for _, b := range c.budgets() {
		counts := make([]enforce.Counts, len(b.Classes))
		b.Limiter.Counts(counts)
		for k, class := range b.Classes {
			counter(ch, c.offered, counts[k].Offered, b.Name, class)
			counter(ch, c.admitted, counts[k].Admitted, b.Name, class)
			counter(ch, c.refused, counts[k].Refused, b.Name, class)
			counter(ch, c.borrowed, counts[k].Borrowed, b.Name, class)
			counter(ch, c.retried, counts[k].Retries, b.Name, class)
		}
	}
}
