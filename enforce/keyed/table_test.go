package keyed

import (
	"testing"

	"pgregory.net/rapid"
)

// model is the slow second implementation: a list of buckets for each set, in no
// order, with tokens that are topped up. It shares with the table only which set
// a key belongs to.
type model struct {
	sets    map[*set][]entry
	table   *Table
	credit  uint64
	evicted int64
}

type entry struct {
	key     uint64
	tokens  int64 // kept at most cap
	virtual int64 // tokens if everything asked for had been admitted, where fewer
	idle    uint64
}

// grant moves every bucket on by some credit.
func (m *model) grant(credit, cap uint64) {
	m.credit += credit
	for _, es := range m.sets {
		for i := range es {
			e := &es[i]
			e.tokens = min(e.tokens+int64(credit), int64(cap))
			e.virtual = min(e.virtual+int64(credit), int64(cap))
			e.idle += credit
		}
	}
}

// recap clamps every bucket to another cap.
func (m *model) recap(cap uint64) { m.grant(0, cap) }

func (m *model) find(key uint64) *entry {
	s, _ := m.table.home(key)
	for i, e := range m.sets[s] {
		if e.key == key {
			return &m.sets[s][i]
		}
	}
	return nil
}

// take says what becomes of a request, and follows it.
func (m *model) take(key, need uint64) Outcome {
	e := m.find(key)
	if e == nil {
		e = m.begin(key, need)
	}
	if e.tokens < int64(need) {
		return Short
	}
	// A full bucket's idle credit is gone with the first request.
	e.idle = uint64(max(0, min(int64(e.idle), e.tokens)-int64(need)))
	if e.virtual < e.tokens {
		e.virtual -= int64(need)
	}
	e.tokens -= int64(need)
	return Taken
}

func (m *model) begin(key, need uint64) *entry {
	s, _ := m.table.home(key)
	fresh := entry{key: key, tokens: int64(need), virtual: int64(need), idle: need}
	if len(m.sets[s]) < ways {
		m.sets[s] = append(m.sets[s], fresh)
		return &m.sets[s][len(m.sets[s])-1]
	}
	m.evicted++
	most := uint64(0)
	for _, e := range m.sets[s] {
		most = max(most, e.idle)
	}
	// Of several that were idle for equally long, the model forgets the one that
	// the table forgot.
	for i, e := range m.sets[s] {
		if e.idle == most && m.table.find(e.key) == nil {
			m.sets[s][i] = fresh
			return &m.sets[s][i]
		}
	}
	return nil
}

func (m *model) ask(key, need uint64) bool {
	e := m.find(key)
	if e == nil {
		return true
	}
	have := min(e.virtual, e.tokens)
	if have < int64(need) {
		return false
	}
	e.virtual = have - int64(need)
	return true
}

// takeSomehow is Take, or what decisions do first where they know a place, or
// none.
func takeSomehow(table *Table, p *Place, how int, key uint64, c Terms) Outcome {
	out := Gone
	switch how {
	case 0:
		p.Fetch()
		out = table.At(p).Take(key, c)
	case 1:
		out = table.First(key).Take(key, c)
	}
	if out == Gone {
		var b *Bucket
		b, out = table.Take(key, c)
		p.Remember(b)
	}
	return out
}

func TestTableDoesWhatASlowModelDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := New(rapid.SampledFrom([]int{1, 4, 40}).Draw(t, "keys"))
		m := &model{sets: map[*set][]entry{}, table: table}
		m.credit = rapid.SampledFrom([]uint64{0, 1 << 63, 1<<64 - 50}).Draw(t, "credit") // it wraps around
		cap := uint64(60)
		keys := make([]uint64, 24) // as many as three sets hold
		for i := range keys {
			keys[i] = rapid.Uint64Range(2, 1<<64-1).Draw(t, "key")
		}
		taken := map[uint64][]uint64{} // what may be returned
		other := New(40)
		places := make([]Place, 4) // whatever was found there last, here or elsewhere
		for range 200 {
			key := rapid.SampledFrom(keys).Draw(t, "which")
			c := Terms{Credit: m.credit, Cap: cap, Need: rapid.Uint64Range(1, 20).Draw(t, "need")}
			switch rapid.SampledFrom([]string{"take", "take", "take", "grant", "recap", "return", "ask", "level"}).Draw(t, "step") {
			case "grant":
				m.grant(rapid.SampledFrom([]uint64{1, 3, 10, 100}).Draw(t, "granted"), cap)
			case "recap":
				// Only ever less: a word is clamped when it is next read, so a cap
				// that was lower in between went by unnoticed.
				cap = rapid.Uint64Range(20, cap).Draw(t, "cap")
				m.recap(cap)
			case "take":
				known := m.find(key) != nil
				p := &places[rapid.IntRange(0, len(places)-1).Draw(t, "place")]
				if rapid.IntRange(0, 9).Draw(t, "elsewhere") == 0 {
					b, _ := other.Take(key, c)
					p.Remember(b)
				}
				got := takeSomehow(table, p, rapid.IntRange(0, 2).Draw(t, "how"), key, c)
				if want := m.take(key, c.Need); got != want {
					t.Fatalf("take %+v of %x: %v, want %v", c, key, got, want)
				}
				if !known {
					delete(taken, key)
				}
				if got == Taken {
					taken[key] = append(taken[key], c.Need)
				}
			case "return":
				if list := taken[key]; len(list) > 0 {
					need := list[len(list)-1]
					taken[key] = list[:len(list)-1]
					table.Return(key, need)
					if e := m.find(key); e != nil {
						if e.virtual < e.tokens {
							e.virtual += int64(need)
						}
						e.tokens, e.idle = min(e.tokens+int64(need), int64(cap)), e.idle+need
					}
				}
			case "ask":
				if got, want := table.Ask(key, c), m.ask(key, c.Need); got != want {
					t.Fatalf("ask %+v of %x: %v, want %v", c, key, got, want)
				}
			case "level":
				want := int64(c.Need)
				if e := m.find(key); e != nil {
					want = e.tokens
				}
				if got := table.Level(key, c); got != want {
					t.Fatalf("level %+v of %x: %d, want %d", c, key, got, want)
				}
			}
			if table.Evicted() != m.evicted {
				t.Fatalf("%d evicted, want %d", table.Evicted(), m.evicted)
			}
		}
	})
}

func TestAPlaceIsOfOneTableOnly(t *testing.T) {
	tables := []*Table{New(1), New(4), New(1000)}
	c := Terms{Credit: 100, Cap: 10, Need: 1}
	for i, of := range tables {
		for key := range uint64(50) {
			b, _ := of.Take(key*1e17+2, c)
			var p Place
			if of.At(&p) != nil {
				t.Fatal("the zero Place is the place of a bucket")
			}
			p.Remember(b)
			for j, in := range tables {
				if got := in.At(&p); (got == b) != (i == j) || got != nil && got != b {
					t.Fatalf("a bucket of table %d looked for in table %d: %p, and it is %p", i, j, got, b)
				}
			}
			p.Remember(nil)
			p.Fetch() // of nothing
			if of.At(&p) != nil {
				t.Fatal("a place that was told nothing has a bucket")
			}
		}
	}
	for _, edge := range []*Bucket{&tables[1].sets[0][0], &tables[1].sets[len(tables[1].sets)-1][ways-1]} {
		var p Place
		if p.Remember(edge); tables[1].At(&p) != edge {
			t.Error("the first or the last bucket is not found")
		}
	}
}
