package ledger

import (
	"testing"

	"subak/allocator"
)

// oldCopy is node a started from a file that its life incA saved; a later life
// incA+1 existed, of which the file knows nothing.
func oldCopy(t *testing.T) *fixture {
	t.Helper()
	f := newFixture(t, durable, map[NodeID]allocator.Rate{a: 10, b: 10, c: 10})
	stored := store(t, f.l)
	return startFixture(t, func(cfg *Config) {
		cfg.Inc, cfg.Durable, cfg.Stored = incA+2, true, stored
	}, f.dir, f.epoch)
}

// knowsLater makes r tell that its publisher heard the life between.
func knowsLater(r *Row) *Row {
	r.Heard[a] = Heard{incA + 1, 77}
	return r
}

func TestAMemoryThatALaterLifeOutdatesIsNotUsed(t *testing.T) {
	for _, c := range []struct {
		name string
		row  func(f *fixture) *Row
	}{
		{"a peer heard the later life", func(f *fixture) *Row { return knowsLater(f.row(b, incB, 5, 0, f.epoch)) }},
		{"a row of the later life comes back", func(f *fixture) *Row { return f.row(a, incA+1, 77, 0, f.epoch) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := oldCopy(t)
			if got := f.l.Merge(f.now, c.row(f)); got != OwnNameHigher {
				t.Fatalf("outcome %v", got)
			}
			if err := f.l.Restart(f.now, incA+3); err != nil {
				t.Fatal(err)
			}
			var s Status
			f.l.Status(f.now, &s)
			if !s.MemoryOld || !s.Recovering || f.l.shortcut || !f.l.Stored().Recovering {
				t.Errorf("status %+v, shortcut %v: want a start without memory", s, f.l.shortcut)
			}
			// It is known now: the same news again is no reason to begin again.
			if got := f.l.Merge(f.now, knowsLater(f.row(b, incB, 6, 0, f.epoch))); got != Applied {
				t.Errorf("the second time: %v", got)
			}
			f.witnessed(f.epoch, 2)
			f.l.Status(f.now, &s)
			if s.MemoryOld || !s.Proved {
				t.Errorf("after the proof: %+v", s)
			}
		})
	}
}

func TestTheLifeThatTheMemoryIsOfIsNoLaterOne(t *testing.T) {
	f := oldCopy(t)
	r := f.row(b, incB, 5, 0, f.epoch)
	r.Heard[a] = Heard{incA, 50}
	if got := f.l.Merge(f.now, r); got != Applied {
		t.Errorf("outcome %v, want applied", got)
	}
	if got := f.l.Merge(f.now, f.row(a, incA, 50, 0, f.epoch)); got != Stale {
		t.Errorf("own row of that life: %v, want stale", got)
	}
}

// confirm merges a row of a peer that had heard the life that the memory is of,
// and not yet this one.
func (f *fixture) confirm(from NodeID, inc, seq uint64, ep *Epoch) {
	f.Helper()
	r := f.row(from, inc, seq, 0, ep)
	r.Heard[a] = Heard{f.l.cfg.Stored.Incarnation, 7}
	f.merge(r)
}

// An old copy may lack names that a later life lent to.
func TestTheQuarantineIsNotCutShortBeforeAPeerKnewOfNoLaterLife(t *testing.T) {
	for name, confirmed := range map[string]bool{"confirmed": true, "nobody tells of former lives": false} {
		t.Run(name, func(t *testing.T) {
			f := oldCopy(t)
			if confirmed {
				f.confirm(c, incC, 4, f.epoch)
			}
			seq := f.publish().Seq
			f.merge(f.row(b, incB, 5, seq, f.epoch))
			f.merge(f.row(c, incC, 5, seq, f.epoch))
			if f.l.quarantine == confirmed {
				t.Errorf("in quarantine: %v", f.l.quarantine)
			}
			if got := f.l.Stored().LentUnknown; got == confirmed {
				t.Errorf("a restart now would know of every loan: %v", !got)
			}
		})
	}
}

func TestTheQuarantineIsNotCutShortAfterAnEpochThatTheMemoryDoesNotKnow(t *testing.T) {
	for name, adopts := range map[string]bool{"a later epoch is learned": true, "no epoch is": false} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, durable, map[NodeID]allocator.Rate{a: 10, b: 10, c: 10})
			f.meet()
			f.lendToB(2)
			stored := store(t, f.l)
			f = startFixture(t, func(cfg *Config) { cfg.Inc, cfg.Durable, cfg.Stored = incA+2, true, stored }, f.dir, f.epoch)
			f.confirm(c, incC, 4, f.epoch)
			ep := f.epoch
			if adopts {
				ep = epochOf(2, f.epoch, map[NodeID]allocator.Rate{a: 10, b: 10, c: 5, d: 5})
				f.adopt(ep)
			}
			if !f.l.quarantine {
				t.Fatal("over before b has heard of this life")
			}
			f.merge(f.row(b, incB, 5, f.publish().Seq, ep))
			// d may hold a loan of a life that had adopted the later epoch.
			if f.l.quarantine != adopts {
				t.Errorf("in quarantine: %v", f.l.quarantine)
			}
		})
	}
}
