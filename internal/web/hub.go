package web

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"subak/internal/api"
)

// hub keeps the history, a point at every interval, and offers a snapshot to the
// open streams. While there are none it samples at every unwatchedEach-th interval
// only, and asks for no more than the sums: a snapshot of many budgets is what a node
// that nobody looks at would do most. One goroutine (run) samples; streams come and
// go from request goroutines.
type hub struct {
	backend Backend
	every   time.Duration
	start   time.Time
	history *history
	metrics *metrics
	nudges  chan struct{} // ask for a sample now; one waiting nudge is enough

	mu         sync.Mutex
	streams    map[*stream]struct{} // guarded by mu
	last       api.Status           // newest snapshot; guarded by mu
	lastMillis int64                // when it was taken; 0 when there is none; guarded by mu
}

const unwatchedEach = 2

// stream is one subscriber. frames is closed when the stream must end; the hub
// alone closes it, under its lock.
type stream struct {
	budget string // whose cells and loans are sent; "" means all
	frames chan []byte
}

func newHub(b Backend, every time.Duration, m *metrics) *hub {
	return &hub{
		backend: b,
		every:   every,
		start:   time.Now(),
		history: newHistory(),
		metrics: m,
		nudges:  make(chan struct{}, 1),
		streams: map[*stream]struct{}{},
	}
}

// run samples until ctx ends. The streams end by the same context.
func (h *hub) run(ctx context.Context) {
	tick := time.NewTicker(h.every)
	defer tick.Stop()
	for wait := 0; ; {
		if wait--; wait < 0 || h.watched() {
			h.sample(h.millis())
			wait = unwatchedEach - 1
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-h.nudges:
			wait = 0
		}
	}
}

// millis is elapsed monotonic time on top of one reading of the wall clock: plots
// must not fold when the clock is stepped.
func (h *hub) millis() int64 { return h.start.UnixMilli() + time.Since(h.start).Milliseconds() }

// nudge asks for a sample before the next interval ends.
func (h *hub) nudge() {
	select {
	case h.nudges <- struct{}{}:
	default:
	}
}

// sample records the present and offers a snapshot to all streams.
func (h *hub) sample(millis int64) {
	var st api.Status
	watched := h.watched()
	var sums []api.Sum
	if watched {
		st = h.backend.Status()
		sums = st.Sums()
	} else {
		sums = h.backend.Sums()
	}
	h.metrics.budgetsDropped.Add(float64(h.history.record(millis, sums)))
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last, h.lastMillis = st, 0
	if !watched {
		return
	}
	h.lastMillis = millis
	frames := map[string][]byte{} // by budget asked for: encoded once per sample
	for s := range h.streams {
		frame, ok := frames[s.budget]
		if !ok {
			frame = statusFrame(millis, &st, s.budget)
			frames[s.budget] = frame
		}
		select {
		case s.frames <- frame:
		default:
			// It lags by streamQueue snapshots. The page reconnects and is then
			// up to date; queueing more would only grow the lag.
			h.metrics.streamsClosed.WithLabelValues("slow").Inc()
			h.removeLocked(s)
		}
	}
}

func (h *hub) watched() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.streams) > 0
}

// latest is the newest snapshot and when it was taken: one that the streams got,
// or else a new one.
func (h *hub) latest() (millis int64, _ api.Status) {
	h.mu.Lock()
	millis, st := h.lastMillis, h.last
	h.mu.Unlock()
	if millis == 0 {
		millis, st = h.millis(), h.backend.Status()
	}
	return millis, st
}

// subscribe adds a stream, or returns nil when there are too many.
func (h *hub) subscribe(budget string) *stream {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.streams) >= streamsMax {
		h.metrics.streamsClosed.WithLabelValues("limit").Inc()
		return nil
	}
	s := &stream{budget: budget, frames: make(chan []byte, streamQueue)}
	h.streams[s] = struct{}{}
	h.metrics.streams.Inc()
	return s
}

// unsubscribe ends a stream; one that has ended already is left alone.
func (h *hub) unsubscribe(s *stream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.removeLocked(s)
}

func (h *hub) removeLocked(s *stream) {
	if _, ok := h.streams[s]; !ok {
		return
	}
	delete(h.streams, s)
	close(s.frames)
	h.metrics.streams.Dec()
}

// statusFrame is one server-sent event. Its id is the sample's time, by which
// the page plots it. With a budget named, the cells and loans of the others are
// left out: they are most of the bytes and the page shows one budget.
func statusFrame(millis int64, st *api.Status, budget string) []byte {
	if budget != "" {
		slim := *st
		slim.Budgets = make([]api.Budget, len(st.Budgets))
		for i, b := range st.Budgets {
			if b.Name != budget {
				b.Cells, b.Loans = nil, nil
			}
			slim.Budgets[i] = b
		}
		st = &slim
	}
	return frame("status", millis, st)
}

// frame encodes one server-sent event; JSON has no raw newlines, so one data
// line holds it.
func frame(event string, id int64, value any) []byte {
	data, err := json.Marshal(value)
	if err != nil { // a figure that JSON cannot hold, such as NaN
		event = "error"
		data, _ = json.Marshal(api.Error{Error: err.Error()})
	}
	return fmt.Appendf(nil, "id: %d\nevent: %s\ndata: %s\n\n", id, event, data)
}
