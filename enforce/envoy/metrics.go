package envoy

import (
	"github.com/prometheus/client_golang/prometheus"

	"subak/enforce"
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("budget_envoy_"+name, help, append([]string{"service"}, labels...), nil)
}

type collector struct {
	services                                            func() []*Service
	calls, decisions, unknown, ignored, peeks, failures *prometheus.Desc
}

// NewCollector collects what the present services of a process count. Series are
// bounded by the configuration: services, classes, reasons.
func NewCollector(services func() []*Service) prometheus.Collector {
	return &collector{
		services: services,
		calls: desc("calls_total", "Rate limit calls answered: admitted, refused, or shadowed (refused in shadow mode, so answered OK).",
			"outcome"),
		decisions: desc("decisions_total", "Descriptors decided, by reason; in shadow mode refusals pass.",
			"budget", "class", "reason"),
		unknown: desc("unknown_total", "Descriptors that went the way of on_unknown: of a domain that is not listed, matched by no rule, or missing from their call.",
			"what"),
		ignored: desc("ignored_total", "Fields of descriptors that are not obeyed: a limit of their own, hits to be given back.",
			"what"),
		peeks:    desc("peeks_total", "Descriptors with no hits, which only ask."),
		failures: desc("failures_total", "Calls that could not be read or judged: malformed or too large, too many descriptors (refused), a panic.", "kind"),
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.calls, c.decisions, c.unknown, c.ignored, c.peeks, c.failures} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	for _, s := range c.services() {
		count := func(d *prometheus.Desc, v int64, labels ...string) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), append([]string{s.cfg.Name}, labels...)...)
		}
		t := s.tally
		count(c.calls, t.admitted.Load(), "admitted")
		count(c.calls, t.refused.Load(), "refused")
		count(c.calls, t.shadowed.Load(), "shadowed")
		count(c.unknown, t.unknownDomain.Load(), "domain")
		count(c.unknown, t.unknownDescriptor.Load(), "descriptor")
		count(c.unknown, t.bare.Load(), "bare")
		count(c.ignored, t.limits.Load(), "limit")
		count(c.ignored, t.negative.Load(), "negative-hits")
		count(c.peeks, t.peeks.Load())
		count(c.failures, t.malformed.Load(), "malformed")
		count(c.failures, t.oversized.Load(), "oversized")
		count(c.failures, t.panics.Load(), "panic")
		for _, cl := range s.classes {
			for r := range enforce.Reason(enforce.Reasons) {
				count(c.decisions, cl.counts[r].Load(), cl.budget, cl.name, r.String())
			}
		}
	}
}
