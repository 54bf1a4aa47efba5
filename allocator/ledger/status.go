package ledger

import (
	"time"

	"subak/allocator"
)

// Status is a snapshot for operators, filled by [Ledger.Status]; it reuses its
// slices. Nothing decides by it.
type Status struct {
	Incarnation, Seq uint64
	Epoch, Active    EpochID
	Acked            bool
	Proved           bool
	Recovering       bool
	Frozen           bool
	Superseded       bool
	// MemoryOld: the durable state was found to be an old copy, and this node is
	// not proved since.
	MemoryOld bool
	// Quarantine is the longest that it still lasts; 0 when over.
	Quarantine time.Duration
	Members    []MemberStatus // by roster position of the current epoch
	Budgets    []BudgetStatus
	Loans      []LoanStatus // newest rows of live members, this node's first
}

// MemberStatus is one member of the current roster.
type MemberStatus struct {
	Node     NodeID
	Self     bool
	Live     bool
	Inc, Seq uint64        // of its newest row, 0 if none
	Age      time.Duration // of that row since it was merged; -1 if none
	Epoch    EpochID
	Acked    bool
	Digest   uint32
}

// BudgetStatus is one budget on this node.
type BudgetStatus struct {
	Name     string
	Base     allocator.Rate // in the current epoch
	Ceiling  allocator.Rate // usable now: 0 in quarantine and before proof
	Lent     allocator.Rate // most that borrowers may be using
	Borrowed allocator.Rate // in use now
}

// LoanStatus is one loan seen in the rows.
type LoanStatus struct {
	Budget   int
	From, To NodeID
	Amount   allocator.Rate
}

// Status fills s with the state at now.
func (l *Ledger) Status(now int64, s *Status) {
	members, budgets, loans := s.Members[:0], s.Budgets[:0], s.Loans[:0]
	*s = Status{
		Incarnation: l.inc, Seq: l.seq, Epoch: l.cur.ID, Active: l.act, Acked: l.acked,
		Proved: l.proved, Recovering: l.recovering, Frozen: l.frozen, Superseded: l.superseded, MemoryOld: l.memoryOld,
	}
	if l.quarantine {
		s.Quarantine = time.Duration(max(0, l.quarantineEnd()-now))
	}
	for i, b := range l.books[:l.listed] {
		budgets = append(budgets, BudgetStatus{b.name, l.base(b), l.ceiling(b), b.outstanding(now), b.held(now)})
		loans = appendLoans(loans, i, l.cfg.Self, b.loans)
	}
	for _, m := range l.cur.Roster {
		p := &l.peers[m.ID]
		x := MemberStatus{Node: m.ID, Self: m.ID == l.cfg.Self, Live: l.Live(now, m.ID), Age: -1}
		switch {
		case x.Self:
			x.Inc, x.Seq, x.Age, x.Epoch, x.Acked, x.Digest = l.inc, l.seq, 0, l.cur.ID, l.acked, l.digest
		case p.row != nil:
			x.Inc, x.Seq, x.Age = p.row.Inc, p.row.Seq, time.Duration(now-p.at)
			x.Epoch, x.Acked, x.Digest = p.row.Epoch, p.row.Acked, p.row.Digest
		}
		members = append(members, x)
		if x.Self || !x.Live {
			continue
		}
		for i, b := range l.books[:l.listed] {
			if sec := l.sectionOf(m.ID, b); sec != nil {
				loans = appendLoans(loans, i, m.ID, sec.Loans)
			}
		}
	}
	s.Members, s.Budgets, s.Loans = members, budgets, loans
}

func appendLoans(dst []LoanStatus, budget int, from NodeID, loans []Loan) []LoanStatus {
	for _, x := range loans {
		dst = append(dst, LoanStatus{budget, from, x.To, x.Amount})
	}
	return dst
}

// MemoryOld reports whether the memory that this process started from was found
// to be an old copy, and the node is not proved since.
func (l *Ledger) MemoryOld() bool { return l.memoryOld }

// PeerRow returns the newest merged row of k, nil if none in this life. It must
// not be changed.
func (l *Ledger) PeerRow(k NodeID) *Row {
	if int(k) >= len(l.peers) {
		return nil
	}
	return l.peers[k].row
}
