package httplimit_test

import (
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"subak/allocator"
	"subak/enforce"
	"subak/enforce/answer"
	"subak/enforce/gate"
	"subak/enforce/limit"
	"subak/enforce/limit/httplimit"
)

// world is a node of two classes at 10/s each whose buckets are just full, by
// a clock that stands.
type world struct {
	budgets gate.Budgets
	set     *limit.Set
	now     func() int64
}

func newWorld() *world {
	const full = 1_001_000_000 // credit rounds down
	l := enforce.NewLimiter(enforce.LimiterConfig{Classes: 2, Clients: -1}, 0)
	each := 10 * allocator.Unit
	l.SetSchedule(0, []enforce.Step{{Until: math.MaxInt64, Total: 2 * each, Classes: []allocator.Rate{each, each}}})
	w := &world{budgets: gate.Budgets{{Name: "origin", Classes: []string{"high", "low"}, Limiter: l}}, now: func() int64 { return full }}
	w.set = limit.NewSet(limit.Config{Limits: w.budgets, Now: w.now})
	return w
}

func (w *world) class(t *testing.T, name string) *limit.Class {
	t.Helper()
	c, err := w.set.Class("origin", name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var served = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "served") })

func ask(h http.Handler, path string) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest("GET", path, nil))
	return rec
}

func wrapped(t *testing.T, cfg httplimit.Config) http.Handler {
	t.Helper()
	wrap, err := httplimit.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return wrap(served)
}

func TestTheHandlerSeesWhatIsAdmittedAndNothingElse(t *testing.T) {
	w := newWorld()
	h := wrapped(t, httplimit.Config{Class: w.class(t, "low")})
	codes := map[int]int{}
	for range 25 {
		rec := ask(h, "/")
		codes[rec.Code]++
		if (rec.Code == 200) != (rec.Body.String() == "served") {
			t.Errorf("%d with body %q", rec.Code, rec.Body)
		}
	}
	if codes[200] != 10 || codes[429] != 15 {
		t.Errorf("answers %v, want 10 of 200 and 15 of 429", codes)
	}
}

// A client must not be able to tell by the refusal which door it met.
func TestARefusalIsThatOfAListener(t *testing.T) {
	for name, f := range map[string]struct {
		fields answer.Fields
		mode   gate.HeaderMode
	}{
		"ietf": {answer.IETF, gate.HeadersIETF}, "draft03": {answer.Draft03, gate.HeadersDraft03},
		"x": {answer.X, gate.HeadersX}, "off": {answer.Off, gate.HeadersOff},
	} {
		w := newWorld()
		g, err := gate.New(gate.Config{
			Name: "edge", Backends: []gate.Backend{{URL: &url.URL{Scheme: "http", Host: "127.0.0.1:1"}}}, Headers: f.mode,
			Default: gate.Target{Budget: "origin", Class: "low"},
		}, gate.Deps{Limits: w.budgets, Now: w.now})
		if err != nil {
			t.Fatal(err)
		}
		h := wrapped(t, httplimit.Config{Class: w.class(t, "low"), Fields: f.fields})
		for range 10 {
			ask(h, "/")
		}
		ours, theirs := ask(h, "/"), ask(g, "/")
		if ours.Code != 429 || theirs.Code != 429 {
			t.Fatalf("%s: answers %d and %d, want refusals", name, ours.Code, theirs.Code)
		}
		if ours.Header().Get("Retry-After") == "" || ours.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: fields %v", name, ours.Header())
		}
		if d := cmp.Diff(theirs.Header(), ours.Header()); d != "" {
			t.Errorf("%s: fields differ (- listener, + middleware):\n%s", name, d)
		}
		if d := cmp.Diff(theirs.Body.String(), ours.Body.String()); d != "" {
			t.Errorf("%s: bodies differ:\n%s", name, d)
		}
		g.Close()
	}
}

func TestRequestsGoToTheClassThatTheProgramNames(t *testing.T) {
	w := newWorld()
	high, low := w.class(t, "high"), w.class(t, "low")
	var refused []enforce.Reason
	h := wrapped(t, httplimit.Config{
		Class: low,
		Classify: func(r *http.Request) (*limit.Class, limit.Call) {
			cost, _ := strconv.ParseInt(r.URL.Query().Get("cost"), 10, 64)
			if r.URL.Path == "/high" {
				return high, limit.Call{Cost: cost}
			}
			return nil, limit.Call{Cost: cost}
		},
		Refused: func(_ *http.Request, d limit.Decision) { refused = append(refused, d.Reason) },
	})
	for _, tc := range []struct {
		path string
		want int
	}{{"/high?cost=10", 200}, {"/high", 429}, {"/x?cost=9", 200}, {"/x", 200}, {"/x", 429}, {"/x?cost=-1", 429}} {
		if rec := ask(h, tc.path); rec.Code != tc.want {
			t.Errorf("%s: %d, want %d", tc.path, rec.Code, tc.want)
		}
	}
	if d := cmp.Diff([]enforce.Reason{enforce.ClassEmpty, enforce.ClassEmpty, enforce.BadCost}, refused); d != "" {
		t.Error(d)
	}
}

func TestARequestThatNobodyKnowsWhatToDoWithIsForbidden(t *testing.T) {
	h := wrapped(t, httplimit.Config{Classify: func(*http.Request) (*limit.Class, limit.Call) { return nil, limit.Call{} }})
	if rec := ask(h, "/"); rec.Code != 403 {
		t.Errorf("%d, want 403", rec.Code)
	}
}

func TestFaultsOfTheConfigurationAreAllTold(t *testing.T) {
	_, err := httplimit.New(httplimit.Config{Fields: 9, RetryJitter: -1})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"Class", "Fields", "RetryJitter"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not name %s", err, want)
		}
	}
}

func TestJitterOnlyAdds(t *testing.T) {
	w := newWorld()
	h := wrapped(t, httplimit.Config{Class: w.class(t, "low"), RetryJitter: 5e9})
	seen := map[string]bool{}
	for range 200 {
		rec := ask(h, "/")
		if rec.Code == 200 {
			continue
		}
		after := rec.Header().Get("Retry-After")
		if s, err := strconv.Atoi(after); err != nil || s < 1 || s > 6 {
			t.Fatalf("Retry-After %q, want 1 to 6", after)
		}
		seen[after] = true
	}
	if len(seen) < 2 {
		t.Errorf("always %v", seen)
	}
}
