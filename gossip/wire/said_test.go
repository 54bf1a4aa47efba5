package wire

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"subak/allocator"
	"subak/allocator/ledger"
)

func TestADecoderThatReadRowsBeforeReadsTheNextAsAFreshOneDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from, to := newSide(rosterOf(5)...), newSide(rosterOf(5)...)
		ep := from.learn(testEpoch, rosterOf(5), nil)
		to.learn(testEpoch, rosterOf(5), nil)
		few := rapid.IntRange(0, 1)
		for range rapid.IntRange(2, 20).Draw(t, "packets") {
			r := *fullRow(5)
			r.Node = ledger.NodeID(few.Draw(t, "publisher"))
			r.Seq += uint64(rapid.IntRange(0, 300).Draw(t, "seq"))
			r.Sections = []ledger.Section{{Ceiling: 1, Demand: []allocator.Rate{ledger.DemandGrain * allocator.Rate(few.Draw(t, "demand"))}}}
			switch rapid.IntRange(0, 3).Draw(t, "loans or caps") {
			case 0:
				r.Sections[0].Loans = []ledger.Loan{{To: 3, Amount: 7}}
			case 1: // its bytes are the same in the next row, and mean one higher
				r.Sections[0].Caps = []ledger.Cap{{Lender: 3, Seq: r.Seq - 1, Amount: 7}}
			}
			packet, _, err := from.enc.Row(&r, ep)
			if err != nil {
				t.Fatal(err)
			}
			got, err := to.dec.Decode(packet)
			want, wantErr := NewDecoder(testRoot, to.dir, to.vectors, to.dec.epochs).Decode(packet)
			if err != nil || wantErr != nil {
				t.Fatal(err, wantErr)
			}
			if d := cmp.Diff(want.Row, got.Row); d != "" {
				t.Fatalf("read differently (-fresh +used):\n%s", d)
			}
		}
	})
}

func TestRowsThatSayTheSameShareTheirSections(t *testing.T) {
	from, to := newSide(rosterOf(22)...), newSide(rosterOf(22)...)
	ep := from.learn(testEpoch, rosterOf(22), nil)
	to.learn(testEpoch, rosterOf(22), nil)
	read := func(r ledger.Row) *ledger.Row {
		packet, _, err := from.enc.Row(&r, ep)
		m, decErr := to.dec.Decode(packet)
		if err != nil || decErr != nil {
			t.Fatal(err, decErr)
		}
		return m.Row
	}
	quiet := *fullRow(22)
	quiet.Sections = []ledger.Section{{Ceiling: 5, Demand: []allocator.Rate{0, 0}}}
	first := read(quiet)
	quiet.Seq++
	if second := read(quiet); second.Seq != first.Seq+1 || &second.Sections[0] != &first.Sections[0] {
		t.Error("the second row does not share what the first said")
	}
	asks := quiet
	asks.Seq++
	asks.Sections = []ledger.Section{{Ceiling: 5, Demand: []allocator.Rate{ledger.DemandGrain, 0}}}
	if third := read(asks); &third.Sections[0] == &first.Sections[0] || third.Sections[0].Demand[0] != ledger.DemandGrain {
		t.Error("a row that asks for more shares what one before said")
	}
	// Who a loan is to, and which row a release is for, hangs on more than the bytes.
	lends := *fullRow(22)
	lends.Seq += 5
	a := read(lends)
	lends.Seq++
	if b := read(lends); &a.Sections[0] == &b.Sections[0] {
		t.Error("rows with loans share their sections")
	}
}

func TestARowNotNewerThanTheMergedOneIsNotRead(t *testing.T) {
	from, to := newSide(rosterOf(22)...), newSide(rosterOf(22)...)
	ep := from.learn(testEpoch, rosterOf(22), nil)
	to.learn(testEpoch, rosterOf(22), nil)
	r := fullRow(22)
	packet, _, _ := from.enc.Row(r, ep)
	packet = slices.Clone(packet)
	for _, c := range []struct {
		merged ledger.Row
		stale  bool
	}{
		{ledger.Row{Inc: r.Inc, Seq: r.Seq - 1}, false},
		{ledger.Row{Inc: r.Inc, Seq: r.Seq}, true},
		{ledger.Row{Inc: r.Inc, Seq: r.Seq + 1}, true},
		{ledger.Row{Inc: r.Inc - 1, Seq: r.Seq + 1}, false},
		{ledger.Row{Inc: r.Inc + 1, Seq: 1}, false}, // below the floor, which the ledger counts
	} {
		to.dec.SetMerged(func(ledger.NodeID) *ledger.Row { return &c.merged })
		if _, err := to.dec.Decode(packet); errors.Is(err, StaleError{}) != c.stale {
			t.Errorf("row %d of life %x, and %d of %x merged: %v", r.Seq, r.Inc, c.merged.Seq, c.merged.Inc, err)
		}
	}
}
