package envoy_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	ratelimitcommon "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	"google.golang.org/protobuf/proto"

	"subak/allocator"
	"subak/enforce"
	"subak/enforce/envoy"
	"subak/enforce/gate"
)

func TestDescriptorsAreChargedToTheClassOfTheFirstRuleThatMatches(t *testing.T) {
	for _, tc := range []struct {
		name      string
		call      *request
		high, low int64 // charged
	}{
		{"a rule's cost", edge(pay()), 5, 0},
		{"a rule without one", edge(vip()), 1, 0},
		{"the first of two rules", edge(describe(entry("user", "vip"), entry("path", "/pay"))), 5, 0},
		{"the domain's class", edge(web()), 0, 1},
		{"several descriptors", edge(pay(), vip(), web(), web()), 6, 2},
		{"hits of the call", &request{Domain: "edge", HitsAddend: 3, Descriptors: []*descriptor{pay(), web()}}, 15, 3},
		{"hits of a descriptor go before", &request{Domain: "edge", HitsAddend: 3, Descriptors: []*descriptor{hits(pay(), 2), web()}}, 10, 3},
		{"no hits of a descriptor", edge(hits(pay(), 0), web()), 0, 1},
		{"another domain", &request{Domain: "egde", Descriptors: []*descriptor{pay()}}, 0, 1},
		{"no descriptors", edge(), 0, 1},
		{"a key twice, one value of which matches", edge(describe(entry("user", "vip"), entry("user", "x"))), 0, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, 100, 100)
			res := ask(t, w.service(rules()), tc.call)
			wantCodes(t, res, "+ "+strings.Repeat("+", len(tc.call.Descriptors)))
			w.wantLeft(100-tc.high, 100-tc.low)
		})
	}
}

func TestACallIsChargedForAllOfItsDescriptorsOrNone(t *testing.T) {
	w := newWorld(t, 7, 2)
	s := w.service(rules())
	wantCodes(t, ask(t, s, edge(web(), pay(), web())), "+ +++")
	w.wantLeft(2, 0)
	res := ask(t, s, edge(vip(), web(), pay()))
	wantCodes(t, res, "- +--")
	w.wantLeft(2, 0)
	if got := metric(t, s, "decisions_total", "class=high", "reason=sibling-refused"); got != 1 {
		t.Errorf("%v siblings, want 1", got)
	}
	var c [2]enforce.Counts
	w.lim.Counts(c[:])
	if c[0].Offered != 11 || c[1].Offered != 3 {
		t.Errorf("demand %d and %d, want 11 and 3: refused work wants capacity too", c[0].Offered, c[1].Offered)
	}
}

func TestTheStatusTellsLimitRestAndReset(t *testing.T) {
	w := newWorldOf(t, enforce.LimiterConfig{Classes: 2, Burst: 3 * time.Second}, 10, 2)
	s := w.service(rules())
	st := ask(t, s, edge(pay())).GetStatuses()[0]
	if l := st.GetCurrentLimit(); l.GetName() != "origin/high" || l.GetRequestsPerUnit() != 30 || l.GetUnit().String() != "SECOND" || l.GetUnitMultiplier().GetValue() != 3 {
		t.Errorf("limit %v, want 30 in 3 seconds", l)
	}
	if st.GetLimitRemaining() != 25 || st.GetDurationUntilReset().AsDuration().Round(time.Microsecond) != 500*time.Millisecond {
		t.Errorf("%d left, reset in %v, want 25 in 500ms", st.GetLimitRemaining(), st.GetDurationUntilReset().AsDuration())
	}
	st = ask(t, s, &request{Domain: "edge", HitsAddend: 6, Descriptors: []*descriptor{pay()}}).GetStatuses()[0]
	if st.GetLimitRemaining() != 0 || st.GetDurationUntilReset().AsDuration().Round(time.Millisecond) != 500*time.Millisecond {
		t.Errorf("refused: %d left, reset in %v, want 0 in 500ms", st.GetLimitRemaining(), st.GetDurationUntilReset().AsDuration())
	}
	cfg := rules()
	cfg.QuietStatus = true
	st = ask(t, w.service(cfg), edge(web())).GetStatuses()[0]
	if st.GetCurrentLimit() != nil || st.GetDurationUntilReset() != nil {
		t.Errorf("quiet status: %v", st)
	}
}

func TestHeadersAndBodySayWhatTheGateSays(t *testing.T) {
	big := hits(vip(), 101)
	for _, tc := range []struct {
		name string
		mode gate.HeaderMode
		call *request
		want map[string]string
	}{
		{"ietf", gate.HeadersIETF, edge(pay(), web(), vip()), map[string]string{
			"ratelimit-policy": `"origin/high";q=100;w=1, "origin/low";q=10;w=1`,
			"ratelimit":        `"origin/high";r=94;t=1, "origin/low";r=9;t=1`,
		}},
		{"ietf, refused", gate.HeadersIETF, edge(vip(), web(), big), map[string]string{
			"ratelimit-policy": `"origin/high";q=100;w=1, "origin/low";q=10;w=1`,
			"ratelimit":        `"origin/high";r=0;t=10, "origin/low";r=10;t=1`,
			"retry-after":      "10", "content-type": "application/problem+json", "cache-control": "no-store",
		}},
		{"draft 03", gate.HeadersDraft03, edge(pay(), web()), map[string]string{
			"ratelimit-limit": "10", "ratelimit-remaining": "9", "ratelimit-reset": "1",
		}},
		{"x, refused", gate.HeadersX, edge(web(), big), map[string]string{
			"x-ratelimit-limit": "100", "x-ratelimit-remaining": "0", "x-ratelimit-reset": "10",
			"retry-after": "10", "content-type": "application/problem+json", "cache-control": "no-store",
		}},
		{"off", gate.HeadersOff, edge(pay()), nil},
		{"off, refused", gate.HeadersOff, edge(big), map[string]string{
			"retry-after": "10", "content-type": "application/problem+json", "cache-control": "no-store",
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, 100, 10)
			cfg := rules()
			cfg.Headers = tc.mode
			res := ask(t, w.service(cfg), tc.call)
			wantHeaders(t, res, tc.want)
			if body := res.GetRawBody(); (res.GetOverallCode() == codeOver) != (len(body) > 0) {
				t.Errorf("%v with body %q", res.GetOverallCode(), body)
			} else if len(body) > 0 {
				var doc struct {
					Status int
					Class  string
				}
				if err := json.Unmarshal(body, &doc); err != nil || doc.Status != 429 || doc.Class != "high" {
					t.Errorf("body %s (%v)", body, err)
				}
			}
		})
	}
}

func TestQuietModesLeaveOutWhatIsNotNeeded(t *testing.T) {
	w := newWorld(t, 5, 5)
	cfg := rules()
	cfg.QuietAdmitted, cfg.NoBody, cfg.Metadata, cfg.RetryJitter = true, true, true, 4*time.Second
	deps := w.deps()
	deps.Rand = func() uint64 { return 3 }
	s, err := envoy.New(cfg, deps)
	if err != nil {
		t.Fatal(err)
	}
	res := ask(t, s, edge(pay()))
	wantHeaders(t, res, nil)
	if f := res.GetDynamicMetadata().AsMap(); f["class"] != "high" || f["reason"] != "admitted" || f["budget"] != "origin" {
		t.Errorf("metadata %v", f)
	}
	res = ask(t, s, edge(web(), vip()))
	if got := header(res, "retry-after"); got != "4" { // a second, and three of jitter
		t.Errorf("retry-after %q, want 4", got)
	}
	if f := res.GetDynamicMetadata().AsMap(); len(res.GetRawBody()) > 0 || f["reason"] != "class-empty" {
		t.Errorf("body %q, metadata %v", res.GetRawBody(), f)
	}
}

// Lesson O26: nothing unknown passes in silence.
func TestTheUnknownGoesTheConfiguredWayAndIsCounted(t *testing.T) {
	other := &request{Domain: "other", Descriptors: []*descriptor{pay(), web()}}
	strict := rules()
	strict.Domains[0].Class, strict.Domains[0].Rules[1].Class = "", "high"
	for _, tc := range []struct {
		name       string
		on         gate.Unknown
		call       *request
		codes      string
		high, low  int64 // left of 100
		what       string
		unknown    float64
		retryAfter bool
	}{
		{"domain, default", gate.UnknownDefault, other, "+ ++", 100, 98, "domain", 2, false},
		{"domain, deny", gate.UnknownDeny, other, "- --", 100, 100, "domain", 2, false},
		{"domain, allow", gate.UnknownAllow, other, "+ ++", 100, 100, "domain", 2, false},
		{"descriptor, default", gate.UnknownDefault, edge(pay(), web()), "+ ++", 95, 99, "descriptor", 1, false},
		{"descriptor, deny", gate.UnknownDeny, edge(pay(), web()), "- +-", 100, 100, "descriptor", 1, false},
		{"descriptor, allow", gate.UnknownAllow, edge(pay(), web()), "+ ++", 95, 100, "descriptor", 1, false},
		{"nothing, default", gate.UnknownDefault, edge(), "+ ", 100, 99, "bare", 1, false},
		{"nothing, deny", gate.UnknownDeny, edge(), "- ", 100, 100, "bare", 1, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, 100, 100)
			cfg := strict
			cfg.OnUnknown = tc.on
			s := w.service(cfg)
			res := ask(t, s, tc.call)
			wantCodes(t, res, tc.codes)
			w.wantLeft(tc.high, tc.low)
			if got := metric(t, s, "unknown_total"); got != tc.unknown {
				t.Errorf("%v unknown in all, want %v", got, tc.unknown)
			}
			if got := metric(t, s, "unknown_total", "what="+tc.what); got != tc.unknown {
				t.Errorf("%v unknown %s, want %v", got, tc.what, tc.unknown)
			}
			if got := header(res, "retry-after"); got != "" {
				t.Errorf("retry-after %q for what is denied for good", got)
			}
		})
	}
}

func TestADescriptorThatNoRuleMatchesIsCountedAlsoWhereTheDomainHasAClass(t *testing.T) {
	w := newWorld(t, 100, 100)
	s := w.service(rules())
	ask(t, s, edge(web()))
	if got := metric(t, s, "unknown_total", "what=descriptor"); got != 1 {
		t.Errorf("%v unknown, want 1", got)
	}
	cfg := rules()
	cfg.Domains[0].Rules = nil
	s = w.service(cfg)
	ask(t, s, edge(web()))
	if got := metric(t, s, "unknown_total"); got != 0 {
		t.Errorf("%v unknown, want 0: the whole domain is one class", got)
	}
}

func TestPeeksAskAndTakeNothing(t *testing.T) {
	w := newWorld(t, 7, 1)
	s := w.service(rules())
	wantCodes(t, ask(t, s, edge(hits(pay(), 0))), "+ +")
	wantCodes(t, ask(t, s, edge(hits(pay(), 0), web())), "+ ++")
	w.wantLeft(7, 0)
	wantCodes(t, ask(t, s, edge(vip(), hits(web(), 0))), "- +-")
	w.wantLeft(7, 0)
	if got := metric(t, s, "peeks_total"); got != 3 {
		t.Errorf("%v peeks, want 3", got)
	}
	var c [2]enforce.Counts
	w.lim.Counts(c[:])
	if c[0].Offered != 1 || c[1].Offered != 1 {
		t.Errorf("demand %d and %d, want 1 and 1: peeks are none", c[0].Offered, c[1].Offered)
	}
}

func TestWhatADataPlaneSaysCannotMintTokensOrMoveALimit(t *testing.T) {
	w := newWorld(t, 10, 10)
	s := w.service(rules())
	ask(t, s, edge(pay(), web()))
	back := hits(pay(), 1)
	back.IsNegativeHits = true
	wantCodes(t, ask(t, s, edge(back)), "+ +")
	wide := vip()
	wide.Limit = &ratelimitcommon.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 1e6, Unit: 1}
	wantCodes(t, ask(t, s, edge(hits(wide, 6))), "- -")
	for _, n := range []uint64{1 << 40, 1 << 63, 1<<64 - 1} {
		wantCodes(t, ask(t, s, edge(hits(pay(), n))), "- -")
	}
	w.wantLeft(5, 9)
	for what, want := range map[string]float64{"negative-hits": 1, "limit": 1} {
		if got := metric(t, s, "ignored_total", "what="+what); got != want {
			t.Errorf("%v %s ignored, want %v", got, what, want)
		}
	}
}

func TestShadowModeAnswersOKToEverythingAndCountsTheTruth(t *testing.T) {
	w := newWorld(t, 7, 7)
	cfg := rules()
	cfg.Shadow = true
	s := w.service(cfg)
	for range 3 {
		res := ask(t, s, edge(pay(), web()))
		wantCodes(t, res, "+ ++")
		if header(res, "retry-after") != "" || len(res.GetRawBody()) > 0 {
			t.Errorf("shadow mode refuses: %v", res)
		}
	}
	w.wantLeft(2, 6)
	if a, sh := metric(t, s, "calls_total", "outcome=admitted"), metric(t, s, "calls_total", "outcome=shadowed"); a != 1 || sh != 2 {
		t.Errorf("%v admitted, %v shadowed, want 1 and 2", a, sh)
	}
	cfg.OnUnknown = gate.UnknownDeny
	wantCodes(t, ask(t, w.service(cfg), &request{Domain: "x", Descriptors: []*descriptor{web()}}), "+ +")

	b := newWorldOf(t, enforce.LimiterConfig{Classes: 2, Shadow: true}, 7, 7) // the budget's own
	s = b.service(rules())
	for range 3 {
		wantCodes(t, ask(t, s, edge(pay(), web())), "+ ++")
	}
	b.wantLeft(2, 4)
	if got := metric(t, s, "decisions_total", "reason=class-empty"); got != 2 {
		t.Errorf("%v refusals counted, want 2", got)
	}
}

func TestACallWithTooManyDescriptorsIsRefusedAndCounted(t *testing.T) {
	w := newWorld(t, 100, 100)
	s := w.service(rules())
	var ds []*descriptor
	for range 33 {
		ds = append(ds, web())
	}
	wantCodes(t, ask(t, s, edge(ds[1:]...)), "+ "+strings.Repeat("+", 32))
	wantCodes(t, ask(t, s, edge(ds...)), "- "+strings.Repeat("-", 33))
	w.wantLeft(100, 68)
	if got := metric(t, s, "failures_total", "kind=oversized"); got != 1 {
		t.Errorf("%v oversized, want 1", got)
	}
}

func TestRepeatedCallsOfOneClientAreDemandOnce(t *testing.T) {
	w := newWorld(t, 5, 5)
	cfg := rules()
	cfg.Client = "remote_address"
	s := w.service(cfg)
	from := func(addr string) *request {
		return edge(describe(entry("path", "/pay"), entry("remote_address", addr)))
	}
	ask(t, s, from("192.0.2.1"))
	for range 4 {
		ask(t, s, from("192.0.2.1"))
		ask(t, s, from("192.0.2.2"))
		ask(t, s, edge(pay())) // who it is from it does not say
	}
	var c [2]enforce.Counts
	w.lim.Counts(c[:])
	if want := int64(5 + 5 + 5 + 4*5); c[0].Offered != want {
		t.Errorf("demand %d, want %d", c[0].Offered, want)
	}
}

func TestARenewedServiceServesTheNewRulesAndGoesOnCounting(t *testing.T) {
	w := newWorld(t, 100, 100)
	old := w.service(rules())
	door := envoy.NewDoor(old)
	ask(t, door.Service(), edge(pay()))
	cfg := rules()
	cfg.Domains[0].Rules[0].Class = "low"
	s, err := old.Renew(cfg, w.limits)
	if err != nil {
		t.Fatal(err)
	}
	if door.Swap(s) != old {
		t.Error("swapped another one")
	}
	ask(t, door.Service(), edge(pay()))
	ask(t, old, edge(pay())) // a call that the old one still had
	w.wantLeft(90, 95)
	if h, l := metric(t, s, "decisions_total", "class=high", "reason=admitted"), metric(t, s, "decisions_total", "class=low", "reason=admitted"); h != 2 || l != 1 {
		t.Errorf("decisions %v and %v, want 2 and 1", h, l)
	}
	if _, err := s.Renew(envoy.Config{Name: "envoys"}, w.limits); err == nil {
		t.Error("a configuration with faults made a service")
	}
}

func TestWhatIsMissingGoesTheWayOfTheUnknown(t *testing.T) {
	cfg := rules()
	cfg.Domains[0].Rules[0].Budget = "gone"
	if _, err := envoy.New(cfg, newWorld(t, 1, 1).deps()); err == nil || !strings.Contains(err.Error(), `no class "high" in budget "gone"`) {
		t.Errorf("a missing budget: %v", err)
	}
	for _, tc := range []struct {
		on    gate.Unknown
		gone  bool // the default's budget too
		codes string
		low   int64
	}{
		{gate.UnknownDefault, false, "+ +", 99},
		{gate.UnknownDefault, true, "- -", 100},
		{gate.UnknownDeny, false, "- -", 100},
		{gate.UnknownAllow, false, "+ +", 100},
	} {
		w := newWorld(t, 100, 100)
		cfg := rules()
		cfg.OnUnknown = tc.on
		cfg.Domains[0].Rules[0].Budget = "gone"
		missing := 0
		if tc.gone {
			cfg.Default.Budget = "gone"
			missing++
		}
		deps := w.deps()
		deps.Missing = func(envoy.Target) { missing++ }
		s, err := envoy.New(cfg, deps)
		if err != nil {
			t.Fatal(err)
		}
		wantCodes(t, ask(t, s, edge(pay())), tc.codes)
		w.wantLeft(100, tc.low)
		if got := metric(t, s, "unknown_total", "what=descriptor"); got != 1 || missing == 0 {
			t.Errorf("%v unknown, want 1; told of %d", got, missing)
		}
	}
}

func TestEveryFaultOfAConfigurationIsNamed(t *testing.T) {
	cfg := envoy.Config{
		Name: "e", RetryJitter: -1, Headers: 99,
		Domains: []envoy.Domain{
			{Name: "a", Budget: "b", Class: "c"}, {Name: "a", Budget: "b", Class: "c"}, {Name: ""},
			{Name: "d", Rules: []envoy.Rule{{Cost: -1, Budget: "b", Class: "c"}, {Cost: enforce.MaxCost + 1, Budget: "b", Class: "c"}, {Class: "c"}}},
		},
	}
	err := cfg.Validate()
	if err == nil {
		t.Fatal("no fault found")
	}
	for _, want := range []string{"retry_jitter", "headers", "domains[1]", "domains[2]", "rules[0]", "rules[1]", "rules[2]", "default"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no word of %s in %v", want, err)
		}
	}
}

func TestAResponseIsWhatProtobufWouldWriteOfIt(t *testing.T) {
	w := newWorld(t, 100, 10)
	cfg := rules()
	cfg.Metadata = true
	s := w.service(cfg)
	for _, r := range []*request{edge(pay(), web()), edge(hits(web(), 11)), edge()} {
		res := ask(t, s, r)
		b, err := proto.MarshalOptions{Deterministic: true}.Marshal(res)
		if err != nil || len(res.ProtoReflect().GetUnknown()) > 0 {
			t.Errorf("%v: %v, unknown fields %x", res, err, res.ProtoReflect().GetUnknown())
		}
		var again response
		if err := proto.Unmarshal(b, &again); err != nil || !proto.Equal(&again, res) {
			t.Errorf("%v does not survive: %v", res, err)
		}
	}
}

func TestATenantIsNamedByTheValueOfItsKeyAndBoundByItself(t *testing.T) {
	w := newWorldOf(t, enforce.LimiterConfig{Classes: 2, Tenants: []enforce.TenantConfig{{Rate: 3 * allocator.Unit}, {}}}, 100, 100)
	cfg := rules()
	cfg.Domains[0].Rules[1].Tenant = "key"
	s := w.service(cfg)
	from := func(key string) *descriptor { return describe(entry("user", "vip"), entry("key", key)) }
	wantCodes(t, ask(t, s, edge(from("a"))), "+ +") // a new tenant has one request, not a burst
	res := ask(t, s, edge(from("a")))
	wantCodes(t, res, "- -")
	if got := header(res, "retry-after"); got != "1" {
		t.Errorf("retry-after %q, want 1: a third of a second", got)
	}
	wantCodes(t, ask(t, s, edge(from("b"), web())), "+ ++")
	wantCodes(t, ask(t, s, edge(vip(), vip(), vip(), vip())), "+ ++++") // nobody's
	w.wantLeft(94, 99)
	if got := metric(t, s, "decisions_total", "class=high", "reason=tenant-empty"); got != 1 {
		t.Errorf("%v refused for the tenant, want 1", got)
	}
}
