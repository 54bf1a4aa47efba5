package load

import (
	"slices"
	"time"
)

// Report is the state of a run.
type Report struct {
	Phases  []string       `json:"phases"`
	Bin     time.Duration  `json:"bin_ns"` // resolution of the series
	Streams []StreamReport `json:"streams"`
}

// StreamReport is one stream: a cell for each phase, and its series.
type StreamReport struct {
	Name  string `json:"name"`
	Cells []Cell `json:"cells"`
	// Arrivals by bin of their intended time: offered, and by outcome. Failed are
	// those that met an error or overflowed, so nobody decided on them.
	Offered  []uint32 `json:"offered_series"`
	Admitted []uint32 `json:"admitted_series,omitempty"`
	Refused  []uint32 `json:"refused_series,omitempty"`
	Away     []uint32 `json:"away_series,omitempty"`
	Failed   []uint32 `json:"failed_series"`
}

// Cell is one stream in one phase.
type Cell struct {
	Offered  uint64            `json:"offered"`
	Admitted uint64            `json:"admitted"`       // answered 2xx
	Refused  uint64            `json:"refused"`        // answered 429
	Away     uint64            `json:"away,omitempty"` // the target did not run; see [Generator.Away]
	Overflow uint64            `json:"overflow"`       // never sent: the queue was full
	Late     uint64            `json:"late"`           // sent late; also counted by outcome
	Errors   map[string]uint64 `json:"errors,omitempty"`
	// From the intended start to the end of the response, by outcome.
	AdmittedLatency Latency `json:"admitted_latency"`
	RefusedLatency  Latency `json:"refused_latency"`
}

// Failed is the number of arrivals that nobody decided on.
func (c *Cell) Failed() uint64 {
	n := c.Overflow
	for _, e := range c.Errors {
		n += e
	}
	return n
}

// Latency is a distribution in nanoseconds; quantiles are at most 1/32 high.
type Latency struct {
	P50  time.Duration `json:"p50_ns"`
	P90  time.Duration `json:"p90_ns"`
	P99  time.Duration `json:"p99_ns"`
	P999 time.Duration `json:"p999_ns"`
	Max  time.Duration `json:"max_ns"`
}

// Latency summarises the histogram.
func (h *Histogram) Latency() Latency {
	return Latency{
		P50: h.Quantile(0.50), P90: h.Quantile(0.90), P99: h.Quantile(0.99),
		P999: h.Quantile(0.999), Max: h.max,
	}
}

// tally counts what happens to one stream.
type tally struct {
	name  string
	bin   time.Duration
	cells []cellTally
	// series by bin of the intended time
	offeredIn, admittedIn, refusedIn, awayIn, failed []uint32
}

type cellTally struct {
	Cell
	admitted, refused Histogram
}

func newTally(name string, phases int, length, bin time.Duration) tally {
	bins := int((length + bin - 1) / bin)
	t := tally{name: name, bin: bin, cells: make([]cellTally, phases)}
	for _, s := range []*[]uint32{&t.offeredIn, &t.admittedIn, &t.refusedIn, &t.awayIn, &t.failed} {
		*s = make([]uint32, bins)
	}
	for i := range t.cells {
		t.cells[i].Errors = map[string]uint64{}
	}
	return t
}

func (t *tally) offered(a arrival) {
	t.cells[a.phase].Offered++
	t.offeredIn[a.at/t.bin]++
}

func (t *tally) overflow(a arrival) {
	t.cells[a.phase].Overflow++
	t.failed[a.at/t.bin]++
}

func (t *tally) notSent(a arrival) {
	t.cells[a.phase].Away++
	t.awayIn[a.at/t.bin]++
}

func (t *tally) answered(a arrival, late bool, took time.Duration, status int, err error) {
	c := &t.cells[a.phase]
	if late {
		c.Late++
	}
	switch {
	case err != nil:
		t.failure(a, kindOf(err))
	case status >= 200 && status < 300:
		c.Admitted++
		t.admittedIn[a.at/t.bin]++
		c.admitted.Add(took)
	case status == 429:
		c.Refused++
		t.refusedIn[a.at/t.bin]++
		c.refused.Add(took)
	default:
		t.failure(a, kindOfStatus(status))
	}
}

func (t *tally) failure(a arrival, kind string) {
	t.cells[a.phase].Errors[kind]++
	t.failed[a.at/t.bin]++
}

func kindOfStatus(status int) string {
	switch status / 100 {
	case 3:
		return "status 3xx"
	case 4:
		return "status 4xx"
	case 5:
		return "status 5xx"
	}
	return kindOther
}

func (t *tally) report() StreamReport {
	r := StreamReport{
		Name:     t.name,
		Offered:  slices.Clone(t.offeredIn),
		Admitted: slices.Clone(t.admittedIn),
		Refused:  slices.Clone(t.refusedIn),
		Away:     slices.Clone(t.awayIn),
		Failed:   slices.Clone(t.failed),
	}
	for i := range t.cells {
		c := t.cells[i].Cell
		c.Errors = map[string]uint64{}
		for k, n := range t.cells[i].Errors {
			c.Errors[k] = n
		}
		c.AdmittedLatency = t.cells[i].admitted.Latency()
		c.RefusedLatency = t.cells[i].refused.Latency()
		r.Cells = append(r.Cells, c)
	}
	return r
}
