package ledger

func (x *encoder) loans(list []Loan) {
	x.byte(byte(len(list)))
	for _, o := range list {
		x.byte(byte(o.To))
		x.rate(o.Amount)
	}
}

func (x *encoder) heards(list []Heard) {
	x.byte(byte(len(list)))
	for k, h := range list {
		x.byte(byte(h.Inc))
		x.seq(NodeID(k), h.Inc, h.Seq)
	}
}

func (x *encoder) row(r *Row) {
	if r == nil {
		x.byte(0)
		return
	}
	x.byte(1+byte(r.Node), byte(r.Inc))
	x.seq(r.Node, r.Inc, r.Seq)
	x.num(uint64(r.Term))
	x.epoch(r.Epoch)
	x.flag(r.Acked)
	x.flag(r.Recovering)
	x.flag(r.Heard == nil)
	x.heards(r.Heard)
	if r.Only != nil {
		x.byte(byte(r.Only.Of), byte(r.Only.Inc))
		x.seq(r.Only.Of, r.Only.Inc, r.Only.Seq)
	}
	x.ids(r.Extra)
	x.byte(byte(len(r.Sections)))
	for i := range r.Sections {
		s := &r.Sections[i]
		x.rate(s.Ceiling)
		x.byte(byte(len(s.Demand)))
		for _, d := range s.Demand {
			x.rate(d)
		}
		x.loans(s.Loans)
		x.byte(byte(len(s.Caps)))
		for _, c := range s.Caps {
			x.byte(byte(c.Lender))
			x.seq(r.Node, r.Inc, c.Seq)
			x.rate(c.Amount)
		}
	}
}

func (x *encoder) stored(s *Stored) {
	x.flag(s != nil)
	if s == nil {
		return
	}
	x.byte(byte(s.Incarnation))
	x.num(uint64(s.Term))
	x.epoch(s.Epoch)
	x.epoch(s.Active)
	x.flag(s.Strayed)
	x.flag(s.Recovering)
	x.flag(s.LentUnknown)
	for _, c := range s.Ceilings {
		x.buf = append(x.buf, c.Budget...)
		x.rate(c.Ceiling)
	}
	for _, list := range [][]string{s.Wait, s.LentTo} {
		x.byte(byte(len(list)))
		for _, name := range list {
			x.buf = append(x.buf, name...)
		}
	}
	x.byte(byte(len(s.Floors)))
	for _, f := range s.Floors {
		x.buf = append(x.buf, f.Node...)
		x.byte(byte(f.Incarnation))
	}
}
