package cluster

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// meterPoint is gossip's bytes since a process started.
type meterPoint struct {
	at             time.Time
	sent, received int64
}

// wireBytes is the metric of gossip's bytes; its label direction is out or in.
const wireBytes = "budget_gossip_wire_bytes_total"

// metricsMax bounds a page of metrics, in bytes.
const metricsMax = 32 << 20

// scraper fetches a node's page of metrics, over the address of its admin
// interface.
func scraper(admin string) *http.Client {
	network, target := "tcp", admin
	if path, ok := strings.CutPrefix(admin, "unix:"); ok {
		network, target = "unix", path
	}
	return &http.Client{Timeout: askTimeout, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, target)
		},
	}}
}

func (n *node) scrape(ctx context.Context, counters []string) {
	if !n.askable() {
		return
	}
	page, err := n.fetchMetrics(ctx)
	if err != nil {
		return // it has no answer now: the last one stands
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(page))
	if err != nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.page = page
	n.meters = append(n.meters, meterPoint{
		at:       time.Now(),
		sent:     int64(read(families, wireBytes+`{direction="out"}`)),
		received: int64(read(families, wireBytes+`{direction="in"}`)),
	})
	for _, name := range counters {
		n.countLocked(name, read(families, name), len(n.lives))
	}
}

func (n *node) fetchMetrics(ctx context.Context) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://subak/metrics", nil)
	if err != nil {
		return nil, err
	}
	response, err := n.metrics.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("metrics of %s: %s", n.Name, response.Status)
	}
	return io.ReadAll(io.LimitReader(response.Body, metricsMax))
}

// counter is one counter over all lives of a node.
type counter struct {
	earlier float64 // of former lives, as far as seen
	now     float64
	life    int
}

func (n *node) countLocked(name string, value float64, life int) {
	k := n.counters[name]
	if k.life != life {
		k.earlier, k.life = k.earlier+k.now, life
	}
	k.now = value
	n.counters[name] = k
}

// read sums a metric over all series that a selector such as name or
// name{label="value"} takes; what is not there is 0.
func read(families map[string]*dto.MetricFamily, selector string) (sum float64) {
	name, labels, _ := strings.Cut(strings.TrimSuffix(selector, "}"), "{")
	for _, m := range families[name].GetMetric() {
		if matches(m, labels) {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetUntyped().GetValue()
		}
	}
	return sum
}

// matches tells whether a series has every label of label="value",...
func matches(m *dto.Metric, labels string) bool {
	for want := range strings.SplitSeq(labels, ",") {
		found := want == ""
		for _, l := range m.GetLabel() {
			found = found || l.GetName()+`="`+l.GetValue()+`"` == strings.TrimSpace(want)
		}
		if !found {
			return false
		}
	}
	return true
}
