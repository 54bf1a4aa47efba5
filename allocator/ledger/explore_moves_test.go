package ledger

import (
	"fmt"

	"subak/allocator"
)

// kind is what a move does. The names are those that a counterexample prints.
type kind uint8

const (
	tick      kind = iota // real time goes on by one step
	publish               // a pass of node: control, settle, publish, lower the data plane, write the disk, send
	replace               // the same, but where mail is full the newer of the waiting rows is the one lost
	settle                // a pass without publishing
	hear                  // to gets a row from node: adopt, merge, control, data plane
	hearRaw               // to gets a row and stops before acting on it: adopt, merge
	hearCopy              // to gets the copy of a row that was made for it alone
	hearTrial             // to gets a row and learns its epoch without adopting it
	learn                 // node learns an epoch by itself, without a row
	crash                 // node's process dies
	restart               // node starts again, under a stored epoch or one that is about
	operate               // an operator edits at node
)

// move is one step of a schedule.
type move struct {
	kind     kind
	node, to NodeID
	arg      uint8 // want, mail position, epoch or edit
}

// newestMail as a mail position means the newest row.
const newestMail = 255

// moves appends every move that may be possible in s. Impossible ones among them
// are refused by play.
func (w *smallWorld) moves(s *instant, dst []move) []move {
	dst = append(dst, move{kind: tick})
	for i := range NodeID(w.nodes) {
		dst = w.movesOf(s, i, dst)
	}
	for k := range w.edits {
		if s.edited>>k&1 == 0 {
			dst = append(dst, move{kind: operate, node: w.edits[k].by, arg: uint8(k)})
		}
	}
	return dst
}

func (w *smallWorld) movesOf(s *instant, i NodeID, dst []move) []move {
	p := s.actors[i]
	if p == nil {
		for e := range w.epochs {
			if w.about(s, e) && (s.disk[i] == nil || e == 0) {
				dst = append(dst, move{kind: restart, node: i, arg: uint8(e)})
			}
		}
		return dst
	}
	full := false
	for j := range w.nodes {
		full = full || w.mail > 1 && s.mail[i][j][w.mail-1] != nil
		for k, r := range s.mail[j][i] {
			if r == nil {
				continue
			}
			dst = append(dst, move{hear, NodeID(j), i, uint8(k)})
			if w.pauses {
				dst = append(dst, move{hearRaw, NodeID(j), i, uint8(k)})
			}
			if w.copies {
				dst = append(dst, move{hearCopy, NodeID(j), i, uint8(k)})
			}
			if w.trials && p.l.cur.ID.Less(r.Epoch) {
				dst = append(dst, move{hearTrial, NodeID(j), i, uint8(k)})
			}
		}
	}
	for d := range w.wants[i] {
		dst = append(dst, move{kind: publish, node: i, arg: uint8(d)})
		if full {
			dst = append(dst, move{kind: replace, node: i, arg: uint8(d)})
		}
		if w.pauses {
			dst = append(dst, move{kind: settle, node: i, arg: uint8(d)})
		}
	}
	for e := range w.epochs {
		if w.about(s, e) && p.l.cur.ID.Less(w.epochs[e].ID) {
			dst = append(dst, move{kind: learn, node: i, arg: uint8(e)})
		}
	}
	if s.crashes > 0 && w.mayCrash(s, p) {
		dst = append(dst, move{kind: crash, node: i})
	}
	return dst
}

// about reports whether epoch e exists yet.
func (w *smallWorld) about(s *instant, e int) bool {
	if e == 0 {
		return true
	}
	for k, x := range w.edits {
		if x.epoch == e {
			return s.edited>>k&1 == 1
		}
	}
	return false
}

// mayCrash keeps assumption A6: every roster in force keeps another member that
// is proved or remembers.
func (w *smallWorld) mayCrash(s *instant, p *actor) bool {
	rosters := []*Epoch{p.l.cur, w.epochs[s.greatest]}
	if k := w.index(p.l.act); k != 255 {
		rosters = append(rosters, w.epochs[k])
	}
	for _, e := range rosters {
		ok := false
		for _, m := range e.Roster {
			d, q := s.disk[m.ID], s.actors[m.ID]
			ok = ok || d != nil && !d.Recovering || q != nil && q != p && q.l.proved && !q.l.superseded
		}
		if !ok {
			return false
		}
	}
	return true
}

// play makes the move m in a copy of s. It returns false if m is not possible
// there. broken names a law that the move itself broke. known may be nil.
func (w *smallWorld) play(s *instant, m move, known *memory) (n instant, possible bool, broken string) {
	n = *s
	switch m.kind {
	case tick:
		n.t++
		return n, true, ""
	case crash:
		n.actors[m.node] = nil
		n.crashes--
		return n, true, ""
	case restart:
		w.begin(&n, m.node, w.epochs[m.arg], false)
		w.dropDeadMail(&n)
		return n, true, ""
	}
	who := m.node
	if m.kind >= hear && m.kind <= hearTrial {
		who = m.to
	}
	if s.actors[who] == nil {
		return n, false, ""
	}
	possible, broken = w.turn(&n, who, m, known)
	if possible {
		w.dropDeadMail(&n)
	}
	return n, possible, broken
}

// turn is the part of a move in which the process of name who acts.
func (w *smallWorld) turn(n *instant, who NodeID, m move, known *memory) (possible bool, broken string) {
	before := n.actors[who]
	q := question{before, n.t, m, nil}
	if m.kind >= hear && m.kind <= hearTrial {
		q.row = n.letter(m)
		q.m.arg = 0
	}
	if r, ok := known.recall(q); ok {
		r.apply(w, n, who, m)
		return r.possible, ""
	}
	disk, lives := n.disk[who], n.lives[who]
	p := before.clone()
	n.actors[who] = p
	possible = w.act(n, p, m)
	if p.l.act != before.l.act && possible {
		return true, w.activated(n, p)
	}
	if m.kind != operate && n.lives[who] == lives {
		r := reply{possible: possible, p: p}
		if n.disk[who] != disk {
			r.disk = n.disk[who]
		}
		if m.kind == publish || m.kind == replace {
			r.sent = p.l.last
		}
		known.note(q, r)
	}
	return possible, ""
}

// act lets process p of the move's node do its part.
func (w *smallWorld) act(n *instant, p *actor, m move) bool {
	now := w.clock(int(p.l.cfg.Self), n.t)
	switch m.kind {
	case publish, replace, settle:
		if p.l.superseded {
			return false
		}
		w.settlePass(p, now, w.wants[m.node][m.arg])
		if m.kind == settle {
			w.install(n, p, now)
			return true
		}
		r := p.l.Publish(now, 0)
		if r.Seq > maxPathSeq {
			panic("the path is too long for the explorer's sequence numbers")
		}
		w.install(n, p, now)
		w.persist(n, p)
		w.send(n, r, m.kind == replace)
		return true
	case hear, hearRaw, hearCopy, hearTrial:
		return w.receive(n, p, now, n.letter(m), m.kind)
	case learn:
		if p.l.Adopt(now, w.epochs[m.arg]) != nil {
			return false
		}
		w.pass(n, p, now)
		return true
	case operate:
		return w.operate(n, p, now, int(m.arg))
	}
	panic(fmt.Sprintf("unknown kind of move %d", m.kind))
}

// letter is the row that m delivers, nil if there is none.
func (s *instant) letter(m move) *Row {
	box := &s.mail[m.node][m.to]
	if m.arg != newestMail {
		return box[m.arg]
	}
	for k := mailKept - 1; k > 0; k-- {
		if box[k] != nil {
			return box[k]
		}
	}
	return box[0]
}

// copyFor is the copy of r that is made for one peer.
func copyFor(r *Row, to NodeID) *Row {
	c := *r
	c.Heard, c.Only = nil, &Entry{to, r.heardOf(to)}
	return &c
}

// settlePass is what a node does before it publishes.
func (w *smallWorld) settlePass(p *actor, now int64, want allocator.Rate) {
	p.l.Control(now)
	p.l.SetDemand(0, []allocator.Rate{want})
	var v View
	p.l.View(now, 0, &v)
	p.l.Settle(now, 0, targets(&v))
}

// receive delivers a row, with the body of its epoch.
func (w *smallWorld) receive(n *instant, p *actor, now int64, r *Row, as kind) bool {
	if r == nil {
		return false
	}
	e := w.epochs[w.index(r.Epoch)]
	if as == hearTrial {
		_ = p.l.Learn(e)
	} else {
		_ = p.l.Adopt(now, e)
	}
	if as == hearCopy {
		r = copyFor(r, p.l.cfg.Self)
	}
	got, pass := p.l.Merge(now, r), as != hearRaw
	if got == OwnNameHigher {
		n.lives[p.l.cfg.Self]++
		if err := p.l.Restart(now, uint64(n.lives[p.l.cfg.Self])); err != nil {
			panic(err)
		}
		w.persist(n, p)
		pass = true
	}
	if pass {
		w.pass(n, p, now)
	}
	return true
}

// operate makes an edit where the product would allow it. A forced removal is
// made only where its statement is true.
func (w *smallWorld) operate(n *instant, p *actor, now int64, k int) bool {
	e := w.epochs[w.edits[k].epoch]
	if !p.l.MayEdit() || p.l.cur.ID != e.Parent || len(e.Forced) > 0 && !p.l.MayForce() {
		return false
	}
	for id, inc := range e.Forced {
		if q := n.actors[id]; q != nil && q.l.inc <= inc || uint64(n.lives[id]) < inc {
			return false
		}
	}
	n.edited |= 1 << k
	if p.l.Adopt(now, e) != nil {
		return false
	}
	w.pass(n, p, now)
	w.persist(n, p)
	return true
}

// pass does what time and news allow and lets the data plane follow.
func (w *smallWorld) pass(n *instant, p *actor, now int64) {
	p.l.Control(now)
	w.install(n, p, now)
}

// install lets the data plane follow the ledger. An epoch counts as activated
// once its activator's data plane follows it and it is on disk.
func (w *smallWorld) install(n *instant, p *actor, now int64) {
	p.plane = p.l.Steps(now, 0, nil)
	if k := w.index(p.l.act); k != 255 && w.epochs[n.greatest].ID.Less(p.l.act) {
		w.persist(n, p)
		n.greatest = k
	}
}

func (w *smallWorld) persist(n *instant, p *actor) {
	if i := p.l.cfg.Self; w.disks[i] && p.written != p.l.StoredVersion() {
		s := p.l.Stored()
		n.disk[i], p.written = &s, p.l.StoredVersion()
		p.l.Saved()
	}
}

// begin starts a process of name i, on what its disk holds or under epoch e.
func (w *smallWorld) begin(n *instant, i NodeID, e *Epoch, first bool) {
	cfg := w.config(i)
	cfg.Bootstrap = first
	if d := n.disk[i]; d != nil {
		cfg.Stored, e = d, w.epochs[w.index(d.Epoch)]
	}
	n.lives[i]++
	cfg.Inc = uint64(n.lives[i])
	if cfg.Inc >= mostLives {
		panic("more lives than the explorer's masks hold")
	}
	now := w.clock(int(i), n.t)
	l, err := New(cfg, e, now)
	if err != nil {
		panic(err)
	}
	p := &actor{l: l}
	n.actors[i] = p
	if first {
		w.persist(n, p)
	}
	w.install(n, p, now)
}

// root is the state in which the exploration begins: the members of the first
// epoch are bootstrapped, the others start without memory, and the world's opening
// moves are played.
func (w *smallWorld) root() instant {
	s := instant{crashes: w.crashes}
	for i := range NodeID(w.nodes) {
		w.begin(&s, i, w.epochs[0], w.epochs[0].Position(i) >= 0)
	}
	for _, m := range w.start {
		n, possible, broken := w.play(&s, m, nil)
		if broken != "" || !possible {
			panic(fmt.Sprintf("world %s: opening move %v: possible %v, %s", w.name, m, possible, broken))
		}
		s = n
	}
	return s
}
