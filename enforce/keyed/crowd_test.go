package keyed

import (
	"encoding/binary"
	"hash/maphash"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
)

func TestACrowdOnOneKeyTakesNoMoreThanWasGranted(t *testing.T) {
	const goroutines, each, keys = 8, 20_000, 3
	table := New(100)
	var credit atomic.Uint64
	credit.Store(1<<64 - 1000) // it wraps around on the way
	begin := credit.Load()
	var taken [keys]atomic.Uint64
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(g)))
			for range each {
				k := rng.IntN(keys)
				c := Terms{Credit: credit.Add(1), Cap: 50, Late: 1 << 40, Need: 1 + rng.Uint64N(9)}
				key := uint64(k)<<60 | 7
				b, out := table.Take(key, c)
				switch {
				case out == Taken && rng.IntN(4) == 0:
					b.Return(key, c.Need)
				case out == Taken:
					taken[k].Add(c.Need)
				case rng.IntN(2) == 0:
					table.Ask(key, c)
				}
			}
		})
	}
	wg.Wait()
	granted := credit.Load() - begin
	for k := range taken {
		// The first request's tokens, at most 9 of each who found the key new at
		// once, are on top.
		if got := taken[k].Load(); got > granted+9*goroutines || got < granted*9/10 {
			t.Errorf("key %d: %d taken of %d granted", k, got, granted)
		}
	}
	if table.Evicted() != 0 {
		t.Errorf("%d evicted", table.Evicted())
	}
}

// Far more keys than buckets, all of one set, handed over all the time.
func TestACrowdOfKeysInOneSetLeavesNoKeyTwiceAndSpendsNoCreditOfTheFuture(t *testing.T) {
	const goroutines, each = 8, 20_000
	table := New(1)
	var credit atomic.Uint64
	var held sync.Map
	var place Place // of all of them
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(2, uint64(g)))
			for range each {
				key := 2 + rng.Uint64N(40)
				c := Terms{Credit: credit.Add(1), Cap: 20, Late: 1 << 40, Need: 1 + rng.Uint64N(3)}
				if old, ok := held.Load(key); ok && rng.IntN(2) == 0 {
					old.(*Bucket).Take(key, c) // perhaps another key's by now
					table.Ask(key, c)
					continue
				}
				b, out := (*Bucket)(nil), Gone
				switch rng.IntN(3) {
				case 0:
					place.Fetch()
					b = table.At(&place)
					out = b.Take(key, c)
				case 1:
					b = table.First(key)
					out = b.Take(key, c)
				}
				if out == Gone {
					b, out = table.Take(key, c)
					place.Remember(b)
				}
				held.Store(key, b)
				if out == Taken && rng.IntN(4) == 0 {
					b.Return(key, c.Need)
				}
			}
		})
	}
	wg.Wait()
	seen := map[uint64]bool{}
	s := &table.sets[0]
	for w := range ways {
		key := s[w].key.Load()
		if key == busy || seen[key] && key != 0 {
			t.Errorf("way %d has key %d, which is busy or there twice", w, key)
		}
		seen[key] = true
		if over := int64(s[w].used.Load() - credit.Load()); over > 0 {
			t.Errorf("way %d has spent %d of the future", w, over)
		}
	}
	if table.Evicted() == 0 {
		t.Error("nothing was evicted: the test tested nothing")
	}
}

func TestANewKeyBeginsWithItsFirstRequestAndSoDoesAForgottenOne(t *testing.T) {
	table := New(1) // one set
	c := Terms{Credit: 1000, Cap: 50, Need: 3}
	for range 2 {
		if _, out := table.Take(2, c); out != Taken {
			t.Fatal("the first request was refused")
		}
		if _, out := table.Take(2, Terms{Credit: c.Credit, Cap: 50, Need: 1}); out != Short {
			t.Fatal("a new key had more than its first request costs")
		}
		c.Credit += 100 // long enough to be full
		for key := range uint64(ways) {
			table.Take(10+key, c)
		}
		if table.find(2) != nil {
			t.Fatal("the fullest of the set was not the one to go")
		}
	}
}

func TestABucketThatHasGoneToAnotherKeyIsNotTouched(t *testing.T) {
	table := New(1)
	c := Terms{Credit: 1000, Cap: 50, Need: 2}
	b, _ := table.Take(2, c)
	c.Credit += 20
	for key := range uint64(ways) {
		table.Take(10+key, c)
	}
	used, asked := b.used.Load(), b.asked.Load()
	c.Credit += 20
	if out := b.Take(2, c); out != Gone {
		t.Errorf("Take of a bucket that is another key's: %v, want Gone", out)
	}
	b.Return(2, 2)
	if !b.ask(2, c) || !table.Ask(2, c) {
		t.Error("a forgotten key must ask as a new one")
	}
	if u, a := b.used.Load(), b.asked.Load(); u != used || a != asked {
		t.Errorf("the other key's words went from %d, %d to %d, %d", used, asked, u, a)
	}
}

// What a bucket may ask for beyond what it gets is what it would have got.
func TestAKeyAsksForNoMoreThanItsBucketGives(t *testing.T) {
	table := New(10)
	c := Terms{Cap: 10, Need: 1}
	asked, taken := 0, 0
	for i := range 10_000 { // one credit for each ten requests
		c.Credit = 1000 + uint64(i/10)
		b, out := table.Take(2, c)
		switch {
		case out == Taken && i%3 == 0: // let in by everybody else as well
			taken++
		case out == Taken:
			b.Return(2, c.Need)
			if table.Ask(2, c) {
				asked++
			}
		}
	}
	if got := asked + taken; got < 990 || got > 1020 {
		t.Errorf("%d admitted and %d asked for beside, of 1000 credits and a cap of 10", taken, asked)
	}
}

func TestABucketLeftAloneUntilTheCreditHasGoneAroundIsFull(t *testing.T) {
	for _, gone := range []uint64{51, 1 << 40, 1 << 62, 1 << 63, 1<<63 + 1, 1<<64 - 100} {
		table := New(1)
		c := Terms{Credit: 77, Cap: 50, Need: 1}
		table.Take(2, c)
		c.Credit += gone
		if got := table.Level(2, c); got != 50 {
			t.Errorf("%d credits later it holds %d, want the cap of 50", gone, got)
		}
		if _, out := table.Take(2, Terms{Credit: c.Credit, Cap: 50, Need: 50}); out != Taken {
			t.Errorf("%d credits later it does not give its cap", gone)
		}
	}
}

func TestACallerThatWasPausedWithItsReadingFindsNoFullBucket(t *testing.T) {
	for _, late := range []uint64{1, 50, 51, 1000} {
		table := New(1)
		c := Terms{Credit: 5000, Cap: 50, Late: 1000, Need: 1}
		table.Take(2, c) // has nothing left
		c.Credit -= late
		if _, out := table.Take(2, c); out != Short || table.Level(2, c) != -int64(late) {
			t.Errorf("%d late: %v, and %d in the bucket", late, out, table.Level(2, c))
		}
	}
}

func TestAMillionKeysStayInTheTableOfAHundredThousand(t *testing.T) {
	const keys, most = 100_000, 64*100_000 + 256
	table := New(keys)
	if got := table.Bytes(); got > most {
		t.Errorf("%d bytes, want at most %d", got, most)
	}
	seed := maphash.MakeSeed()
	held := Terms{Credit: 1 << 40, Cap: 100, Need: 1}
	name := make([]byte, 8)
	take := func(i int) {
		binary.BigEndian.PutUint64(name, uint64(i))
		table.Take(HashBytes(seed, name), held)
	}
	for i := range keys {
		take(i)
	}
	if lost := table.Evicted(); lost > keys/50 {
		t.Errorf("%d of %d keys forgotten that it is made for", lost, keys)
	}
	i := keys
	allocs := testing.AllocsPerRun(strangers, func() {
		take(i)
		i++
	})
	if allocs != 0 {
		t.Errorf("%v allocations for a new key", allocs)
	}
	if got := table.Bytes(); got > most {
		t.Errorf("%d bytes after all of them, want at most %d", got, most)
	}
	if table.Evicted() < strangers-2*keys {
		t.Errorf("%d of %d keys evicted: the test tested nothing", table.Evicted(), strangers)
	}
}

func TestOfTwoBucketsOfOneKeyTheOneThatLookupsFindStays(t *testing.T) {
	table := New(1)
	_, at := table.home(2)
	s := &table.sets[0]
	first, second := (at+3)%ways, (at+5)%ways // two have found it new at once
	s[second].key.Store(2)
	s[first].key.Store(2)
	for range 2 { // each of the two settles
		if s.settle(2, at) != &s[first] {
			t.Error("another bucket stays than the first")
		}
	}
	if s[first].key.Load() != 2 || s[second].key.Load() != 0 {
		t.Error("want the first to have the key and the second none")
	}
}
