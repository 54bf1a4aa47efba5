package origin

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"subak/testbed/load"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// slowPeak counts every window that ends at an arrival, one by one.
func slowPeak(at []int64, phase []int, want int, w int64) (peak int) {
	for i := range at {
		n := 0
		for j := 0; j <= i; j++ {
			if at[j] >= at[i]-w {
				n++
			}
		}
		if phase[i] == want {
			peak = max(peak, n)
		}
	}
	return peak
}

func TestPeaksAreThoseOfEveryWindowCountedOneByOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		windows := []time.Duration{
			time.Duration(rapid.Int64Range(1, 50).Draw(t, "w0")),
			time.Duration(rapid.Int64Range(1, 5000).Draw(t, "w1")),
		}
		gaps := rapid.SliceOfN(rapid.Int64Range(0, 30), 0, 200).Draw(t, "gaps")
		p := newPeaks(windows)
		var at []int64
		var phases []int
		now, ph := int64(1000), 0
		for _, g := range gaps {
			now += g
			if rapid.IntRange(0, 19).Draw(t, "step") == 0 {
				ph++
			}
			at, phases = append(at, now), append(phases, ph)
			p.add(now, ph)
		}
		for k := range ph + 1 {
			for i, w := range windows {
				if got, want := peaksOf(p, k, 2)[i], slowPeak(at, phases, k, int64(w)); got != want {
					t.Fatalf("phase %d window %d: peak %d, want %d", k, w, got, want)
				}
			}
		}
	})
}

func TestTheRingGrowsAndThenForgetsTheOldest(t *testing.T) {
	p := newPeaks([]time.Duration{time.Hour})
	for i := range ringMax + 10 {
		p.add(int64(i), 0)
	}
	if p.peak[0][0] != ringMax || p.forgotten != 10 {
		t.Errorf("peak %d, forgotten %d; want %d and 10", p.peak[0][0], p.forgotten, ringMax)
	}
}

func get(t *testing.T, h http.Handler, path string, sent int64) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	if sent != 0 {
		r.Header.Set(load.StampHeader, fmt.Sprint(sent))
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusOK || w.Body.String() != "ok\n" {
		t.Errorf("%s: %d %q", path, w.Code, w.Body)
	}
}

func TestArrivalsAreCountedByPhaseAndClass(t *testing.T) {
	o, err := New(Config{Classes: []string{"gold", "tin"}, Windows: []time.Duration{time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	get(t, o, "/gold/1", 0)
	get(t, o, "/", 0)
	if err := o.Enter("flood"); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		get(t, o, "/tin", 0)
	}
	r := o.Report()
	if got := fmt.Sprint(r.Phases[0].Arrivals, r.Phases[1].Arrivals); got != "[1 0 1] [0 3 0]" {
		t.Errorf("arrivals by phase and class %s", got)
	}
	if r.Phases[1].Name != "flood" || !slices.Equal(r.Phases[1].Peaks, []int{5}) {
		t.Errorf("phase %+v: its peak must count back over the boundary", r.Phases[1])
	}
	total := uint32(0)
	for _, s := range r.Series {
		for _, n := range s {
			total += n
		}
	}
	if total != 5 {
		t.Errorf("the series hold %d of 5 arrivals", total)
	}
}

func TestPromptPeaksLeaveOutWhatWasLongUnderWay(t *testing.T) {
	o, err := New(Config{Windows: []time.Duration{time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	now := load.Monotonic()
	get(t, o, "/", now-int64(time.Second)) // slow
	get(t, o, "/", now)                    // prompt
	get(t, o, "/", 0)                      // unknown: prompt
	get(t, o, "/", now+int64(time.Hour))   // from the future: unknown
	p, err := o.Judge(Claim{Spread: 500 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if p.Peaks[0][0] != 3 || p.Slower[0] != 1 {
		t.Errorf("prompt peak %d, slower %d; want 3 and 1", p.Peaks[0][0], p.Slower[0])
	}
	if all, err := o.Judge(Claim{Spread: 2 * time.Hour}); err != nil || all.Peaks[0][0] != 4 || all.Slower[0] != 0 {
		t.Errorf("with a spread of 2 h: %+v, want all four", all)
	}
	if r := o.Report(); r.Transit.Max < time.Second || r.Transit.P50 > 500*time.Millisecond {
		t.Errorf("transit %+v of one slow and one prompt", r.Transit)
	}
}

func TestAClaimIsKeptOrBrokenByOneRequest(t *testing.T) {
	o, err := New(Config{Windows: []time.Duration{time.Minute, 100 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		get(t, o, "/", 0)
	}
	for _, c := range []struct {
		slots int64
		kept  bool
	}{{20, true}, {19, false}} {
		j, err := o.Judge(Claim{Limit: 0, Slots: c.slots})
		if err != nil || j.Bound.OK() != c.kept {
			t.Errorf("20 arrivals, %d allowed: %v (%v)", c.slots, j.Bound, err)
		}
	}
	if _, err := o.Judge(Claim{Limit: -1}); err == nil {
		t.Error("a negative limit is judged by")
	}
}

func TestALimitThatChangesJudgesEachWindowByItsOwn(t *testing.T) {
	o, err := New(Config{Windows: []time.Duration{time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		get(t, o, "/", 0)
	}
	now := load.Monotonic()
	for _, c := range []struct {
		first, then int64
		kept        bool
	}{{1000, 0, true}, {0, 1000, false}} {
		claim := Claim{Limit: c.first, Burst: time.Second, Changes: []Change{{At: now, Limit: c.then}}, Over: 5}
		j, err := o.Judge(claim)
		if err != nil || j.Bound.OK() != c.kept || len(j.Bound.Over) > 0 == c.kept {
			t.Errorf("%d/s until all had come, then %d/s: %+v (%v)", c.first, c.then, j.Bound, err)
		}
	}
	for _, claim := range []Claim{{Changes: []Change{{At: 2}, {At: 1}}}, {Changes: []Change{{Limit: -1}}}, {Over: -1}} {
		if _, err := o.Judge(claim); err == nil {
			t.Errorf("%+v is judged by", claim)
		}
	}
}

func TestArrivalsAreBinnedFromAnyInstant(t *testing.T) {
	o, err := New(Config{Classes: []string{"gold"}})
	if err != nil {
		t.Fatal(err)
	}
	get(t, o, "/gold", 0)
	start := load.Monotonic()
	for range 4 {
		get(t, o, "/gold", 0)
	}
	get(t, o, "/x", 0)
	if got := fmt.Sprint(o.Arrivals(start, time.Hour, 1)); got != "[[4] [1]]" {
		t.Errorf("%s since the first, want 4 of gold and another", got)
	}
	if got := fmt.Sprint(o.Arrivals(start-int64(2*time.Hour), time.Hour, 2)); got != "[[0 1] [0 0]]" {
		t.Errorf("%s in the two hours before, want the first one", got)
	}
}

func TestAnEndlessAnswerGoesOnUntilItsClientLeaves(t *testing.T) {
	o, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	left := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.ServeHTTP(w, r)
		close(left)
	}))
	defer srv.Close()
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL+"/gold"+EndlessSuffix, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(io.LimitReader(resp.Body, 2)); len(b) != 2 || err != nil {
		t.Errorf("%q, %v: want it to go on", b, err)
	}
	cancel()
	<-left
	_ = resp.Body.Close()
}

func TestThePeaksAreThoseOfTheBoundChecker(t *testing.T) {
	o, err := New(Config{Windows: []time.Duration{50 * time.Microsecond, time.Millisecond, time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 500 {
		if i%100 == 99 {
			if err := o.Enter("next"); err != nil {
				t.Fatal(err)
			}
		}
		get(t, o, "/", 0)
	}
	j, err := o.Judge(Claim{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for w, want := range j.Bound.Results {
		got := 0
		for _, ph := range j.Peaks {
			got = max(got, ph[w])
		}
		if int64(got) != want.Peak {
			t.Errorf("window %v: the phases' highest peak is %d, the checker's %d", want.Window, got, want.Peak)
		}
	}
}

func TestWhatTheLogCannotHoldIsCounted(t *testing.T) {
	o, err := New(Config{LogMax: 2, Windows: []time.Duration{time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		get(t, o, "/", 0)
	}
	if r := o.Report(); r.Dropped != 3 || r.Phases[0].Peaks[0] != 5 {
		t.Errorf("dropped %d, live peak %d; want 3 and 5", r.Dropped, r.Phases[0].Peaks[0])
	}
}

func TestHostileHeadersAndConfigsAreRefusedOrIgnored(t *testing.T) {
	o, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, stamp := range []string{"-5", "x", "99999999999999999999999"} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set(load.StampHeader, stamp)
		o.ServeHTTP(httptest.NewRecorder(), r)
	}
	if r := o.Report(); r.Transit.Max != 0 || r.Phases[0].Arrivals[0] != 3 {
		t.Errorf("bad stamps: %+v", r)
	}
	for _, body := range []string{`{"windows_ns":[0]}`, `{"log_max":-1}`, `{"log_max":99999999999}`, `x`} {
		w := httptest.NewRecorder()
		o.Control().ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/reset", strings.NewReader(body)))
		if w.Code != http.StatusBadRequest {
			t.Errorf("reset with %s: %d", body, w.Code)
		}
	}
	for range phasesMax - 1 {
		if err := o.Enter("more"); err != nil {
			t.Fatal(err)
		}
	}
	if o.Enter("one too many") == nil {
		t.Error("phases without end")
	}
}

// serve runs an origin as [Serve] does and returns a client and its addresses.
func serve(t *testing.T) (*Client, Addresses, func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	pr, pw := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, "127.0.0.1", pw, nil) }()
	var a Addresses
	line, err := bufio.NewReader(pr).ReadBytes('\n')
	if err != nil || json.Unmarshal(line, &a) != nil {
		t.Fatalf("address line %q: %v", line, err)
	}
	transport := &http.Transport{}
	return &Client{Address: a.Control, HTTP: &http.Client{Transport: transport}}, a, func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
		transport.CloseIdleConnections()
	}
}

func TestAGeneratorAndAServedOriginCountTheSame(t *testing.T) {
	c, a, stop := serve(t)
	defer stop()
	if err := c.Reset(t.Context(), Config{Classes: []string{"gold", "tin"}}); err != nil {
		t.Fatal(err)
	}
	g, err := load.New(load.Config{
		Seed:   5,
		Phases: []load.Phase{{Name: "p", Length: 500 * time.Millisecond}},
		Streams: []load.Stream{
			{Name: "gold", URL: "http://" + a.Data + "/gold/x", Rates: []float64{400}},
			{Name: "tin", URL: "http://" + a.Data + "/tin/x", Rates: []float64{200}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Enter(t.Context(), "p"); err != nil {
		t.Fatal(err)
	}
	if err := g.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	r, err := c.Report(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sent := g.Report()
	for k, s := range sent.Streams {
		if got := r.Phases[1].Arrivals[k]; got != s.Cells[0].Admitted || got == 0 {
			t.Errorf("%s: %d arrived, %d answered", s.Name, got, s.Cells[0].Admitted)
		}
	}
	if r.Transit.P50 <= 0 || r.Transit.P50 > r.Transit.Max {
		t.Errorf("transit %+v is not one", r.Transit)
	}
	p, err := c.Judge(t.Context(), Claim{Limit: 1000, Spread: r.Transit.Max})
	if err != nil || !slices.Equal(p.Peaks[1], r.Phases[1].Peaks) {
		t.Errorf("peaks %v with the longest transit as spread, live peaks %v (%v)", p.Peaks, r.Phases[1].Peaks, err)
	}
}

func TestServeEndsWithItsInput(t *testing.T) {
	in, parent := io.Pipe()
	out, lines := io.Pipe()
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := Serve(context.Background(), "127.0.0.1", lines, in); err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	_ = parent.Close()
	wg.Wait()
}
