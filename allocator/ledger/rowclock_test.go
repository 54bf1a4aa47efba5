package ledger

import "testing"

func TestARowTellsItsPublishersClock(t *testing.T) {
	for _, c := range []struct {
		name string
		now  int64
		want uint32
	}{
		{"milliseconds, rounded down", 12_345_999_999, 12_345},
		{"modulo 2^32", (1<<32 + 7) * 1_000_000, 7},
		{"not zero, which would be not told", 1 << 32 * 1_000_000, 1<<32 - 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := rowClock(c.now); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

func TestPublishNotesTheClockInTheRowAndInTheLog(t *testing.T) {
	f := three(t)
	f.now = 12_345_678_901
	r := f.publish()
	echo := f.row(b, incB, 1, r.Seq, f.epoch)
	if at, ok := f.l.EchoOf(echo); r.Clock != 12_345 || !ok || at != f.now {
		t.Errorf("row says %d ms, log %d %v", r.Clock, at, ok)
	}
	echo.Heard[a].Seq++
	if _, ok := f.l.EchoOf(echo); ok {
		t.Error("a row that was not published has a reading")
	}
	echo.Heard[a] = Heard{incA + 1, r.Seq}
	if _, ok := f.l.EchoOf(echo); ok {
		t.Error("a row of another life has a reading of this one")
	}
}
