package ledger

// memory remembers what processes did, so that the same process, asked the same
// at the same time, answers at once and with the same actor: most states differ
// from others only in what somebody else did meanwhile. It holds what was asked in
// this layer and the last.
type memory struct{ now, last map[question]reply }

// question is all that a process's turn depends on.
type question struct {
	p   *actor
	t   int64
	m   move // without the mail position
	row *Row
}

// reply is all that it changes.
type reply struct {
	p        *actor
	disk     *Stored // nil: as before
	sent     *Row    // nil: nothing
	possible bool
}

func (k *memory) recall(q question) (reply, bool) {
	if k == nil {
		return reply{}, false
	}
	r, ok := k.now[q]
	if !ok {
		if r, ok = k.last[q]; ok {
			k.now[q] = r
		}
	}
	return r, ok
}

func (k *memory) note(q question, r reply) {
	if k != nil {
		k.now[q] = r
	}
}

// turnPage begins a layer.
func (k *memory) turnPage() { k.now, k.last = map[question]reply{}, k.now }

func (r *reply) apply(w *smallWorld, n *instant, who NodeID, m move) {
	if !r.possible {
		return
	}
	n.actors[who] = r.p
	if r.disk != nil {
		n.disk[who] = r.disk
	}
	if r.sent != nil {
		w.send(n, r.sent, m.kind == replace)
	}
}

// send puts r on its way to everybody. Where no room is left the oldest row that
// waits is lost, or with newer the newest of them.
func (w *smallWorld) send(n *instant, r *Row, newer bool) {
	for j := range w.nodes {
		if NodeID(j) == r.Node {
			continue
		}
		box := &n.mail[r.Node][j]
		k := 0
		for k < w.mail && box[k] != nil {
			k++
		}
		if k == w.mail {
			k--
			if !newer {
				copy(box[:w.mail], box[1:w.mail])
			}
		}
		box[k] = r
	}
}

// dropDeadMail removes rows that cannot have any effect any more: not newer than
// what their receiver merged, which will not lose its memory. It leaves room for
// rows that can, so it takes no behaviour away.
func (w *smallWorld) dropDeadMail(n *instant) {
	if n.crashes > 0 || w.replays {
		return
	}
	for j := range w.nodes {
		p := n.actors[j]
		if p == nil {
			continue
		}
		for i := range w.nodes {
			box := &n.mail[i][j]
			k := 0
			for _, r := range box {
				if r != nil && !w.dead(p.l, r) {
					box[k] = r
					k++
				}
			}
			clear(box[k:])
		}
	}
}

func (w *smallWorld) dead(l *Ledger, r *Row) bool {
	q := &l.peers[r.Node]
	return (r.Inc < q.floor || q.row != nil && !r.newerThan(q.row)) && !l.cur.ID.Less(r.Epoch)
}
