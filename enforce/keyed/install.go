package keyed

// install gives a key a bucket that holds what c needs; false when others were
// faster.
func (t *Table) install(key uint64, c *Terms) (Ref, bool) {
	s, at := t.home(key)
	way, old := s.victim(at, c)
	if way < 0 || !s.keys[way].CompareAndSwap(old, busy) {
		return Ref{}, false
	}
	// From here on nobody reads the bucket for the old key or the new one. Who
	// read it before finds the word changed, or the key.
	b := &s.buckets[way]
	b.used.Store(c.Credit - c.Need)
	b.asked.Store(c.Credit - c.Need)
	s.keys[way].Store(key)
	if old != 0 {
		t.evicted.Add(1)
	}
	return s.settle(key, at), true
}

// victim returns the way that a new key gets and the key that is there: a free
// one, or else the one that was idle for longest; -1 when all are being handed
// over.
func (s *set) victim(at int, c *Terms) (way int, key uint64) {
	way = -1
	var most uint64
	for i := range ways {
		w := (at + i) % ways
		k := s.keys[w].Load()
		switch idle := c.idle(s.buckets[w].used.Load()); {
		case k == 0:
			return w, 0
		case k == busy:
		case way < 0 || idle > most:
			way, key, most = w, k, idle
		}
	}
	return way, key
}

// settle drops all buckets of a key but the first, which it returns. Of two who
// have just made one each, the later to get here sees both; and both keep the
// same one, the one that lookups find.
func (s *set) settle(key uint64, at int) Ref {
	first := Ref{}
	for i := range ways {
		w := (at + i) % ways
		switch {
		case s.keys[w].Load() != key:
		case first.set == nil:
			first = Ref{s, w, key}
		default:
			s.keys[w].CompareAndSwap(key, 0)
		}
	}
	return first
}
