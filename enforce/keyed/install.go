package keyed

// install gives a key a bucket that holds what c needs; nil when others were
// faster.
func (t *Table) install(key uint64, c Terms) *Bucket {
	s, at := t.home(key)
	b, old := s.victim(at, c)
	if b == nil || !b.key.CompareAndSwap(old, busy) {
		return nil
	}
	// From here on nobody reads the bucket for the old key or the new one. Who
	// read it before finds the word changed, or the key.
	b.used.Store(c.Credit - c.Need)
	b.asked.Store(c.Credit - c.Need)
	b.key.Store(key)
	if old != 0 {
		t.evicted.Add(1)
	}
	return s.settle(key, at)
}

// victim returns the bucket that a new key gets and the key that has it: a free
// one, or else the one that was idle for longest; nil when all are being handed
// over.
func (s *set) victim(at int, c Terms) (victim *Bucket, key uint64) {
	var most uint64
	for i := range ways {
		b := &s[(at+i)%ways]
		k := b.key.Load()
		switch idle := c.idle(b.used.Load()); {
		case k == 0:
			return b, 0
		case k == busy:
		case victim == nil || idle > most:
			victim, key, most = b, k, idle
		}
	}
	return victim, key
}

// settle drops all buckets of a key but the first, which it returns. Of two who
// have just made one each, the later to get here sees both; and both keep the
// same one, the one that lookups find.
func (s *set) settle(key uint64, at int) (first *Bucket) {
	for i := range ways {
		b := &s[(at+i)%ways]
		switch {
		case b.key.Load() != key:
		case first == nil:
			first = b
		default:
			b.key.CompareAndSwap(key, 0)
		}
	}
	return first
}
