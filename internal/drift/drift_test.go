package drift

import (
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// pair simulates two nodes that publish to one another each tick, over a network
// that loses and delays. The peer's clock gains ratePPM on the own one.
type pair struct {
	rng         *rand.Rand
	tick        time.Duration
	delay       func() time.Duration // one way, drawn per row
	loss        float64
	ratePPM     func(at int64) int64
	eps         int64
	bootMillis  uint32 // the peer's clock at the start
	heard       int64  // publish instant of the newest own row the peer has; -1 none
	inFlight    []arrival
	d           *Detector
	firstProven int64
}

type arrival struct {
	at, sent int64 // own instants: when it arrives, when it left
	clock    uint32
	heard    int64
	toPeer   bool
}

// run steps by a millisecond and feeds the detector as a node does. It stops at
// the first alarm.
func (p *pair) run(span time.Duration) Verdict {
	p.heard, p.d = -1, New(p.eps)
	phase := p.rng.Int64N(int64(p.tick)) / 1e6 * 1e6
	micros := uint64(p.bootMillis) * 1000 // the peer's clock, scaled by 10^6 below
	part, newest := int64(0), int64(-1)
	for now := int64(0); now < int64(span); now += 1e6 {
		part += 1000 * (1_000_000 + p.ratePPM(now))
		micros += uint64(part / 1_000_000)
		part %= 1_000_000
		if now%int64(p.tick) == 0 {
			p.send(now, arrival{sent: now, toPeer: true})
		}
		if now%int64(p.tick) == phase {
			p.send(now, arrival{sent: now, clock: uint32(micros / 1000), heard: p.heard})
		}
		flying := p.inFlight[:0]
		for _, a := range p.inFlight {
			switch {
			case a.at > now:
				flying = append(flying, a)
			case a.toPeer:
				p.heard = max(p.heard, a.sent)
			case a.sent > newest: // rows are merged in order, older ones dropped
				newest = a.sent
				if a.heard >= 0 {
					p.d.Observe(Observation{Peer: 3, Inc: 7, Clock: a.clock, Sent: a.heard, Merged: now})
				}
				if v := p.d.Verdict(now, 3); v != Within {
					p.firstProven = now
					return v
				}
			}
		}
		p.inFlight = flying
	}
	return Within
}

func (p *pair) send(now int64, a arrival) {
	if p.rng.Float64() >= p.loss {
		a.at = now + int64(p.delay())
		p.inFlight = append(p.inFlight, a)
	}
}

func steady(ppm int64) func(int64) int64 { return func(int64) int64 { return ppm } }

// slowLimit is the rate of the slowest clock that leases allow for.
func slowLimit(eps int64) int64 { return 1_000_000*1_000_000/(1_000_000+eps) - 1_000_000 + 1 }

func drawPair(t *rapid.T) *pair {
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	base := time.Duration(rapid.IntRange(0, 400).Draw(t, "delay ms")) * time.Millisecond
	jitter := rapid.Int64Range(1, 3000).Draw(t, "jitter ms")
	rare := rapid.IntRange(1, 20).Draw(t, "one in this many is late")
	return &pair{
		rng: rng, tick: time.Duration(rapid.IntRange(20, 400).Draw(t, "tick ms")) * time.Millisecond,
		loss:       float64(rapid.IntRange(0, 60).Draw(t, "loss %")) / 100,
		eps:        rapid.SampledFrom([]int64{1001, 10_000, 50_000}).Draw(t, "eps"),
		bootMillis: rapid.SampledFrom([]uint32{1, 5_000_000, 1<<31 - 10_000, 1<<32 - 20_000}).Draw(t, "boot"),
		delay: func() time.Duration {
			if rng.IntN(rare) == 0 {
				return base + time.Duration(rng.Int64N(jitter))*time.Millisecond
			}
			return base
		},
	}
}

func TestNoAlarmWhateverTheDelaysWhileTheRateIsWithinEps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPair(t)
		low, high := slowLimit(p.eps), p.eps
		stretch := int64(rapid.IntRange(1, 60).Draw(t, "stretch s")) * 1e9
		rates := make([]int64, 64)
		for i := range rates { // the limits themselves are the most likely draws
			rates[i] = []int64{low, high, low + p.rng.Int64N(high-low+1)}[p.rng.IntN(3)]
		}
		p.ratePPM = func(at int64) int64 { return rates[at/stretch%64] }
		if v := p.run(50 * time.Second); v != Within {
			t.Fatalf("alarm %v at %s: %+v", v, time.Duration(p.firstProven), p.d.Bounds(p.firstProven, 3))
		}
	})
}

func TestTheBoundsContainTheTrueRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPair(t)
		rate := rapid.Int64Range(slowLimit(p.eps), p.eps).Draw(t, "rate")
		p.ratePPM = steady(rate)
		p.run(60 * time.Second)
		if b := p.d.Bounds(60e9, 3); b.LowPPM > rate || b.HighPPM < rate {
			t.Fatalf("true rate %d, bounds %+v", rate, b)
		}
	})
}

func TestDriftBeyondEpsIsProvenWithinTheStatedTime(t *testing.T) {
	far := func(rng *rand.Rand) func() time.Duration { // 282 ms round trip
		return func() time.Duration { return 141*time.Millisecond + time.Duration(rng.Int64N(5))*time.Millisecond }
	}
	near := func(rng *rand.Rand) func() time.Duration {
		return func() time.Duration { return time.Millisecond }
	}
	for _, c := range []struct {
		name  string
		ppm   int64
		loss  float64
		delay func(*rand.Rand) func() time.Duration
		want  Verdict
		limit time.Duration
	}{
		{"2 % fast at 282 ms", 20_000, 0, far, Fast, 55 * time.Second},
		{"2 % slow at 282 ms", -20_000, 0, far, Slow, 55 * time.Second},
		{"2 % fast at 282 ms and 20 % loss", 20_000, 0.2, far, Fast, 70 * time.Second},
		{"5 % slow at 282 ms", -50_000, 0, far, Slow, 14 * time.Second},
		{"1.2 % fast at 282 ms", 12_000, 0, far, Fast, 280 * time.Second},
		{"2 % slow at 2 ms", -20_000, 0, near, Slow, 25 * time.Second},
		{"stands still", -1_000_000, 0, far, Slow, 2 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			worst := time.Duration(0)
			for seed := range uint64(10) {
				rng := rand.New(rand.NewPCG(seed, 9))
				p := &pair{rng: rng, tick: 200 * time.Millisecond, loss: c.loss, eps: 10_000,
					bootMillis: 77, delay: c.delay(rng), ratePPM: steady(c.ppm)}
				if got := p.run(10 * time.Minute); got != c.want {
					t.Fatalf("seed %d: verdict %v, want %v; bounds %+v", seed, got, c.want, p.d.Bounds(600e9, 3))
				}
				worst = max(worst, time.Duration(p.firstProven))
			}
			t.Logf("proven after at most %s of 10 runs", worst)
			if worst > c.limit {
				t.Errorf("proven after %s, stated %s", worst, c.limit)
			}
		})
	}
}

func TestBoundsAreKnownFromTheSecondRowOnAndNarrow(t *testing.T) {
	d := New(10_000)
	width := func(s int64) int64 {
		b := d.Bounds(s*1e9, 0)
		if b.LowPPM == NoLow || b.HighPPM == NoHigh {
			t.Fatalf("after %d s: %+v", s, b)
		}
		return b.HighPPM - b.LowPPM
	}
	for s := range int64(600) {
		d.Observe(Observation{Peer: 0, Inc: 1, Clock: uint32(1 + s*1000), Sent: s*1e9 - 2e8, Merged: s * 1e9})
		switch { // 0.2 s between P and R of either row, and twice the slack
		case s == 2 && width(s) > 250_000, s == 60 && width(s) > 7_000, s == 599 && width(s) > 800:
			t.Errorf("after %d s the bounds are %d ppm apart", s, width(s))
		}
	}
}

func TestAClockThatMissedAPauseIsProvenByTheFirstRowAfterIt(t *testing.T) {
	d := New(10_000)
	for s := range int64(20) {
		d.Observe(Observation{Peer: 0, Inc: 1, Clock: uint32(1 + s*1000), Sent: s*1e9 - 2e8, Merged: s * 1e9})
	}
	// Five seconds of ours, none of the peer's.
	changed := d.Observe(Observation{Peer: 0, Inc: 1, Clock: 1 + 20_000, Sent: 25e9 - 2e8, Merged: 25e9})
	if !changed || d.Verdict(25e9, 0) != Slow || d.Bounds(25e9, 0).Since != 25e9 {
		t.Errorf("changed %v, bounds %+v", changed, d.Bounds(25e9, 0))
	}
}

func TestAnAlarmEndsAMinuteAfterTheLastProofAndANewLifeStartsAfresh(t *testing.T) {
	row := func(inc uint64, clock uint32, at int64) Observation {
		return Observation{Peer: 2, Inc: inc, Clock: clock, Sent: at - 1e8, Merged: at}
	}
	d := New(10_000)
	d.Observe(row(1, 1000, 1e9))
	if !d.Observe(row(1, 5000, 2e9)) || d.Verdict(2e9, 2) != Fast {
		t.Fatalf("4 s gained in one: %+v", d.Bounds(2e9, 2))
	}
	if got := d.Verdict(2e9+hold, 2); got != Fast {
		t.Errorf("a minute later: %v", got)
	}
	if got := d.Verdict(2e9+hold+1, 2); got != Within {
		t.Errorf("after it: %v", got)
	}
	if !d.Observe(row(2, 9, 3e9)) || d.Verdict(3e9, 2) != Within {
		t.Errorf("a new life inherits the alarm: %+v", d.Bounds(3e9, 2))
	}
	if b := d.Bounds(3e9, 2); b.Since != 0 || b.Verdict != Within {
		t.Errorf("got %+v", b)
	}
}

func TestAnAlarmForAMissedPauseEndsOnceItIsForgotten(t *testing.T) {
	d := New(10_000)
	clock, ended := uint32(1000), int64(0)
	for at := int64(1e9); at < int64(20*time.Minute); at += 1e9 {
		if at != 30e9 {
			clock += 1000 // and once it stands still
		}
		d.Observe(Observation{Peer: 0, Inc: 1, Clock: clock, Sent: at - 1e8, Merged: at})
		if v := d.Verdict(at, 0); v == Slow {
			ended = at
		} else if at >= 30e9 && ended == 0 {
			t.Fatalf("a second was lost at 30 s, verdict %v at %s", v, time.Duration(at))
		}
	}
	// One second is 1 % of 100 s; a minute's hold after that.
	if got := time.Duration(ended); got > 4*time.Minute {
		t.Errorf("the alarm stood until %s", got)
	}
}

func TestForeignReadingsNeitherPanicNorTouchOtherPeers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := New(rapid.Int64().Draw(t, "eps"))
		now := int64(0)
		for range rapid.IntRange(1, 200).Draw(t, "rows") {
			now += rapid.Int64Range(0, int64(20*time.Minute)).Draw(t, "step")
			d.Observe(Observation{Peer: 1, Inc: rapid.Uint64Range(1, 2).Draw(t, "inc"), Clock: rapid.Uint32().Draw(t, "clock"),
				Sent: now - rapid.Int64Range(-1, int64(time.Hour)).Draw(t, "age"), Merged: now})
			d.Observe(Observation{Peer: 0, Inc: 1, Clock: uint32(now/1e6) | 1, Sent: now, Merged: now})
			if v := d.Verdict(now, 0); v != Within {
				t.Fatalf("a good peer is %v", v)
			}
			if b := d.Bounds(now, 0); b.LowPPM > 0 || b.HighPPM < 0 {
				t.Fatalf("a good peer's bounds are %+v", b)
			}
			d.Bounds(now, 1)
		}
		if d.Bounds(now, 9).HighPPM != NoHigh || d.Verdict(now, -1) != Within {
			t.Fatal("of an unknown peer something is known")
		}
	})
}

func TestAnObservationDoesNotAllocate(t *testing.T) {
	d := New(10_000)
	at := int64(0)
	if n := testing.AllocsPerRun(1000, func() {
		at += 2e8
		d.Observe(Observation{Peer: 4, Inc: 1, Clock: uint32(at/1e6) + 1, Sent: at - 3e8, Merged: at})
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkObserve(b *testing.B) {
	d := New(10_000)
	at := int64(0)
	for b.Loop() {
		at += 2e8
		d.Observe(Observation{Peer: 4, Inc: 1, Clock: uint32(at/1e6) + 1, Sent: at - 3e8, Merged: at})
	}
}
