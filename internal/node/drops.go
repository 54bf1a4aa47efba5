package node

import (
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// dropCounter counts what the core refused or could not do, by reason. Reasons
// are words of our own code, so their number is bounded.
type dropCounter struct {
	mu     sync.Mutex
	counts map[string]uint64 // guarded by mu
	metric *prometheus.CounterVec
}

func newDropCounter(reg prometheus.Registerer) *dropCounter {
	d := &dropCounter{counts: map[string]uint64{}, metric: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "budget_node_dropped_total",
		Help: "Packets refused and work not done by the decision loop, by reason. Each counts as lost, which is safe.",
	}, []string{"reason"})}
	reg.MustRegister(d.metric)
	return d
}

// count notes one drop. The packages below write their reasons with dashes or
// underscores; operators see one way.
func (d *dropCounter) count(reason string) {
	reason = strings.ReplaceAll(reason, "-", "_")
	d.metric.WithLabelValues(reason).Inc()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.counts[reason]++
}

func (d *dropCounter) snapshot() map[string]uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make(map[string]uint64, len(d.counts))
	for k, v := range d.counts {
		out[k] = v
	}
	return out
}
