package wire

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"subak/allocator"
	"subak/allocator/ledger"
)

// manySections is a row of n nodes with m budgets of two classes.
func manySections(n, m int) *ledger.Row {
	r := fullRow(n)
	r.Sections = nil
	for i := range m {
		r.Sections = append(r.Sections, ledger.Section{
			Ceiling: allocator.Rate(45_000_000 + i*1_000_000),
			Demand:  []allocator.Rate{allocator.Rate(20_000_000 + i*10_000), allocator.Rate(7_000_000 + i*3000)},
			Loans:   []ledger.Loan{{To: 3, Amount: 5_123_456}},
		})
	}
	return r
}

// next is the row after r, with each section changed with the given probability.
func next(r *ledger.Row, rng *rand.Rand, share float64) *ledger.Row {
	c := *r
	c.Seq++
	c.Sections = append([]ledger.Section(nil), r.Sections...)
	for i := range c.Sections {
		if rng.Float64() >= share {
			continue
		}
		s := &c.Sections[i]
		s.Demand = []allocator.Rate{allocator.Rate(rng.IntN(60_000)) * 1000, allocator.Rate(rng.IntN(60_000)) * 1000}
		s.Loans = nil
		for to := range ledger.NodeID(len(r.Extra)) {
			if to != r.Node && rng.IntN(len(r.Extra)) == 0 {
				s.Loans = append(s.Loans, ledger.Loan{To: to, Amount: 1 + allocator.Rate(rng.IntN(20_000_000))})
			}
		}
		if rng.IntN(3) == 0 {
			s.Caps = []ledger.Cap{{Lender: 5, Seq: c.Seq - uint64(rng.IntN(3)), Amount: allocator.Rate(rng.IntN(1000))}}
		} else {
			s.Caps = nil
		}
	}
	return &c
}

// merger keeps the newest row of the publisher, as a ledger does.
type merger struct {
	*side
	newest *ledger.Row
}

func newMerger(s *side) *merger {
	m := &merger{side: s}
	s.dec.SetMerged(func(ledger.NodeID) *ledger.Row { return m.newest })
	return m
}

func (m *merger) take(packet []byte) error {
	got, err := m.dec.Decode(packet)
	if err != nil || got.Row == nil {
		return err
	}
	if r := got.Row; m.newest == nil || r.Inc > m.newest.Inc || r.Inc == m.newest.Inc && r.Seq > m.newest.Seq {
		m.newest = r
	}
	return nil
}

// Whatever is lost, repeated, late or relayed, a row that a receiver rebuilds is
// the one that was published under its number, and one question brings a receiver
// that lacks a base up to date.
func TestRebuiltRowsAreThePublishedOnes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const n = 6
		m := rapid.IntRange(1, 200).Draw(t, "budgets")
		share := rapid.SampledFrom([]float64{0, 0.01, 0.1, 0.5}).Draw(t, "changed")
		loss := rapid.Float64Range(0, 0.7).Draw(t, "loss")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		from, to := newSide(rosterOf(n)...), newSide("pop-003", "pop-001", "pop-005", "pop-000")
		ep := from.learn(testEpoch, rosterOf(n), nil)
		to.learn(testEpoch, rosterOf(n), nil)
		receiver := newMerger(to)
		published := map[[2]uint64]*ledger.Row{}
		r := manySections(n, m)
		var sent [][]byte
		lost, stale := 0, 0
		check := func() {
			if receiver.newest != nil {
				mustEqualRows(t, from, published[[2]uint64{receiver.newest.Inc, receiver.newest.Seq}], to, receiver.newest)
			}
		}
		give := func(packet []byte) {
			err := receiver.take(packet)
			switch reason := ReasonOf(err); reason {
			case ReasonNone, ReasonStale, ReasonUnknownVector:
				stale += int(reason)
			case ReasonLostBase:
				lost++
				if rng.Float64() < loss {
					break
				}
				have := uint64(0)
				if receiver.newest != nil {
					have = receiver.newest.Seq
				}
				q, err := from.dec.Decode(to.enc.RowWanted(r.Inc, have))
				if err != nil || q.Kind != KindRowWanted {
					t.Fatalf("question: %+v %v", q, err)
				}
				answer, err := from.enc.Repair(ep, q.Inc, q.Have)
				if err != nil {
					t.Fatalf("repair: %v", err)
				}
				sent = append(sent, bytes.Clone(answer))
			default:
				t.Fatalf("decode: %v", err)
			}
			check()
		}
		for range rapid.IntRange(1, 40).Draw(t, "rows") {
			r = next(r, rng, share)
			if rng.IntN(20) == 0 { // the publisher restarts
				r.Inc++
			}
			published[[2]uint64{r.Inc, r.Seq}] = r
			packet, extra, err := from.enc.Row(r, ep)
			if packet == nil {
				t.Fatalf("encode: %v", err)
			}
			sent = append(append(sent, bytes.Clone(packet)), extra...)
			for rng.IntN(3) > 0 { // anything ever sent may arrive, any number of times
				if i := len(sent) - 1 - min(rng.IntN(6)*rng.IntN(4), len(sent)-1); rng.Float64() >= loss {
					give(sent[i])
				}
			}
		}
		have := uint64(0)
		if receiver.newest != nil && receiver.newest.Inc == r.Inc {
			have = receiver.newest.Seq
		}
		if last, err := from.enc.Repair(ep, r.Inc, have); err != nil {
			t.Fatal(err)
		} else if last != nil {
			if err := receiver.take(last); ReasonOf(err) == ReasonUnknownVector {
				answer(t, from, to, to.enc.VectorWanted(digestOf(from.enc.incs)))
				_ = receiver.take(bytes.Clone(last))
			}
		}
		mustEqualRows(t, from, r, to, receiver.newest)
	})
}

func TestARowThatFitsIsNeverADelta(t *testing.T) {
	from, _, ep := pairOf(t, 22)
	r, rng := manySections(22, 20), rand.New(rand.NewPCG(1, 1))
	for range 2 * historyMax {
		packet, _, err := from.enc.Row(r, ep)
		if err != nil {
			t.Fatal(err)
		}
		if h, _ := Peek(packet); h.Kind != KindRow {
			t.Fatalf("%v of %d bytes", h.Kind, len(packet))
		}
		r = next(r, rng, 0.3)
	}
}

func TestADeltaReachesBackAsFarAsItsBytesAllow(t *testing.T) {
	from, to, ep := pairOf(t, 22)
	r, rng := manySections(22, 1000), rand.New(rand.NewPCG(1, 1))
	whole, _, err := from.enc.Row(r, ep)
	if ReasonOf(err) != ReasonTooLarge || len(whole) < 10_000 {
		t.Fatalf("first row: %d bytes, %v", len(whole), err)
	}
	receiver := newMerger(to)
	answer(t, from, to, to.enc.VectorWanted(digestOf(from.enc.incs)))
	if err := receiver.take(bytes.Clone(whole)); err != nil {
		t.Fatal(err)
	}
	first := r.Seq
	for range 10 { // quiet rows: a receiver that missed nine still reads the tenth
		r = next(r, rng, 0.002)
		packet, extra, err := from.enc.Row(r, ep)
		if err != nil || len(packet) > MaxDelta {
			t.Fatalf("%d bytes, %d extra, %v", len(packet), len(extra), err)
		}
	}
	packet, _, _ := from.enc.Row(r, ep)
	if err := receiver.take(bytes.Clone(packet)); err != nil {
		t.Fatalf("row %d: %v", r.Seq-first, err)
	}
	mustEqualRows(t, from, r, to, receiver.newest)
	r = next(r, rng, 0.9)
	burst, _, err := from.enc.Row(r, ep)
	if ReasonOf(err) != ReasonTooLarge {
		t.Fatalf("a burst of %d bytes: %v", len(burst), err)
	}
	if h, _ := Peek(burst); h.Kind != KindDelta {
		t.Errorf("a burst goes as %v", h.Kind)
	}
	if err := receiver.take(bytes.Clone(burst)); err != nil {
		t.Error(err)
	}
	mustEqualRows(t, from, r, to, receiver.newest)
}

func TestADeltaSaysAgainOnlyWhatItsLimitHasRoomFor(t *testing.T) {
	from, _, ep := pairOf(t, 22)
	r, rng := manySections(22, 1000), rand.New(rand.NewPCG(1, 1))
	sizes := map[int]int{}
	for i, limit := range []int{0, 0, 0, 0, 0, 400, 0, 9999} {
		from.enc.SetLimit(limit)
		packet, _, err := from.enc.Row(r, ep)
		if err != nil && i > 0 {
			t.Fatal(err)
		}
		sizes[i] = len(packet)
		r = next(r, rng, 0.005)
	}
	if sizes[4] > 300 || sizes[5] <= sizes[4] || sizes[5] > 400 || sizes[6] > 300 || sizes[7] <= sizes[5] || sizes[7] > MaxDelta {
		t.Errorf("sizes %v", sizes)
	}
}

func TestADeltaAcrossEpochsOrLivesIsLost(t *testing.T) {
	from, to, ep := pairOf(t, 22)
	later := ledger.EpochID{Version: 8, Hash: 1}
	ep2 := from.learn(later, rosterOf(22), nil)
	to.learn(later, rosterOf(22), nil)
	receiver := newMerger(to)
	r, rng := manySections(22, 1000), rand.New(rand.NewPCG(1, 1))
	whole, extra, _ := from.enc.Row(r, ep)
	for _, p := range append(extra, bytes.Clone(whole)) {
		if err := receiver.take(bytes.Clone(p)); err != nil {
			t.Fatal(err)
		}
	}
	r = next(r, rng, 0.01)
	r.Epoch = later
	if p, _, _ := from.enc.Row(r, ep2); p == nil {
		t.Fatal("no row")
	} else if h, _ := Peek(p); h.Kind != KindRow {
		t.Errorf("the first row of an epoch goes as %v", h.Kind)
	}
	r = next(r, rng, 0.01)
	packet, _, _ := from.enc.Row(r, ep2) // since the row that was lost
	lost, ok := errors.AsType[*LostBaseError](receiver.take(bytes.Clone(packet)))
	if !ok || lost.Have != 0 {
		t.Errorf("%+v", lost)
	}
}

func TestAnUnchangedSectionIsSharedWithTheRowBefore(t *testing.T) {
	from, to, ep := pairOf(t, 22)
	receiver := newMerger(to)
	r, rng := manySections(22, 1000), rand.New(rand.NewPCG(1, 1))
	whole, extra, _ := from.enc.Row(r, ep)
	for _, p := range append(extra, bytes.Clone(whole)) {
		_ = receiver.take(bytes.Clone(p))
	}
	before := receiver.newest
	r = next(r, rng, 0.05)
	packet, _, _ := from.enc.Row(r, ep)
	packet = bytes.Clone(packet)
	changed := 0
	for i := range r.Sections {
		if from.enc.history.changed[i].since(r.Seq-1) != 0 {
			changed++
		}
	}
	allocs := testing.AllocsPerRun(20, func() {
		receiver.newest = before
		if err := receiver.take(packet); err != nil {
			t.Fatal(err)
		}
	})
	if limit := float64(3*changed + 8); allocs > limit {
		t.Errorf("%v allocations for %d changed sections, want at most %v", allocs, changed, limit)
	}
}

func TestACopyCarriesOneEntry(t *testing.T) {
	from, to, ep := pairOf(t, 22)
	r := fullRow(22)
	if err := from.enc.StartCopies(r, ep); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pop-007", "pop-021"} {
		id, _ := from.dir.Lookup(name)
		m, err := to.dec.Decode(from.enc.Copy(id))
		if err != nil {
			t.Fatal(err)
		}
		there, _ := to.dir.Lookup(name)
		if m.Kind != KindCopy || m.Row.Heard != nil || m.Row.Only == nil || m.Row.Only.Of != there || m.Row.Only.Heard != r.Heard[id] || m.Row.Clock != r.Clock {
			t.Errorf("%s: %v %+v", name, m.Kind, m.Row.Only)
		}
		want := *r
		want.Heard = nil
		got := *m.Row
		mustEqualRows(t, from, &want, to, &got)
	}
	if packet := from.enc.Copy(from.dir.Intern("stranger")); packet != nil {
		t.Error("a copy for a node of no roster")
	}
}

func TestACopyOfManyBudgetsIsADeltaToo(t *testing.T) {
	from, to, ep := pairOf(t, 22)
	receiver := newMerger(to)
	r, rng := manySections(22, 1000), rand.New(rand.NewPCG(1, 1))
	for i := range 3 {
		if err := from.enc.StartCopies(r, ep); err != nil {
			t.Fatal(err)
		}
		packet := bytes.Clone(from.enc.Copy(7))
		if i > 0 && len(packet) > MaxDelta {
			t.Errorf("copy %d has %d bytes", i, len(packet))
		}
		if err := receiver.take(packet); err != nil {
			t.Fatal(err)
		}
		want := *r
		want.Heard = nil
		mustEqualRows(t, from, &want, to, receiver.newest)
		r = next(r, rng, 0.02)
	}
}

func TestACopyHasTheSizeOfARowOfTwo(t *testing.T) {
	for _, n := range []int{22, 330, 1000} {
		s := newSide(rosterOf(n)...)
		ep := s.learn(testEpoch, rosterOf(n), nil)
		if err := s.enc.StartCopies(fullRow(n), ep); err != nil {
			t.Fatal(err)
		}
		if size := len(s.enc.Copy(ledger.NodeID(n - 1))); size > 115 {
			t.Errorf("N=%d: %d bytes, want at most 115", n, size)
		}
	}
}

// deltaRow is the fields of a delta by node 1 of three, whose base has two
// sections of two classes.
func deltaRow(changes []byte) []any {
	return append(append(goodRow()[:atSections:atSections], changes), uint64(4))
}

func TestHostileDeltasAreRefusedForTheRightReason(t *testing.T) {
	kind := func(k Kind, fields []any) []any { fields[atKind] = uint64(k); return fields }
	delta := func(numbers ...uint64) []any { return kind(KindDelta, deltaRow(vars(numbers...))) }
	base := func(b any) []any { d := delta(1, 5); d[len(d)-1] = b; return d }
	inc := func(i uint64) []any { d := delta(1, 5); d[atInc] = i; return d }
	seq := func(s uint64) []any { d := delta(1, 5); d[atSeq] = s; return d }
	replica := func(fields ...any) []any {
		return kind(KindCopy, append(append(goodRow()[:atSections:atSections], vars(2<<2, 5, 1, 1)), fields...))
	}
	for _, c := range []struct {
		name   string
		fields []any
		want   Reason
	}{
		{"good", delta(1, 5, 2, 6, 7), ReasonNone},
		{"nothing changed", delta(), ReasonNone},
		{"no mask", delta(0, 5), ReasonRange},
		{"section outside the base", delta(2*maskSize+1, 5), ReasonRange},
		{"section after the last", delta(1, 5, 1, 5, 1, 5), ReasonRange},
		{"section number that wraps", delta(1<<63+1, 5), ReasonRange},
		{"cut off", delta(2, 6), ReasonTruncated},
		{"more loans than bytes", delta(4, 3, 0, 1), ReasonTruncated},
		{"more loans than names", delta(4, 5, 0, 1, 2, 1, 0, 1), ReasonRange},
		{"no loans any more", delta(4, 0), ReasonNone},
		{"loans to itself", delta(4, 1, 1, 9), ReasonOrder},
		{"amount over the limit", delta(4, 1, 0, MaxValue>>8*4+5), ReasonRange},
		{"amount of nothing", delta(4, 1, 0, 3), ReasonRange},
		{"base 0", base(uint64(0)), ReasonRange},
		{"base before the first row", base(uint64(1000)), ReasonRange},
		{"base of nil", base(nil), ReasonType},
		{"base not merged", base(uint64(1)), ReasonLostBase},
		{"of an older life", inc(98), ReasonStale},
		{"of a newer life", inc(100), ReasonLostBase},
		{"older than what is merged", seq(996), ReasonStale},
		{"no base field", kind(KindDelta, goodRow()[:atSections+1]), ReasonShort},
		{"good copy", replica(uint64(0), uint64(0), uint64(5), uint64(2)), ReasonNone},
		{"copy for nobody", replica(uint64(0), uint64(3), uint64(5), uint64(2)), ReasonMismatch},
		{"copy that heard no life", replica(uint64(0), uint64(0), uint64(0), uint64(2)), ReasonRange},
		{"copy that heard a seq over the limit", replica(uint64(0), uint64(0), uint64(1), 2+zigzag(1000, MaxValue+1)), ReasonRange},
		{"copy without heard", replica(uint64(0), uint64(0), uint64(1)), ReasonShort},
	} {
		s := threeNodes()
		m := newMerger(s)
		m.newest = &ledger.Row{Node: 1, Inc: 99, Seq: 996, Epoch: testEpoch, Sections: []ledger.Section{
			{Demand: make([]allocator.Rate, 2)}, {Demand: make([]allocator.Rate, 2)},
		}}
		got, err := s.dec.Decode(pack(t, c.fields...))
		if ReasonOf(err) != c.want {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		if (got.Row != nil) != (c.want == ReasonNone) {
			t.Errorf("%s: row %+v", c.name, got.Row)
		}
	}
}

func TestEveryAmountSurvivesADelta(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from, to := newSide(rosterOf(3)...), newSide(rosterOf(3)...)
		ep := from.learn(testEpoch, rosterOf(3), nil)
		to.learn(testEpoch, rosterOf(3), nil)
		amount := drawRate().Draw(t, "amount") >> rapid.IntRange(0, 61).Draw(t, "right")
		zeros := rapid.IntRange(0, 40).Draw(t, "zeros")
		amount = max(1, amount>>zeros<<zeros)
		if rapid.Bool().Draw(t, "limit") {
			amount = MaxValue >> rapid.IntRange(0, 30).Draw(t, "below the limit")
		}
		r := manySections(3, 1)
		r.Sections[0].Loans = []ledger.Loan{{To: 1, Amount: 1}}
		receiver := newMerger(to)
		whole, err := from.enc.Whole(r, ep)
		if err != nil || receiver.take(bytes.Clone(whole)) != nil {
			t.Fatalf("%v", err)
		}
		from.enc.history.note(r)
		c := *r
		c.Seq++
		c.Sections = []ledger.Section{{Ceiling: 1, Demand: r.Sections[0].Demand, Loans: []ledger.Loan{{To: 1, Amount: amount}}, Caps: []ledger.Cap{{Lender: 2, Seq: 1, Amount: amount - 1}}}}
		from.enc.history.note(&c)
		delta, err := from.enc.Repair(ep, r.Inc, r.Seq)
		if err != nil {
			t.Fatal(err)
		}
		if err := receiver.take(bytes.Clone(delta)); err != nil {
			t.Fatalf("amount %d: %v", amount, err)
		}
		mustEqualRows(t, from, &c, to, receiver.newest)
	})
}

func TestADeltaWithoutARowToRestOnIsLost(t *testing.T) {
	s := threeNodes()
	fields := deltaRow(vars(1, 5))
	fields[atKind] = uint64(KindDelta)
	_, err := s.dec.Decode(pack(t, fields...))
	if lost, ok := errors.AsType[*LostBaseError](err); !ok || lost.Node != 1 || lost.Have != 0 || lost.Base != 996 || lost.Seq != 1000 {
		t.Errorf("%+v", err)
	}
}

func TestTheFormatOfDeltasAndCopiesIsStable(t *testing.T) {
	s := threeNodes()
	ep := s.known[testEpoch]
	m, err := s.dec.Decode(pack(t, goodRow()...))
	if err != nil {
		t.Fatal(err)
	}
	r := *m.Row
	r.Extra, r.Clock = []ledger.NodeID{0, 1, 2}, 7
	if _, _, err := s.enc.Row(&r, ep); err != nil {
		t.Fatal(err)
	}
	c := r
	c.Seq++
	c.Sections = []ledger.Section{{Ceiling: 600, Demand: []allocator.Rate{7000, 9000}, Loans: r.Sections[0].Loans}}
	if err := s.enc.StartCopies(&c, ep); err != nil {
		t.Fatal(err)
	}
	replica := bytes.Clone(s.enc.Copy(0))
	repair, err := s.enc.Repair(ep, 99, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		name string
		got  []byte
		want string
	}{
		{"copy", replica, "dc00131008ce3413e8fa07cfa1b2c3d4e5f607180163cd03e901cd0bb805c4080ad804070901003c00000b04c402000391a8737472616e67657207"},
		{"delta", bytes.Clone(repair), "dc00121007ce3413e8fa07cfa1b2c3d4e5f607180163cd03e901cd0bb805c4060bd80407090001cf2a9c502bc5d292b9c40404000108c402000391a8737472616e67657207"},
		{"row wanted", s.enc.RowWanted(99, 1000), "951009ce3413e8fa63cd03e8"},
	} {
		if got := hex.EncodeToString(x.got); got != x.want {
			t.Errorf("%s:\n got %s\nwant %s", x.name, got, x.want)
		}
	}
}

func TestSpoiledDeltasNeverPanicNorGrowARow(t *testing.T) {
	from, to, ep := pairOf(t, 22)
	receiver := newMerger(to)
	r, rng := manySections(22, 1000), rand.New(rand.NewPCG(1, 1))
	whole, extra, _ := from.enc.Row(r, ep)
	for _, p := range append(extra, bytes.Clone(whole)) {
		if err := receiver.take(bytes.Clone(p)); err != nil {
			t.Fatal(err)
		}
	}
	before := receiver.newest
	packet, _, err := from.enc.Row(next(r, rng, 0.05), ep)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		p := bytes.Clone(packet)
		for range rapid.IntRange(1, 4).Draw(t, "bytes") {
			p[rapid.IntRange(0, len(p)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
		}
		p = p[:rapid.IntRange(len(p)-3, len(p)).Draw(t, "length")]
		receiver.newest = before
		if m, err := to.dec.Decode(p); err == nil && m.Row != nil && len(m.Row.Sections) != len(before.Sections) {
			t.Fatalf("a row of %d sections", len(m.Row.Sections))
		}
	})
}

// BenchmarkDelta is 1,000 budgets of two classes among 22 nodes, 5 % of which
// change with each row.
func BenchmarkDelta(b *testing.B) {
	for _, share := range []float64{0.01, 0.05} {
		from, to := newSide(rosterOf(22)...), newSide(rosterOf(22)...)
		ep := from.learn(testEpoch, rosterOf(22), nil)
		to.learn(testEpoch, rosterOf(22), nil)
		rng := rand.New(rand.NewPCG(1, 1))
		rows := []*ledger.Row{manySections(22, 1000)}
		for range 200 {
			rows = append(rows, next(rows[len(rows)-1], rng, share))
		}
		b.Run(fmt.Sprintf("encode%.0f%%", share*100), func(b *testing.B) {
			b.ReportAllocs()
			bytes := 0
			for i := range b.N {
				r := rows[i%len(rows)]
				packet, _, _ := from.enc.Row(r, ep)
				if i%len(rows) > 0 {
					bytes = max(bytes, len(packet))
				}
			}
			b.ReportMetric(float64(bytes), "B-max")
		})
		b.Run(fmt.Sprintf("decode%.0f%%", share*100), func(b *testing.B) {
			receiver := newMerger(to)
			whole, err := from.enc.Whole(rows[0], ep)
			if err != nil || receiver.take(whole) != nil {
				b.Fatal("no row to rest on")
			}
			from.enc.history.restart(rows[0])
			packet, _, _ := from.enc.Row(rows[1], ep)
			base := receiver.newest
			b.ReportAllocs()
			for b.Loop() {
				receiver.newest = base
				if err := receiver.take(packet); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
