package ledger

import "testing"

func TestDistrustRecallsWhatIsLentAndTheAcknowledgementFreesIt(t *testing.T) {
	f := three(t)
	f.meet()
	f.lendToB(6)
	f.l.Distrust(b, true)
	f.settle(4, 16, 10)
	r := f.publish()
	if loanTo(r.Sections[0].Loans, b) != 0 {
		t.Errorf("still lends %d to b", loanTo(r.Sections[0].Loans, b))
	}
	f.wantOut(6)
	f.merge(f.row(b, incB, 2, r.Seq, f.epoch))
	f.wantOut(0)
	if !f.l.Distrusted(b) || f.l.Distrusted(c) {
		t.Error("who is distrusted is not what was said")
	}
	f.l.Distrust(b, false)
	f.lendToB(6)
}

func TestDistrustGivesBackAndRefusesLoans(t *testing.T) {
	f := three(t)
	f.meet()
	f.settle(16, 4, 10)
	f.merge(f.row(b, incB, 2, f.l.seq, f.epoch, Loan{a, 6 * unit}))
	f.wantEnforced(16)
	f.l.Distrust(b, true)
	f.wantEnforced(10)
	if caps := f.publish().Sections[0].Caps; len(caps) != 1 || caps[0].Lender != b || caps[0].Amount != 0 {
		t.Errorf("promises %v, want to use nothing of b's", caps)
	}
	f.merge(f.row(b, incB, 3, f.l.seq, f.epoch, Loan{a, 6 * unit}))
	f.wantEnforced(10)
	f.merge(f.row(c, incC, 3, f.l.seq, f.epoch, Loan{a, 2 * unit}))
	f.wantEnforced(12)
	f.l.Distrust(b, false)
	f.publish()
	f.merge(f.row(b, incB, 4, f.l.seq, f.epoch, Loan{a, 6 * unit}))
	f.wantEnforced(18)
}

func TestDistrustOfAnUnknownNodeChangesNothing(t *testing.T) {
	f := three(t)
	f.l.Distrust(99, true)
	if f.l.Distrusted(99) {
		t.Error("a number that names nobody is distrusted")
	}
}
