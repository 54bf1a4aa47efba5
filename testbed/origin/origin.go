// Package origin is a backend that enforces nothing: it answers every request at
// once and remembers when it came. It is the witness of a test, so it shares no
// code with what it judges but the checker of the bound.
//
// Model: an arrival is the instant at which the handler starts, read from
// CLOCK_MONOTONIC (nanoseconds), its class (the first segment of the path), its
// phase, and its transit, an upper bound on the time between the admission by a
// proxy and the arrival: the generator writes the instant of sending into
// [load.StampHeader], a proxy can admit only after that, and all processes of one
// machine read the same clock.
//
// So with a spread s, every arrival whose transit is at most s was admitted at
// most s before it came, and any window of w seconds holds, of these arrivals,
// only such as were admitted within w+s: the bound of the admissions applies with
// w+s in place of w. [Origin.Judge] tests that claim. Arrivals without a
// stamp have an unknown transit and count as prompt.
//
// Memory is bounded by [Config.LogMax] and the fixed length of the series.
// All methods are safe for concurrent use.
package origin

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"subak/testbed/load"
)

// Config says what to look at. Zero values stand for the defaults named.
type Config struct {
	// Windows are the lengths in which arrivals are counted (default 100 ms,
	// 1 s, 10 s).
	Windows []time.Duration `json:"windows_ns"`
	// Classes are the first path segments told apart; others are "other".
	Classes []string `json:"classes"`
	// LogMax is how many arrivals are kept (default 2^20, 24 bytes each). Later
	// ones are still counted, but no longer take part in Judge.
	LogMax int `json:"log_max"`
}

// Limits of what a caller may ask for.
const (
	logLimit   = 1 << 24
	bin        = 100 * time.Millisecond
	binsMax    = 36_000 // an hour
	phasesMax  = 64
	classesMax = 64
	windowMax  = time.Minute
	limitMax   = 1_000_000_000 // requests/s
)

// Validate reports all faults.
func (c *Config) Validate() error {
	var errs []error
	for _, w := range c.Windows {
		if w <= 0 || w > windowMax {
			errs = append(errs, fmt.Errorf("origin: window %s is outside (0, %s]", w, windowMax))
		}
	}
	if len(c.Windows) > 16 || len(c.Classes) > classesMax {
		errs = append(errs, fmt.Errorf("origin: at most 16 windows and %d classes", classesMax))
	}
	if c.LogMax < 0 || c.LogMax > logLimit {
		errs = append(errs, fmt.Errorf("origin: log of %d arrivals is outside 0..%d", c.LogMax, logLimit))
	}
	return errors.Join(errs...)
}

// entry is one logged arrival.
type entry struct {
	at      int64
	transit int64 // -1 when unknown
	class   uint8
	phase   uint8
}

// Origin is the server. Make it by [New].
type Origin struct {
	mu      sync.Mutex // guards all below
	cfg     Config
	start   int64
	log     []entry
	dropped uint64 // arrivals beyond the log
	live    *peaks
	phases  []phase
	series  [][]uint32 // [class][bin]
	transit load.Histogram
}

type phase struct {
	name     string
	arrivals []uint64 // by class
	transit  load.Histogram
}

// New makes an origin in the phase "" (before the first).
func New(cfg Config) (*Origin, error) {
	o := &Origin{}
	return o, o.Reset(cfg)
}

// Reset forgets everything and starts anew with cfg.
func (o *Origin) Reset(cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	if len(cfg.Windows) == 0 {
		cfg.Windows = []time.Duration{100 * time.Millisecond, time.Second, 10 * time.Second}
	}
	if cfg.LogMax == 0 {
		cfg.LogMax = 1 << 20
	}
	cfg.Classes = append(slices.Clone(cfg.Classes), "other")
	o.mu.Lock()
	defer o.mu.Unlock()
	o.cfg = cfg
	o.start = load.Monotonic()
	o.log, o.dropped, o.phases = nil, 0, nil
	o.live = newPeaks(cfg.Windows)
	o.series = make([][]uint32, len(cfg.Classes))
	o.transit = load.Histogram{}
	o.enterLocked("")
	return nil
}

// Enter begins a phase: later arrivals belong to it. It fails after 64 phases.
func (o *Origin) Enter(name string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.phases) >= phasesMax {
		return fmt.Errorf("origin: more than %d phases", phasesMax)
	}
	o.enterLocked(name)
	return nil
}

func (o *Origin) enterLocked(name string) {
	o.phases = append(o.phases, phase{name: name, arrivals: make([]uint64, len(o.cfg.Classes))})
}

// EndlessSuffix ends the path of a request whose answer never ends by itself: a
// byte now and then until the client has gone.
const EndlessSuffix = "/endless"

const endlessEvery = 250 * time.Millisecond

// ServeHTTP records the arrival and answers 200.
func (o *Origin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.record(r)
	w.Header().Set("Content-Type", "text/plain")
	if strings.HasSuffix(r.URL.Path, EndlessSuffix) {
		endless(w, r)
		return
	}
	_, _ = w.Write([]byte("ok\n")) // a client that has gone arrived all the same
}

func endless(w http.ResponseWriter, r *http.Request) {
	ticker := time.NewTicker(endlessEvery)
	defer ticker.Stop()
	out := http.NewResponseController(w)
	for {
		if _, err := w.Write([]byte(".")); err != nil {
			return
		}
		if err := out.Flush(); err != nil {
			return
		}
		select {
		case <-ticker.C:
		case <-r.Context().Done():
			return
		}
	}
}

func (o *Origin) record(r *http.Request) {
	segment, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	sent, err := strconv.ParseInt(r.Header.Get(load.StampHeader), 10, 64)
	if err != nil {
		sent = -1
	}
	o.mu.Lock()
	// Read inside the lock, so that instants are in order.
	o.recordLocked(load.Monotonic(), segment, sent)
	o.mu.Unlock()
}

func (o *Origin) recordLocked(at int64, segment string, sent int64) {
	class := slices.Index(o.cfg.Classes, segment)
	if class < 0 {
		class = len(o.cfg.Classes) - 1
	}
	current := len(o.phases) - 1
	p := &o.phases[current]
	p.arrivals[class]++
	transit := int64(-1)
	if sent > 0 && sent <= at {
		transit = at - sent
		p.transit.Add(time.Duration(transit))
		o.transit.Add(time.Duration(transit))
	}
	o.live.add(at, current)
	o.countLocked(at, class)
	if len(o.log) < o.cfg.LogMax {
		o.log = append(o.log, entry{at: at, transit: transit, class: uint8(class), phase: uint8(current)})
	} else {
		o.dropped++
	}
}

func (o *Origin) countLocked(at int64, class int) {
	i := (at - o.start) / int64(bin)
	if i >= binsMax {
		return
	}
	for k := range o.series {
		for int64(len(o.series[k])) <= i {
			o.series[k] = append(o.series[k], 0)
		}
	}
	o.series[class][i]++
}
