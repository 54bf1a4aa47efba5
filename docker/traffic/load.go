package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"subak/testbed/load"
)

// loading is the load command.
type loading struct {
	seed  uint64
	cycle time.Duration // of the plan
}

// run plays cycle after cycle until ctx ends, and says after each what became of
// the requests.
func (l *loading) run(ctx context.Context, s *scene) error {
	if l.cycle < time.Second {
		return fmt.Errorf("a cycle of %s is too short; mend: --cycle 1s or more", l.cycle)
	}
	totals := newTotals()
	registry := prometheus.NewRegistry()
	if err := registry.Register(totals); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel(nil)
	wg.Go(func() {
		mux := http.NewServeMux()
		mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
		if err := serve(ctx, map[string]http.Handler{controlPort: mux}); err != nil {
			cancel(err)
		}
	})
	for seed := l.seed; ctx.Err() == nil; seed++ {
		g, err := load.New(plan(s, seed, l.cycle))
		if err != nil {
			return err
		}
		totals.begin(g)
		_ = g.Run(ctx) // its only error is that of ctx
		totals.end(g)
		fmt.Fprintln(os.Stdout, summary(g.Report()))
	}
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// summary is one cycle as one line.
func summary(r load.Report) string {
	var b strings.Builder
	for p, name := range r.Phases {
		var c load.Cell
		var failed uint64
		for i := range r.Streams {
			cell := &r.Streams[i].Cells[p]
			c.Offered += cell.Offered
			c.Admitted += cell.Admitted
			c.Refused += cell.Refused
			failed += cell.Failed()
		}
		fmt.Fprintf(&b, "%s: offered %d, admitted %d, refused %d, failed %d; ", name, c.Offered, c.Admitted, c.Refused, failed)
	}
	return strings.TrimSuffix(b.String(), "; ")
}

// totals is what the load tells Prometheus: counts over all cycles, latencies of
// the current phase and those before it in the cycle.
type totals struct {
	offered, answers, latency *prometheus.Desc

	mu      sync.Mutex                   // guards all below
	past    map[string]map[string]uint64 // stream, outcome: of the cycles before
	current *load.Generator              // nil between cycles
}

func newTotals() *totals {
	return &totals{
		past:    map[string]map[string]uint64{},
		offered: prometheus.NewDesc("traffic_offered_total", "Requests that came due.", []string{"pop", "class"}, nil),
		answers: prometheus.NewDesc("traffic_answers_total", "What became of them: admitted (2xx), refused (429) or failed.", []string{"pop", "class", "outcome"}, nil),
		latency: prometheus.NewDesc("traffic_latency_seconds", "From when a request was due to the end of its answer, slowest phase of the cycle so far.",
			[]string{"pop", "class", "outcome", "quantile"}, nil),
	}
}

func (t *totals) begin(g *load.Generator) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.current = g
}

// end adds a finished cycle to the past.
func (t *totals) end(g *load.Generator) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.current = nil
	for _, s := range g.Report().Streams {
		counts := outcomes(&s)
		for outcome, n := range t.past[s.Name] {
			counts[outcome] += n
		}
		t.past[s.Name] = counts
	}
}

// outcomes counts one stream over all phases.
func outcomes(s *load.StreamReport) map[string]uint64 {
	counts := map[string]uint64{}
	for i := range s.Cells {
		c := &s.Cells[i]
		counts["offered"] += c.Offered
		counts["admitted"] += c.Admitted
		counts["refused"] += c.Refused
		counts["failed"] += c.Failed()
	}
	return counts
}

func (t *totals) Describe(ch chan<- *prometheus.Desc) {
	ch <- t.offered
	ch <- t.answers
	ch <- t.latency
}

func (t *totals) Collect(ch chan<- prometheus.Metric) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current == nil {
		return // between cycles, for less time than one request takes
	}
	for _, s := range t.current.Report().Streams {
		pop, class, _ := strings.Cut(s.Name, "/")
		now, past := outcomes(&s), t.past[s.Name]
		ch <- prometheus.MustNewConstMetric(t.offered, prometheus.CounterValue, float64(now["offered"]+past["offered"]), pop, class)
		for _, outcome := range []string{"admitted", "refused", "failed"} {
			ch <- prometheus.MustNewConstMetric(t.answers, prometheus.CounterValue, float64(now[outcome]+past[outcome]), pop, class, outcome)
		}
		t.collectLatency(ch, &s, pop, class)
	}
}

func (t *totals) collectLatency(ch chan<- prometheus.Metric, s *load.StreamReport, pop, class string) {
	var p50, p99 [2]time.Duration
	for i := range s.Cells {
		for o, l := range [2]load.Latency{s.Cells[i].AdmittedLatency, s.Cells[i].RefusedLatency} {
			p50[o], p99[o] = max(p50[o], l.P50), max(p99[o], l.P99)
		}
	}
	for o, outcome := range [2]string{"admitted", "refused"} {
		ch <- prometheus.MustNewConstMetric(t.latency, prometheus.GaugeValue, p50[o].Seconds(), pop, class, outcome, "0.5")
		ch <- prometheus.MustNewConstMetric(t.latency, prometheus.GaugeValue, p99[o].Seconds(), pop, class, outcome, "0.99")
	}
}
