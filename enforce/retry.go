package enforce

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// retryTable remembers, for a bounded number of refused requests, until when
// each was told to stay away. One word per entry: the high half is a tag of the
// key, the low half the instant in grains, modulo 2^32 (497 days; a mark left
// alone for exactly that long seems alive again for its few seconds). A pair of neighbouring
// words is one set; in a full set the mark that ends sooner goes. A lost mark
// makes a retry count as new, a clash of tags (1 in 2^32) makes a new request
// count as a retry; neither touches admission.
//
// The words are made by the first mark: most budgets of many refuse nothing, and
// the table is most of what a limiter weighs.
type retryTable struct {
	size  int // a power of two
	words atomic.Pointer[[]atomic.Uint64]
}

const (
	retryGrain = int64(10 * time.Millisecond)
	retryMax   = uint32(int64(time.Hour) / retryGrain)
)

func newRetryTable(n int) *retryTable {
	return &retryTable{size: 1 << bits.Len(uint(max(n, 2)-1))}
}

// made returns the words, which it makes if need be; of several callers at once
// one wins.
func (t *retryTable) made() []atomic.Uint64 {
	if words := t.words.Load(); words != nil {
		return *words
	}
	words := make([]atomic.Uint64, t.size)
	if t.words.CompareAndSwap(nil, &words) {
		return words
	}
	return *t.words.Load()
}

// mix makes one key of client and class (the finaliser of splitmix64).
func mix(client uint64, class int) uint64 {
	x := client + uint64(class+1)*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func setOf(words []atomic.Uint64, key uint64) (a, b *atomic.Uint64) {
	i := key & uint64(len(words)-1)
	return &words[i], &words[i^1]
}

// left returns the grains until a word's mark ends; 0 when it is over or empty.
func left(now int64, w uint64) uint32 {
	d := uint32(w) - uint32(now/retryGrain)
	if w == 0 || d > retryMax {
		return 0
	}
	return d
}

func (t *retryTable) find(now int64, key uint64) *atomic.Uint64 {
	words := t.words.Load()
	if words == nil {
		return nil // nothing was ever marked
	}
	a, b := setOf(*words, key)
	if w := a.Load(); w>>32 == key>>32 && left(now, w) > 0 {
		return a
	}
	if w := b.Load(); w>>32 == key>>32 && left(now, w) > 0 {
		return b
	}
	return nil
}

// marked reports whether the key was refused and its time is not up.
func (t *retryTable) marked(now int64, key uint64) bool { return t.find(now, key) != nil }

// settle is marked for an admitted request: the mark is used up.
func (t *retryTable) settle(now int64, key uint64) bool {
	w := t.find(now, key)
	if w != nil {
		w.Store(0)
	}
	return w != nil
}

// mark remembers a refusal until the end of the Retry-After that the client is
// told, which is in whole seconds.
func (t *retryTable) mark(now int64, key uint64, after time.Duration) {
	secs := max(1, (after+time.Second-1)/time.Second)
	g := min(uint32(int64(secs*time.Second)/retryGrain), retryMax)
	w := key>>32<<32 | uint64(uint32(now/retryGrain)+g)
	a, b := setOf(t.made(), key)
	if left(now, a.Load()) > left(now, b.Load()) {
		a = b
	}
	a.Store(w)
}
