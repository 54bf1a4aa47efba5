package gossip

import (
	"container/list"
	"sync"
	"time"
)

const (
	// maxSeen bounds the duplicate table. A forgotten key costs a repeated
	// delivery, nothing else.
	maxSeen = 4096
	// seenFor is how long an order that is never surpassed rules out lower
	// ones. Publishers tick many times in it.
	seenFor = 5 * time.Second
)

type verdict uint8

const (
	verdictFresh     verdict = iota // newer than all seen
	verdictRevived                  // not newer, but the newest is old: deliver, do not relay further
	verdictDuplicate                // seen, or older than seen
	verdictRefused                  // the inbox had no room: not recorded
)

// seenTable remembers the newest order per key.
type seenTable struct {
	mu   sync.Mutex
	max  int
	keys map[string]*list.Element // of *seenEntry
	age  list.List                // least recently advanced first
}

type seenEntry struct {
	key   string
	order [2]uint64
	at    time.Time
}

func newSeenTable(max int) *seenTable {
	return &seenTable{max: max, keys: make(map[string]*list.Element)}
}

// admit judges a packet and, unless it is a duplicate, calls deliver, which must
// not block. Only what was delivered is recorded: a packet lost to a full inbox
// may come again by another way.
func (t *seenTable) admit(key string, order [2]uint64, now time.Time, deliver func() bool) verdict {
	t.mu.Lock()
	defer t.mu.Unlock()
	v := verdictFresh
	if el, ok := t.keys[key]; ok {
		e := el.Value.(*seenEntry)
		if !greater(order, e.order) {
			if now.Sub(e.at) < seenFor {
				return verdictDuplicate
			}
			v = verdictRevived
		}
	}
	if !deliver() {
		return verdictRefused
	}
	t.recordLocked(key, order, now)
	return v
}

// record notes a packet of our own, so that its echoes are duplicates.
func (t *seenTable) record(key string, order [2]uint64, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.recordLocked(key, order, now)
}

func (t *seenTable) recordLocked(key string, order [2]uint64, now time.Time) {
	if el, ok := t.keys[key]; ok {
		e := el.Value.(*seenEntry)
		e.order, e.at = order, now
		t.age.MoveToBack(el)
		return
	}
	if len(t.keys) >= t.max {
		oldest := t.age.Front()
		delete(t.keys, oldest.Value.(*seenEntry).key)
		t.age.Remove(oldest)
	}
	t.keys[key] = t.age.PushBack(&seenEntry{key: key, order: order, at: now})
}

func (t *seenTable) len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.keys)
}

// greater orders (incarnation, sequence).
func greater(a, b [2]uint64) bool {
	return a[0] > b[0] || a[0] == b[0] && a[1] > b[1]
}
