package quota

import "github.com/prometheus/client_golang/prometheus"

type collector struct {
	services                                                func() []*Service
	streams, buckets, held                                  *prometheus.Desc
	reports, refused, unknown, assignments, late, postponed *prometheus.Desc
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("budget_quota_"+name, help, append([]string{"service"}, labels...), nil)
}

// NewCollector collects what the present services of a process count. Series are
// bounded by the configuration: services and classes, never bucket ids.
func NewCollector(services func() []*Service) prometheus.Collector {
	return &collector{
		services:    services,
		streams:     desc("streams", "Data planes connected."),
		buckets:     desc("buckets", "Buckets that data planes report."),
		held:        desc("held_rate", "Units per second that data planes may be spending by their assignments.", "budget", "class"),
		reports:     desc("reports_total", "Usage reports of buckets taken."),
		refused:     desc("refused_total", "Streams and reports refused: too many, or a bucket id too large."),
		unknown:     desc("unknown_total", "Buckets that went the way of on_unknown."),
		assignments: desc("assignments_total", "Assignments sent: a smaller bucket, a larger one, the same renewed, a refusal of everything, or an order to abandon the bucket.", "kind"),
		late:        desc("late_total", "Streams cut off because they did not take assignments in time."),
		postponed:   desc("postponed_total", "Plans put off because the share changed meanwhile."),
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.streams, c.buckets, c.held, c.reports, c.refused, c.unknown, c.assignments, c.late, c.postponed} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	for _, s := range c.services() {
		s.collect(c, ch)
	}
}

func (s *Service) collect(c *collector, ch chan<- prometheus.Metric) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.planner
	put := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, kind, v, append([]string{p.cfg.Name}, labels...)...)
	}
	put(c.streams, prometheus.GaugeValue, float64(len(p.streams)))
	put(c.buckets, prometheus.GaugeValue, float64(p.buckets))
	now := s.deps.Now()
	for _, x := range p.pots {
		put(c.held, prometheus.GaugeValue, float64(x.held(now))/float64(unit), x.budget, x.name)
	}
	for d, n := range map[*prometheus.Desc]uint64{
		c.reports: p.seen.reports, c.refused: p.seen.refused, c.unknown: p.seen.unknown, c.late: p.seen.late, c.postponed: p.seen.put,
	} {
		put(d, prometheus.CounterValue, float64(n))
	}
	for kind, n := range map[string]uint64{
		"smaller": p.seen.shrinks, "larger": p.seen.growths, "renewed": p.seen.renewed, "refusal": p.seen.denied, "abandon": p.seen.abandoned,
	} {
		put(c.assignments, prometheus.CounterValue, float64(n), kind)
	}
}
