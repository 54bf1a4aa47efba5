package ledger

import (
	"errors"
	"testing"

	"subak/allocator"
)

func durable(cfg *Config) { cfg.Bootstrap, cfg.Durable = true, true }

// fullDisk is node a of three, which lent to b when its disk still took it, and
// then wants to lend to c as well.
func fullDisk(t *testing.T) *fixture {
	t.Helper()
	f := newFixture(t, durable, map[NodeID]allocator.Rate{a: 10, b: 10, c: 10})
	f.meet()
	f.lendToB(2)
	f.l.Saved()
	f.l.Hold(true)
	return f
}

func TestOnHoldOnlyNamesOnDiskGetLoans(t *testing.T) {
	f := fullDisk(t)
	version := f.l.StoredVersion()
	f.settle(4, 13, 13)
	if !f.l.Remember(f.now) {
		t.Error("nothing to remember, yet c has never had a loan")
	}
	r := f.publish()
	if toB, toC := loanTo(r.Sections[0].Loans, b), loanTo(r.Sections[0].Loans, c); toB != 3*unit || toC != 0 {
		t.Errorf("lends %d to b and %d to c, want 3 units and 0", toB, toC)
	}
	if f.l.StoredVersion() != version {
		t.Error("the row rests on memory that is not on disk")
	}
	f.l.Saved() // the disk took what Remember had noted
	f.l.Hold(false)
	r = f.publish()
	if toC := loanTo(r.Sections[0].Loans, c); toC != 3*unit || f.l.StoredVersion() != version {
		t.Errorf("after the save it lends %d to c, version moved: %v", toC, f.l.StoredVersion() != version)
	}
}

func TestWhatIsRememberedAheadIsInStored(t *testing.T) {
	f := fullDisk(t)
	f.settle(4, 13, 13)
	f.l.Remember(f.now)
	if got := f.l.Stored().LentTo; len(got) != 2 {
		t.Errorf("remembers loans to %v, want b and c", got)
	}
}

func TestOnHoldANewLifeOfAPeerCountsAsLost(t *testing.T) {
	f := fullDisk(t)
	version := f.l.StoredVersion()
	r := f.row(b, incB+1, 1, f.l.seq, f.epoch)
	if got := f.l.Merge(f.now, r); got != Unsaved {
		t.Fatalf("outcome %v, want unsaved", got)
	}
	if h := f.publish().Heard[b]; h.Inc != incB || f.l.StoredVersion() != version {
		t.Errorf("says that it heard life %d of b", h.Inc)
	}
	f.l.Hold(false)
	if got := f.l.Merge(f.now, r); got != Applied {
		t.Errorf("after the hold: %v", got)
	}
}

func TestOnHoldAnEpochWaitsAndItsRowsAreRead(t *testing.T) {
	f := fullDisk(t)
	next := epochOf(2, f.epoch, map[NodeID]allocator.Rate{a: 5, b: 15, c: 10})
	if err := f.l.Adopt(f.now, next); !errors.Is(err, ErrHeld) {
		t.Fatalf("adopt: %v", err)
	}
	if f.l.Epoch() != f.epoch || f.publish().Epoch != f.epoch.ID {
		t.Error("it was adopted")
	}
	f.merge(f.row(b, incB, 9, f.l.seq, next))
	f.l.Hold(false)
	f.adopt(next)
	if f.l.Epoch() != next {
		t.Error("not adopted after the hold")
	}
}

func TestOnHoldARestartedNodeStaysInQuarantineAndUnproved(t *testing.T) {
	f := fullDisk(t)
	stored := store(t, f.l)
	g := startFixture(t, func(cfg *Config) {
		cfg.Inc, cfg.Durable, cfg.Stored = incA+1, true, stored
	}, f.dir, f.epoch)
	g.l.Hold(true)
	g.witnessed(f.epoch, 2)
	g.now = g.l.quarantineEnd() + 1
	g.l.Control(g.now)
	g.wantEnforced(0)
	g.l.Hold(false)
	g.l.Control(g.now)
	g.wantEnforced(10)
}
