package ledger

import (
	"fmt"
	"strings"

	"subak/allocator"
)

// amount shows a rate in thousands of micro-units, the grain of small worlds.
func amount(r allocator.Rate) string {
	if r%DemandGrain == 0 {
		return fmt.Sprint(int64(r / DemandGrain))
	}
	return fmt.Sprintf("%.3f", float64(r)/float64(DemandGrain))
}

func (w *smallWorld) call(i NodeID) string { return w.dir.Name(i) }

func (w *smallWorld) epochName(id EpochID) string {
	if id == (EpochID{}) {
		return "none"
	}
	return fmt.Sprintf("%d.%d", id.Version, id.Hash)
}

// rowName is node, incarnation and seq: a1.4 is the fourth row of a's first life.
func (w *smallWorld) rowName(i NodeID, h Heard) string {
	return fmt.Sprintf("%s%d.%d", w.call(i), h.Inc, h.Seq)
}

// rowText shows all of a row that a rule reads.
func (w *smallWorld) rowText(r *Row) string {
	var t strings.Builder
	fmt.Fprintf(&t, "[%s epoch %s", w.rowName(r.Node, Heard{r.Inc, r.Seq}), w.epochName(r.Epoch))
	if r.Acked {
		t.WriteString(" acked")
	}
	if r.Recovering {
		t.WriteString(" recovering")
	}
	for i := range r.Sections {
		s := &r.Sections[i]
		fmt.Fprintf(&t, "; ceiling %s, demand %s", amount(s.Ceiling), amount(s.Demand[0]))
		for _, o := range s.Loans {
			fmt.Fprintf(&t, "; lends %s %s", w.call(o.To), amount(o.Amount))
		}
		for _, c := range s.Caps {
			fmt.Fprintf(&t, "; uses at most %s of rows of %s that had not heard %s", amount(c.Amount),
				w.call(c.Lender), w.rowName(r.Node, Heard{r.Inc, c.Seq}))
		}
	}
	heard := 0
	for k, h := range r.Heard {
		if h.Inc == 0 {
			continue
		}
		if heard++; heard == 1 {
			t.WriteString("; heard")
		}
		if h.Seq == 0 {
			fmt.Fprintf(&t, " of life %s%d", w.call(NodeID(k)), h.Inc)
		} else {
			fmt.Fprintf(&t, " %s", w.rowName(NodeID(k), h))
		}
	}
	return t.String() + "]"
}

// moveText says what m does in s, which is the state before it, and n the one after.
func (w *smallWorld) moveText(s, n *instant, m move) string {
	node := w.call(m.node)
	switch m.kind {
	case tick:
		return "one step of time passes"
	case publish, replace:
		text := fmt.Sprintf("%s, which wants %s, publishes %s", node, amount(w.wants[m.node][m.arg]), w.rowText(n.actors[m.node].l.last))
		if m.kind == replace {
			text += " (the newer of the waiting rows is lost)"
		}
		return text
	case settle:
		return fmt.Sprintf("%s, which wants %s, settles without publishing", node, amount(w.wants[m.node][m.arg]))
	case hear, hearRaw, hearCopy, hearTrial:
		r := s.letter(m)
		text := fmt.Sprintf("%s gets row %s", w.call(m.to), w.rowName(r.Node, Heard{r.Inc, r.Seq}))
		switch m.kind {
		case hearRaw:
			text += " and stops before acting on it"
		case hearCopy:
			text += ", in the copy for it alone"
		case hearTrial:
			text += " and learns its epoch without adopting it"
		}
		return text
	case learn:
		return fmt.Sprintf("%s learns epoch %s", node, w.epochName(w.epochs[m.arg].ID))
	case crash:
		return node + "'s process dies"
	case restart:
		l := n.actors[m.node].l
		return fmt.Sprintf("%s starts as %s%d under epoch %s", node, node, l.inc, w.epochName(l.cur.ID))
	case operate:
		return fmt.Sprintf("an operator makes epoch %s at %s", w.epochName(w.epochs[w.edits[m.arg].epoch].ID), node)
	}
	return "?"
}

// nodeText shows one process: what it enforces and why.
func (w *smallWorld) nodeText(s *instant, i int) string {
	p := s.actors[i]
	if p == nil {
		return w.call(NodeID(i)) + " is down"
	}
	l, now := p.l, w.clock(i, s.t)
	var t strings.Builder
	fmt.Fprintf(&t, "%s%d enforces %s", w.call(NodeID(i)), l.inc, amount(w.enforced(s, i)))
	for _, st := range p.plane {
		if now < st.Until && !untilForGood(st) {
			fmt.Fprintf(&t, " (%s for %d more)", amount(st.Rate), st.Until-now)
		}
	}
	for _, b := range l.books {
		fmt.Fprintf(&t, ", ceiling %s", amount(b.ceiling))
		for j := range w.nodes {
			if out := outTo(b, NodeID(j), now); out > 0 {
				fmt.Fprintf(&t, ", lent %s at most %s", w.call(NodeID(j)), amount(out))
			}
			if in := b.in[j]; in.amount > 0 && now < in.end {
				fmt.Fprintf(&t, ", uses %s of %s for %d more", amount(in.amount), w.call(NodeID(j)), in.end-now)
			}
		}
	}
	fmt.Fprintf(&t, "; epoch %s", w.epochName(l.cur.ID))
	if l.acked {
		t.WriteString(" acked")
	}
	if l.act != l.cur.ID {
		fmt.Fprintf(&t, ", active %s", w.epochName(l.act))
	}
	for _, f := range []struct {
		on   bool
		name string
	}{{l.quarantine, "in quarantine"}, {!l.proved, "not proved"}, {l.recovering, "recovering"}} {
		if f.on {
			t.WriteString(", " + f.name)
		}
	}
	return t.String()
}

// story replays moves from the start of the world and tells them one by one. It
// ends where a law is broken.
func (w *smallWorld) story(path []move) string {
	var t strings.Builder
	fmt.Fprintf(&t, "world %q: %s\n", w.name, w.shows)
	fmt.Fprintf(&t, "amounts in thousands of micro-units; a1.4 is the fourth row of a's first life\n")
	for _, e := range w.epochs {
		fmt.Fprintf(&t, "epoch %s:", w.epochName(e.ID))
		for k, m := range e.Roster {
			fmt.Fprintf(&t, " %s has %s;", w.call(m.ID), amount(e.Budgets[0].Base[k]))
		}
		fmt.Fprintln(&t)
	}
	s := w.root()
	w.tellState(&t, "at the start", &s)
	for k, m := range path {
		n, _, broken := w.play(&s, m, nil)
		fmt.Fprintf(&t, "%2d. %s\n", k+1, w.moveText(&s, &n, m))
		w.tellChanges(&t, &s, &n)
		s = n
		if broken == "" {
			broken = w.laws(&s)
		}
		if broken != "" {
			fmt.Fprintf(&t, "    BROKEN: %s\n", broken)
		}
	}
	w.tellState(&t, "at the end", &s)
	return t.String()
}

func (w *smallWorld) tellState(t *strings.Builder, when string, s *instant) {
	fmt.Fprintf(t, "%s, %s of %s is enforced:\n", when, amount(w.sum(s)), amount(w.limit(s)))
	for i := range w.nodes {
		fmt.Fprintf(t, "    %s\n", w.nodeText(s, i))
	}
	for i := range w.nodes {
		for j := range w.nodes {
			for _, r := range s.mail[i][j] {
				if r != nil {
					fmt.Fprintf(t, "    on its way to %s: %s\n", w.call(NodeID(j)), w.rowText(r))
				}
			}
		}
	}
}

func (w *smallWorld) tellChanges(t *strings.Builder, s, n *instant) {
	for i := range w.nodes {
		if before, after := w.nodeText(s, i), w.nodeText(n, i); before != after {
			fmt.Fprintf(t, "    %s\n", after)
		}
	}
}
