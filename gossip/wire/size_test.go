package wire

import (
	"fmt"
	"testing"

	"subak/allocator/ledger"
)

// settled returns an encoder whose vector is no longer fresh, so that rows refer
// to it by digest.
func settled(t testing.TB, n int) (*Encoder, *ledger.Row, *ledger.Epoch) {
	t.Helper()
	s := newSide(rosterOf(n)...)
	ep := s.learn(testEpoch, rosterOf(n), nil)
	r := fullRow(n)
	for range freshRows {
		if _, _, err := s.enc.Row(r, ep); err != nil {
			t.Fatal(err)
		}
	}
	return s.enc, r, ep
}

func bare(r *ledger.Row) *ledger.Row {
	b := *r
	b.Heard, b.Extra = nil, nil
	b.Sections = []ledger.Section{b.Sections[0]}
	b.Sections[0].Loans = nil
	return &b
}

func size(t testing.TB, e *Encoder, r *ledger.Row, ep *ledger.Epoch) int {
	t.Helper()
	packet, _, err := e.Row(r, ep)
	if err != nil {
		t.Fatal(err)
	}
	return len(packet)
}

func TestRowOf22NodesStaysWithinItsByteTargets(t *testing.T) {
	e, r, ep := settled(t, 22)
	if got := size(t, e, r, ep); got > 121 {
		t.Errorf("full row with two loans: %d bytes, want at most 121 (target 180)", got)
	}
	if got := size(t, e, bare(r), ep); got > 60 {
		t.Errorf("row without heard and loans: %d bytes, want at most 60", got)
	}
}

func TestLargerRostersStayWithinADatagram(t *testing.T) {
	for n, limit := range map[int]int{100: 200, 330: 430, 1000: MaxPacket} {
		e, r, ep := settled(t, n)
		if got := size(t, e, r, ep); got > limit {
			t.Errorf("N=%d: %d bytes, want at most %d", n, got, limit)
		}
	}
}

func TestEncodingARowDoesNotAllocate(t *testing.T) {
	for _, n := range []int{22, 100, 330} {
		e, r, ep := settled(t, n)
		allocs := testing.AllocsPerRun(200, func() { // many repeats of the inline vector included
			r.Seq++
			if _, _, err := e.Row(r, ep); err != nil {
				t.Fatal(err)
			}
		})
		if allocs != 0 {
			t.Errorf("N=%d: %v allocations per row, want 0", n, allocs)
		}
	}
}

func TestPeekDoesNotAllocate(t *testing.T) {
	e, r, ep := settled(t, 22)
	packet, _, err := e.Row(r, ep)
	if err != nil {
		t.Fatal(err)
	}
	allocs := testing.AllocsPerRun(100, func() {
		if _, err := Peek(packet); err != nil {
			t.Fatal(err)
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations, want 0", allocs)
	}
}

func BenchmarkEncodeRow(b *testing.B) {
	for _, n := range []int{22, 100, 330} {
		b.Run(fmt.Sprintf("N%dK2", n), func(b *testing.B) {
			e, r, ep := settled(b, n)
			rowBytes, bareBytes := size(b, e, r, ep), size(b, e, bare(r), ep)
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := e.Row(r, ep); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(rowBytes), "B/row")
			b.ReportMetric(float64(bareBytes), "B/row-without-heard-and-loans")
		})
	}
}

func BenchmarkEncodeRowWithVector(b *testing.B) {
	for _, n := range []int{22, 100} {
		b.Run(fmt.Sprintf("N%dK2", n), func(b *testing.B) {
			e, r, ep := settled(b, n)
			rowBytes := 0
			b.ReportAllocs()
			for b.Loop() {
				e.current.rows = repeatRows // due
				packet, _, err := e.Row(r, ep)
				if err != nil {
					b.Fatal(err)
				}
				rowBytes = len(packet)
			}
			b.ReportMetric(float64(rowBytes), "B/row")
		})
	}
}

func BenchmarkDecodeRow(b *testing.B) {
	for _, n := range []int{22, 100, 330} {
		b.Run(fmt.Sprintf("N%dK2", n), func(b *testing.B) {
			s := newSide(rosterOf(n)...)
			ep := s.learn(testEpoch, rosterOf(n), nil)
			r := fullRow(n)
			for range freshRows {
				_, _, _ = s.enc.Row(r, ep)
			}
			packet, _, err := s.enc.Row(r, ep)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.dec.Decode(packet); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(packet)), "B/row")
		})
	}
}

func BenchmarkPeek(b *testing.B) {
	e, r, ep := settled(b, 22)
	packet, _, err := e.Row(r, ep)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Peek(packet); err != nil {
			b.Fatal(err)
		}
	}
}
