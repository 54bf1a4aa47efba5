package answer_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"subak/allocator"
	"subak/enforce"
	"subak/enforce/answer"
)

// roundedUp is n/d as a whole number that is not less, one at least.
func roundedUp(n, d int64) int64 {
	q, rest := new(big.Int).QuoRem(big.NewInt(n), big.NewInt(d), new(big.Int))
	if rest.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	return max(1, q.Int64())
}

func TestSecondsAreWholeAndNeverTooFew(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.Int64Range(0, int64(24*time.Hour)).Draw(t, "wait")
		if got, want := answer.Seconds(time.Duration(d)), roundedUp(d, int64(time.Second)); got != want {
			t.Fatalf("%v is %d s, want %d", time.Duration(d), got, want)
		}
	})
}

func TestAWindowEarnsTheWholeBucket(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := enforce.Quota{
			Cap:  rapid.Int64Range(0, 1<<62/int64(allocator.Unit)).Draw(t, "cap"),
			Rate: allocator.Rate(rapid.Int64Range(0, int64(enforce.MaxRate)).Draw(t, "rate")),
		}
		want := int64(1) // what earns nothing has no window; w is a number of at least 1
		if q.Rate > 0 {
			want = roundedUp(q.Cap*int64(allocator.Unit), int64(q.Rate))
		}
		if got := answer.Window(q); got != want {
			t.Fatalf("w=%d, want %d", got, want)
		}
	})
}

// refused is what a client receives that is refused by a real server.
func refused(t *testing.T, r answer.Refusal) (h http.Header, doc map[string]any) {
	t.Helper()
	class := answer.NewClass("origin", "high")
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { class.Refuse(w, r) }))
	defer srv.Close()
	resp, err := srv.Client().Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusTooManyRequests || resp.ContentLength <= 0 {
		t.Errorf("status %d, length %d", resp.StatusCode, resp.ContentLength)
	}
	if err := json.NewDecoder(resp.Body).Decode(&doc); err != nil {
		t.Fatal(err)
	}
	return resp.Header, doc
}

func TestARefusalIsWhole(t *testing.T) {
	h, doc := refused(t, answer.Refusal{Wait: 1100 * time.Millisecond, Jitter: 3 * time.Second, Fields: answer.Off})
	for name, want := range map[string]string{"Retry-After": "5", "Content-Type": "application/problem+json", "Cache-Control": "no-store"} {
		if got := h.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	want := map[string]any{
		"type": answer.QuotaExceeded, "title": "Request cannot be satisfied as assigned quota has been exceeded", "status": 429.0,
		"detail":            `budget "origin" has no capacity left for class "high" at this node`,
		"violated-policies": []any{"origin/high"}, "budget": "origin", "class": "high",
	}
	if diff := cmp.Diff(want, doc); diff != "" {
		t.Error(diff)
	}
}

// quota has a bucket of 25 at 10/s, with 7 in it and 1.8 s until it is full.
var quota = enforce.Quota{Rate: 10 * allocator.Unit, Cap: 25, Tokens: 7, Full: 1800 * time.Millisecond}

func TestQuotaFieldsOfBothAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		fields        answer.Fields
		refuse, admit map[string]string
	}{
		"off": {fields: answer.Off},
		"ietf": {
			fields: answer.IETF,
			refuse: map[string]string{"Ratelimit-Policy": `"origin/high";q=25;w=3`, "Ratelimit": `"origin/high";r=0;t=4`},
			admit:  map[string]string{"Ratelimit-Policy": `"origin/high";q=25;w=3`, "Ratelimit": `"origin/high";r=7;t=2`},
		},
		"draft03": {
			fields: answer.Draft03,
			refuse: map[string]string{"Ratelimit-Limit": "25", "Ratelimit-Remaining": "0", "Ratelimit-Reset": "4"},
			admit:  map[string]string{"Ratelimit-Limit": "25", "Ratelimit-Remaining": "7", "Ratelimit-Reset": "2"},
		},
		"x": {
			fields: answer.X,
			refuse: map[string]string{"X-Ratelimit-Limit": "25", "X-Ratelimit-Remaining": "0", "X-Ratelimit-Reset": "4"},
			admit:  map[string]string{"X-Ratelimit-Limit": "25", "X-Ratelimit-Remaining": "7", "X-Ratelimit-Reset": "2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, _ := refused(t, answer.Refusal{Wait: 3100 * time.Millisecond, Quota: quota, Fields: c.fields})
			if diff := cmp.Diff(c.refuse, quotaFields(h)); diff != "" {
				t.Error("refused:", diff)
			}
			h = http.Header{}
			answer.NewClass("origin", "high").Admit(h, c.fields, quota)
			if diff := cmp.Diff(c.admit, quotaFields(h)); diff != "" {
				t.Error("admitted:", diff)
			}
			for key := range h {
				if key != http.CanonicalHeaderKey(key) {
					t.Errorf("key %q: Get would not find it", key)
				}
			}
		})
	}
}

// quotaFields are the fields that tell of a quota; nil if there are none.
func quotaFields(h http.Header) map[string]string {
	var got map[string]string
	for key, v := range h {
		if strings.Contains(strings.ToLower(key), "ratelimit") {
			if got == nil {
				got = map[string]string{}
			}
			got[key] = strings.Join(v, " and ")
		}
	}
	return got
}

// A structured string is unquoted as RFC 9651, 4.2.5 wants it; ok is false where
// that would fail.
func unquoted(s string) (text string, ok bool) {
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return "", false
	}
	var b strings.Builder
	for s = s[1 : len(s)-1]; s != ""; s = s[1:] {
		if s[0] == '\\' {
			if s = s[1:]; s == "" || s[0] != '"' && s[0] != '\\' {
				return "", false
			}
		} else if s[0] == '"' || s[0] < ' ' || s[0] > '~' {
			return "", false
		}
		b.WriteByte(s[0])
	}
	return b.String(), true
}

func TestAnyNameMakesAStructuredString(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		budget, class := rapid.String().Draw(t, "budget"), rapid.String().Draw(t, "class")
		want := strings.Map(func(r rune) rune {
			if r < ' ' || r > '~' {
				return -1
			}
			return r
		}, budget+"/"+class)
		c := answer.NewClass(budget, class)
		if got, ok := unquoted(c.Policy()); !ok || got != want {
			t.Fatalf("policy %s is %q, want %q", c.Policy(), got, want)
		}
		if !json.Valid(c.Document()) {
			t.Fatalf("no JSON: %s", c.Document())
		}
	})
}

func TestAProblemSaysItsStatusTwice(t *testing.T) {
	rec := httptest.NewRecorder()
	answer.Problem(rec, http.StatusBadGateway, `backend "b" is gone`)
	want := fmt.Sprintf(`{"detail":"backend \"b\" is gone","status":502,"title":%q,"type":"about:blank"}`+"\n", http.StatusText(http.StatusBadGateway))
	if rec.Code != http.StatusBadGateway || rec.Body.String() != want || rec.Header().Get("Content-Length") != strconv.Itoa(len(want)) {
		t.Errorf("%d, %v: %s", rec.Code, rec.Header(), rec.Body)
	}
}
