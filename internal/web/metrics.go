package web

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the admin server's own. Their labels come from fixed sets.
type metrics struct {
	streams        prometheus.Gauge
	streamsClosed  *prometheus.CounterVec // by reason: slow, limit
	refused        *prometheus.CounterVec // by reason: host, origin, token, scope
	budgetsDropped prometheus.Counter
}

func newMetrics() metrics {
	return metrics{
		streams: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "budget_admin_streams",
			Help: "Event streams open now.",
		}),
		streamsClosed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "budget_admin_streams_dropped_total",
			Help: "Event streams closed because they did not keep up (slow) or refused because too many were open (limit).",
		}, []string{"reason"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "budget_admin_refused_total",
			Help: "Admin requests refused, by the check that failed.",
		}, []string{"reason"}),
		budgetsDropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "budget_admin_history_dropped_total",
			Help: "Samples not kept because the history holds as many budgets as it may.",
		}),
	}
}

// register adds the metrics to r, which may be nil.
func (m *metrics) register(r prometheus.Registerer) error {
	if r == nil {
		return nil
	}
	return errors.Join(r.Register(m.streams), r.Register(m.streamsClosed), r.Register(m.refused), r.Register(m.budgetsDropped))
}
