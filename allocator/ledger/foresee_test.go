package ledger

import (
	"testing"
	"time"

	"subak/allocator"
)

func TestForeseeSaysWhatMergingWouldLeaveOfALoan(t *testing.T) {
	cases := map[string]func(f *fixture) *Row{
		"less": func(f *fixture) *Row { return f.row(b, incB, 3, 1, f.epoch, Loan{a, 2 * unit}) },
		"more": func(f *fixture) *Row { return f.row(b, incB, 3, 1, f.epoch, Loan{a, 9 * unit}) },
		"none": func(f *fixture) *Row { return f.row(b, incB, 3, 1, f.epoch) },
		"renewed by a later row": func(f *fixture) *Row {
			f.publish()
			return f.row(b, incB, 3, f.l.seq, f.epoch, Loan{a, 5 * unit})
		},
		"by a lender that heard a former life": func(f *fixture) *Row {
			r := f.row(b, incB, 3, 0, f.epoch, Loan{a, 5 * unit})
			r.Heard[a] = Heard{incA - 1, 1}
			return r
		},
		"resting on a row that was never published": func(f *fixture) *Row { return f.row(b, incB, 3, 0, f.epoch, Loan{a, 5 * unit}) },
		"by a shorter term": func(f *fixture) *Row {
			r := f.row(b, incB, 3, 1, f.epoch, Loan{a, 5 * unit})
			r.Term = time.Second
			return r
		},
		"beyond what was released": func(f *fixture) *Row {
			f.settle(12*unit, 10*unit, 10*unit)
			f.publish()
			return f.row(b, incB, 3, 1, f.epoch, Loan{a, 5 * unit})
		},
	}
	for name, make := range cases {
		t.Run(name, func(t *testing.T) {
			f := three(t)
			f.meet()
			f.merge(f.row(b, incB, 2, 1, f.epoch, Loan{a, 5 * unit}))
			r := make(f)
			lease := func() Leased {
				x := f.l.books[0].in[b]
				return Leased{x.amount, x.end}
			}
			was := lease()
			before, after := f.l.Foresee(0, r)
			if before != was {
				t.Errorf("before: %v, is %v", before, was)
			}
			f.merge(r)
			if now := lease(); after.Amount != now.Amount || now.Amount > 0 && after.End != now.End {
				t.Errorf("foreseen %v, is %v", after, now)
			}
		})
	}
}

func TestE2AnAcknowledgementThatWasPutOffComesAtItsTime(t *testing.T) {
	f := three(t)
	e2 := f.child(map[NodeID]allocator.Rate{a: 4, b: 10, c: 16})
	f.adopt(e2)
	f.l.acked = false
	f.l.DeferAck(f.now + int64(time.Second))
	f.l.DeferAck(f.now) // the latest counts
	f.l.Control(f.now + int64(time.Second) - 1)
	if f.l.acked {
		t.Error("acknowledged too early")
	}
	if got := f.l.NextEvent(f.now); got > f.now+int64(time.Second) {
		t.Errorf("next event at %d", got)
	}
	f.l.Control(f.now + int64(time.Second))
	if !f.l.acked {
		t.Error("not acknowledged")
	}
}
