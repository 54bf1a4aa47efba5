package enforce_test

import (
	"testing"
	"time"

	"subak/enforce"
)

func offered(l *enforce.Limiter, class int) enforce.Counts {
	dst := make([]enforce.Counts, l.Classes())
	l.Counts(dst)
	return dst[class]
}

func TestRetriesInsideRetryAfterAreNotDemand(t *testing.T) {
	l := limiter(enforce.LimiterConfig{Classes: 2}, perSecond(1, 1))
	const alice, bob = 111, 222
	now := sec + 1000
	l.DecideClient(now, 0, 1, alice) // admitted, the bucket is empty now
	for range 50 {
		l.DecideClient(now, 0, 3, bob) // refused: above what it can ever hold
	}
	if c := offered(l, 0); c.Offered != 4 || c.Refused != 150 || c.Retries != 147 {
		t.Fatalf("hammering counted as demand: %+v", c)
	}
	// Told NoToken; the mark holds that long, and then he is new again.
	l.DecideClient(now+int64(enforce.NoToken)-sec, 0, 3, bob)
	if c := offered(l, 0); c.Offered != 4 {
		t.Fatalf("inside Retry-After: %+v", c)
	}
	l.DecideClient(now+int64(enforce.NoToken)+sec, 0, 3, bob)
	if c := offered(l, 0); c.Offered != 7 {
		t.Fatalf("after Retry-After: %+v", c)
	}
	// Another class, another client, an unknown client: all new.
	l.DecideClient(now, 1, 3, bob)
	l.DecideClient(now, 1, 3, alice)
	l.DecideClient(now, 1, 3, 0)
	l.DecideClient(now, 1, 3, 0)
	if c := offered(l, 1); c.Offered != 12 {
		t.Fatalf("new requests: %+v", c)
	}
}

func TestAdmittedRetryUsesTheMarkUp(t *testing.T) {
	l := limiter(enforce.LimiterConfig{Classes: 1}, perSecond(2))
	const carol = 333
	l.DecideClient(0, 0, 1, carol) // refused: empty at the start
	if v := l.DecideClient(600*ms, 0, 1, carol); !v.OK {
		t.Fatalf("got %+v", v)
	}
	if c := offered(l, 0); c.Offered != 1 || c.Admitted != 1 || c.Retries != 1 {
		t.Fatalf("one request sent twice: %+v", c)
	}
	l.DecideClient(601*ms, 0, 1, carol)
	if c := offered(l, 0); c.Offered != 2 {
		t.Fatalf("her next request is new: %+v", c)
	}
}

func TestForgottenClientCountsAsNewAndMemoryIsBounded(t *testing.T) {
	l := limiter(enforce.LimiterConfig{Classes: 1, Clients: 64}, perSecond(0))
	for client := range uint64(100_000) {
		l.DecideClient(0, 0, 1, client+1)
	}
	if c := offered(l, 0); c.Offered != 100_000 {
		t.Fatalf("distinct clients: %+v", c)
	}
	l.DecideClient(0, 0, 1, 1) // pushed out long ago
	if c := offered(l, 0); c.Offered != 100_001 {
		t.Fatalf("forgotten client: %+v", c)
	}
	l.DecideClient(0, 0, 1, 1)
	if c := offered(l, 0); c.Offered != 100_001 {
		t.Fatalf("remembered client: %+v", c)
	}
}

func TestTableOfTheConfiguredSizeRemembersMostOfAsManyClients(t *testing.T) {
	const clients = 1 << 12
	l := limiter(enforce.LimiterConfig{Classes: 1, Clients: 2 * clients}, perSecond(0))
	for range 2 {
		for client := range uint64(clients) {
			l.DecideClient(0, 0, 1, client+1)
		}
	}
	if c := offered(l, 0); c.Retries < clients*75/100 {
		t.Fatalf("%d of %d retries recognised", c.Retries, clients)
	}
}

func TestMarkDoesNotReviveWhenTheGrainCounterWraps(t *testing.T) {
	l := limiter(enforce.LimiterConfig{Classes: 1}, perSecond(0))
	l.DecideClient(5*sec, 0, 1, 7)
	wrap := int64(1<<32) * int64(10*time.Millisecond)
	for _, later := range []int64{wrap / 2, wrap / 4, wrap - 7200*sec} {
		before := offered(l, 0).Offered
		l.DecideClient(5*sec+later, 0, 1, 7)
		if got := offered(l, 0).Offered; got != before+1 {
			t.Fatalf("a mark of %v ago still counts", time.Duration(later))
		}
		l = limiter(enforce.LimiterConfig{Classes: 1}, perSecond(0))
		l.DecideClient(5*sec, 0, 1, 7)
	}
}
