package gate_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"strconv"
	"testing"
	"time"

	"subak/enforce/gate"
)

func mustURL(s string) *url.URL {
	u, err := url.Parse(s)
	if err != nil {
		panic(err)
	}
	return u
}

// spent is a gate whose low class has nothing left.
func spent(t *testing.T, cfg gate.Config) (*world, *url.URL) {
	w := newWorld(t, 10, 2)
	cfg.Backends = to(serve(t, http.HandlerFunc(echo)))
	u := serve(t, w.gate(cfg))
	for range 2 {
		wantStatus(t, send(t, "GET", u, "/"), 200)
	}
	return w, u
}

func TestRefusalSaysWhenAndWhy(t *testing.T) {
	_, u := spent(t, gate.Config{})
	a := send(t, "GET", u, "/")
	wantStatus(t, a, 429)
	wantHeader(t, a, "Retry-After", "1") // half a second, rounded up
	wantHeader(t, a, "RateLimit-Policy", `"origin/low";q=2;w=1`)
	wantHeader(t, a, "RateLimit", `"origin/low";r=0;t=1`)
	wantHeader(t, a, "Content-Type", "application/problem+json")
	wantHeader(t, a, "Cache-Control", "no-store")
	wantHeader(t, a, "X-Subak-Status", "")
	wantHeader(t, a, "X-Subak-Decision", "")
	var got map[string]any
	if err := json.Unmarshal([]byte(a.body), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"type":              "https://iana.org/assignments/http-problem-types#quota-exceeded",
		"title":             "Request cannot be satisfied as assigned quota has been exceeded",
		"status":            429.0,
		"detail":            `budget "origin" has no capacity left for class "low" at this node`,
		"violated-policies": []any{"origin/low"},
		"budget":            "origin",
		"class":             "low",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("body %v\nwant %v", got, want)
	}
}

func TestRetryAfterIsKept(t *testing.T) {
	w := newWorld(t, 10, 1)
	u := serve(t, w.gate(gate.Config{
		Backends: to(serve(t, http.HandlerFunc(echo))),
		Default:  gate.Target{Budget: "origin", Class: "high", Cost: 10},
	}))
	wantStatus(t, send(t, "GET", u, "/"), 200)
	w.now.Add(int64(100 * time.Millisecond))
	a := send(t, "GET", u, "/")
	wantStatus(t, a, 429)
	secs, err := strconv.Atoi(a.Header.Get("Retry-After"))
	if err != nil || secs != 1 {
		t.Fatalf("Retry-After %q", a.Header.Get("Retry-After"))
	}
	w.now.Add(int64(secs) * int64(time.Second))
	wantStatus(t, send(t, "GET", u, "/"), 200)
}

func TestJitterIsAddedToRetryAfterWithinItsBound(t *testing.T) {
	w := newWorld(t, 10, 0)
	bits := uint64(0)
	deps := w.deps()
	deps.Rand = func() uint64 { bits++; return bits }
	g, err := gate.New(gate.Config{
		Backends: to(mustURL("http://127.0.0.1:1")), RetryJitter: 3 * time.Second,
		Default: gate.Target{Budget: "origin", Class: "low"},
	}, deps)
	if err != nil {
		t.Fatal(err)
	}
	u := serve(t, g)
	seen := map[string]bool{}
	for range 8 {
		a := send(t, "GET", u, "/")
		seen[a.Header.Get("Retry-After")] = true
		wantHeader(t, a, "RateLimit", `"origin/low";r=0;t=10`) // the truth, without jitter
	}
	if want := map[string]bool{"10": true, "11": true, "12": true, "13": true}; !reflect.DeepEqual(seen, want) {
		t.Fatalf("Retry-After values %v, want %v", seen, want)
	}
}

func TestHeaderModes(t *testing.T) {
	all := []string{
		"RateLimit", "RateLimit-Policy", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset",
		"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset",
	}
	for _, tc := range []struct {
		mode              gate.HeaderMode
		admitted, refused map[string]string
	}{
		{
			gate.HeadersIETF,
			map[string]string{"RateLimit": `"origin/low";r=1;t=1`, "RateLimit-Policy": `"origin/low";q=2;w=1`},
			map[string]string{"RateLimit": `"origin/low";r=0;t=1`, "RateLimit-Policy": `"origin/low";q=2;w=1`},
		},
		{
			gate.HeadersDraft03,
			map[string]string{"RateLimit-Limit": "2", "RateLimit-Remaining": "1", "RateLimit-Reset": "1"},
			map[string]string{"RateLimit-Limit": "2", "RateLimit-Remaining": "0", "RateLimit-Reset": "1"},
		},
		{
			gate.HeadersX,
			map[string]string{"X-RateLimit-Limit": "2", "X-RateLimit-Remaining": "1", "X-RateLimit-Reset": "1"},
			map[string]string{"X-RateLimit-Limit": "2", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1"},
		},
		{gate.HeadersOff, nil, nil},
	} {
		w := newWorld(t, 10, 2)
		u := serve(t, w.gate(gate.Config{Backends: to(serve(t, http.HandlerFunc(echo))), Headers: tc.mode}))
		first := send(t, "GET", u, "/")
		send(t, "GET", u, "/")
		last := send(t, "GET", u, "/")
		wantStatus(t, first, 200)
		wantStatus(t, last, 429)
		for _, name := range all {
			wantHeader(t, first, name, tc.admitted[name])
			wantHeader(t, last, name, tc.refused[name])
		}
	}
}

func TestPolicyWindowOfASlowClassIsTheTimeForOneRequest(t *testing.T) {
	w := newWorld(t, 10, 0)
	setMicro(w, 300_000)
	u := serve(t, w.gate(gate.Config{Backends: to(serve(t, http.HandlerFunc(echo)))}))
	w.now.Add(int64(time.Minute))
	wantHeader(t, send(t, "GET", u, "/"), "RateLimit-Policy", `"origin/low";q=1;w=4`)
	a := send(t, "GET", u, "/")
	wantStatus(t, a, 429)
	wantHeader(t, a, "Retry-After", "4")
}

func TestDebugFieldNamesTheReason(t *testing.T) {
	_, u := spent(t, gate.Config{Debug: true})
	wantHeader(t, send(t, "GET", u, "/"), "X-Subak-Decision",
		`budget="origin", class="low", cost=1, reason=class-empty, from=-1`)
}

func TestBackendsOwnQuotaFieldsStayInTheList(t *testing.T) {
	w := newWorld(t, 10, 2)
	u := serve(t, w.gate(gate.Config{Backends: to(serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("RateLimit", `"theirs";r=9;t=9`)
		w.Header().Set("RateLimit-Policy", `"theirs";q=99;w=9`)
	})))}))
	a := send(t, "GET", u, "/")
	wantHeader(t, a, "RateLimit", `"origin/low";r=1;t=1, "theirs";r=9;t=9`)
	wantHeader(t, a, "RateLimit-Policy", `"origin/low";q=2;w=1, "theirs";q=99;w=9`)
}

func TestQuietAdmittedLeavesFieldsOffAdmittedResponsesOnly(t *testing.T) {
	_, u := spent(t, gate.Config{QuietAdmitted: true})
	w := newWorld(t, 10, 2)
	quiet := serve(t, w.gate(gate.Config{Backends: to(serve(t, http.HandlerFunc(echo))), QuietAdmitted: true}))
	wantHeader(t, send(t, "GET", quiet, "/"), "RateLimit", "")
	if a := send(t, "GET", u, "/"); a.Header.Get("RateLimit") == "" {
		t.Error("refusal without quota fields")
	}
}

// A structured-field list of strings with integer parameters.
var listSyntax = regexp.MustCompile(`^"([ !#-\[\]-~]|\\["\\])*"(;[a-z]+=\d+)+$`)

func TestOddNamesStillMakeStructuredFields(t *testing.T) {
	w := newWorld(t, 10, 2)
	w.limits[0].Name = "a\"b\\c\x01é"
	g := w.gate(gate.Config{
		Backends: to(serve(t, http.HandlerFunc(echo))),
		Default:  gate.Target{Budget: w.limits[0].Name, Class: "low"},
	})
	a := send(t, "GET", serve(t, g), "/")
	for _, name := range []string{"RateLimit", "RateLimit-Policy"} {
		if v := a.Header.Get(name); !listSyntax.MatchString(v) {
			t.Errorf("%s: %q is no structured field", name, v)
		}
	}
}

func TestRetriesOfOneRequestAreNotDemand(t *testing.T) {
	for _, tc := range []struct {
		by   gate.RetryBy
		want int64 // offered by one client: 10 times /a, then /b
	}{
		{gate.RetryByRequest, 2},
		{gate.RetryByAddress, 1},
		{gate.RetryOff, 11},
	} {
		w := newWorld(t, 10, 0)
		u := serve(t, w.gate(gate.Config{Backends: to(mustURL("http://127.0.0.1:1")), RetryBy: tc.by}))
		for range 10 {
			wantStatus(t, send(t, "GET", u, "/a"), 429)
		}
		wantStatus(t, send(t, "GET", u, "/b"), 429)
		if c := w.counts(1); c.Offered != tc.want || c.Refused != 11 {
			t.Errorf("retry by %d: %+v, want %d offered of 11 refused", tc.by, c, tc.want)
		}
	}
}

func TestShadowLetsPassAndCountsTheReason(t *testing.T) {
	w := newWorld(t, 10, 2)
	shadow(w)
	g := w.gate(gate.Config{Backends: to(serve(t, http.HandlerFunc(echo))), Debug: true})
	u := serve(t, g)
	a := send(t, "GET", u, "/")
	wantStatus(t, a, 200)
	wantHeader(t, a, "X-Subak-Decision", `budget="origin", class="low", cost=1, reason=no-share, from=-1`)
	if got := metric(t, collector(g), "budget_gate_decisions_total", "class=low", "reason=no-share"); got != 1 {
		t.Errorf("%v counted, want 1", got)
	}
}
