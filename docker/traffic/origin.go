package main

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"subak/testbed/origin"
)

// logMax arrivals are judged, 24 bytes each: an hour and a half at 800/s. What
// comes later is counted but not judged, and the verdict says so.
const logMax = 1 << 22

func originConfig(s *scene) origin.Config {
	return origin.Config{Classes: s.classes, LogMax: logMax}
}

func originClient() *origin.Client { return &origin.Client{Address: at("origin", controlPort)} }

// serveOrigin is the origin until ctx ends.
func serveOrigin(ctx context.Context, s *scene) error {
	o, err := origin.New(originConfig(s))
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	if err := registry.Register(newArrivals(o)); err != nil {
		return err
	}
	control := http.NewServeMux()
	control.Handle("/", o.Control())
	control.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return serve(ctx, map[string]http.Handler{edgePort: o, controlPort: control})
}

func resetOrigin(ctx context.Context, s *scene) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return originClient().Reset(ctx, originConfig(s))
}

// arrivals is what the origin tells Prometheus. A reset makes the counters start
// again, as a restart would.
type arrivals struct {
	origin *origin.Origin
	total  *prometheus.Desc
	peak   *prometheus.Desc
}

func newArrivals(o *origin.Origin) *arrivals {
	return &arrivals{
		origin: o,
		total:  prometheus.NewDesc("traffic_arrivals_total", "Requests that reached the origin.", []string{"class"}, nil),
		peak:   prometheus.NewDesc("traffic_arrivals_peak", "Most requests that reached the origin in any window of that length since its start.", []string{"window"}, nil),
	}
}

func (a *arrivals) Describe(ch chan<- *prometheus.Desc) {
	ch <- a.total
	ch <- a.peak
}

func (a *arrivals) Collect(ch chan<- prometheus.Metric) {
	r := a.origin.Report()
	total := make([]uint64, len(r.Classes))
	peak := make([]int, len(r.Windows))
	for _, p := range r.Phases {
		for k, n := range p.Arrivals {
			total[k] += n
		}
		for w, n := range p.Peaks {
			peak[w] = max(peak[w], n)
		}
	}
	for k, n := range total {
		ch <- prometheus.MustNewConstMetric(a.total, prometheus.CounterValue, float64(n), r.Classes[k])
	}
	for w, n := range peak {
		ch <- prometheus.MustNewConstMetric(a.peak, prometheus.GaugeValue, float64(n), r.Windows[w].String())
	}
}
