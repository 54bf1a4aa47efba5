package core

import (
	"fmt"
	"testing"
	"time"

	"subak/allocator"
	"subak/allocator/ledger"
	"subak/gossip/wire"
	"subak/internal/epoch"
)

// post carries packets between cores at the end of each tick, to those they are
// meant for.
type post struct {
	lossy bool // what every outbox says of every peer
	t     *testing.T
	doc   func() *epoch.Document
	now   int64
	boxes []*postbox
	lost  func(from, to int, kind wire.Kind) bool
}

// postbox is one core and its outbox.
type postbox struct {
	p     *post
	index int
	core  *Core
	sent  []letter
	kinds map[wire.Kind]int
	drops map[string]int
	saves int
}

type letter struct {
	to     int
	packet []byte
}

func newPost(t *testing.T, doc func() *epoch.Document) *post {
	p := &post{t: t, doc: doc}
	for i := range doc().Nodes {
		p.boxes = append(p.boxes, &postbox{p: p, index: i})
		p.boxes[i].start(uint64(i)+1, true)
	}
	p.now = (3200 * time.Millisecond).Nanoseconds()
	return p
}

func (b *postbox) name() string { return fmt.Sprintf("n%03d", b.index) }

func (b *postbox) start(inc uint64, bootstrap bool) {
	b.p.t.Helper()
	b.kinds, b.drops = map[wire.Kind]int{}, map[string]int{}
	dir, doc := ledger.NewDirectory(), b.p.doc()
	e, err := epoch.Root(doc, dir)
	if err != nil {
		b.p.t.Fatal(err)
	}
	doc.Canonical()
	b.core, err = New(Config{
		Self: b.name(), Inc: inc, Tick: testTick, GapMin: 40 * time.Millisecond, Term: 3 * time.Second, Live: 3 * time.Second,
		EpsPPM: 10_000, Guard: 25 * time.Millisecond, Bootstrap: bootstrap, CountDrop: func(reason string) { b.drops[reason]++ },
		NewLife: func(floor uint64) (uint64, error) { return floor + 1, nil },
	}, b, dir, e, doc, b.p.now)
	if err != nil {
		b.p.t.Fatal(err)
	}
}

func (b *postbox) put(to int, packet []byte) {
	if h, err := wire.Peek(packet); err == nil {
		b.kinds[h.Kind]++
	}
	b.sent = append(b.sent, letter{to, append([]byte(nil), packet...)})
}

func (b *postbox) Publish(packet []byte, _ bool) { b.Spread(packet) }

func (b *postbox) PublishEach(_ bool, packet func(name string, lossy bool) []byte) {
	for i, to := range b.p.boxes {
		if i != b.index {
			if p := packet(to.name(), b.p.lossy); p != nil {
				b.put(i, p)
			}
		}
	}
}

func (b *postbox) Lossy() bool { return b.p.lossy }

func (b *postbox) Spread(packet []byte) {
	for i := range b.p.boxes {
		if i != b.index {
			b.put(i, packet)
		}
	}
}

func (b *postbox) SendTo(name string, packet []byte) error {
	for i, to := range b.p.boxes {
		if to.name() == name {
			b.put(i, packet)
		}
	}
	return nil
}

func (b *postbox) Save(ledger.Stored) error { b.saves++; return nil }

// ticks lets all publish and delivers, some times over.
func (p *post) ticks(times int) {
	for range times {
		p.now += testTick.Nanoseconds()
		for _, b := range p.boxes {
			b.core.pass(p.now, uint64(p.now/1e6), true)
		}
		p.deliver()
	}
}

func (p *post) deliver() {
	for i, b := range p.boxes {
		letters := b.sent
		b.sent = nil
		for _, l := range letters {
			if h, _ := wire.Peek(l.packet); p.lost == nil || !p.lost(i, l.to, h.Kind) {
				p.boxes[l.to].core.Receive(p.now+1, b.name(), l.packet)
			}
		}
	}
}

func (p *post) demand(node, budget int, rate allocator.Rate) {
	p.boxes[node].core.traffic.moved = p.now // as its meters say
	p.boxes[node].core.led.SetDemand(budget, []allocator.Rate{rate * allocator.Unit, 0})
}

func (p *post) clear() {
	for _, b := range p.boxes {
		clear(b.kinds)
		clear(b.drops)
	}
}

func many(nodes, budgets int) func() *epoch.Document {
	return func() *epoch.Document {
		d := wide(nodes, 2)
		one := d.Budgets[0]
		d.Budgets = nil
		for i := range budgets {
			one.Name = fmt.Sprintf("budget-%03d", i)
			d.Budgets = append(d.Budgets, one)
		}
		return d
	}
}

func TestALargeClusterSendsCopiesAndSpendsLess(t *testing.T) {
	const nodes = 65
	p := newPost(t, many(nodes, 1))
	p.ticks(3)
	if n := p.boxes[0].kinds[wire.KindCopy]; n > 0 {
		t.Errorf("%d copies while all peers are young", n)
	}
	p.ticks(32)
	p.clear()
	p.demand(5, 0, 2000)
	p.ticks(2 * fullEvery)
	copies, rows := 0, 0
	for _, b := range p.boxes {
		copies += b.kinds[wire.KindCopy]
		rows += b.kinds[wire.KindRow]
		if len(b.drops) > 0 {
			t.Errorf("%s dropped %v", b.name(), b.drops)
		}
	}
	if want := 2 * nodes * (nodes - 1); rows != want {
		t.Errorf("%d full rows, want %d: two to everybody", rows, want)
	}
	if most := 2 * (fullEvery - 1) * nodes * (nodes - 1) * 6 / 10; copies == 0 || copies > most {
		t.Errorf("%d copies, want at most %d", copies, most)
	}
	var in allocator.Rate
	for i := range nodes {
		if !p.boxes[i].core.led.Live(p.now+1, ledger.NodeID(5)) {
			t.Errorf("node 5 is not live at node %d", i)
		}
		in += p.boxes[5].core.led.Borrowed(p.now+1, 0, ledger.NodeID(i))
	}
	if in < 1900*allocator.Unit {
		t.Errorf("the busy node borrows %d of 2000 by way of copies", in/allocator.Unit)
	}
	for i := range nodes {
		if i > 0 && !p.boxes[0].core.Agrees(p.now, ledger.NodeID(i)) {
			t.Fatalf("node %d is not seen to agree", i)
		}
	}
}

func TestAStillNodeSendsEveryFifthRowAndAllWhenItTrades(t *testing.T) {
	const nodes = 6
	rows := func(p *post, index int) int {
		p.clear()
		p.ticks(fullEvery)
		return p.boxes[index].kinds[wire.KindRow]
	}
	p := newPost(t, many(nodes, 1))
	p.ticks(40)
	if got, most := rows(p, 0), (nodes-1)*(1+fullEvery/quietEvery); got < most-(nodes-1) || got > most {
		t.Errorf("a still node sends %d rows in %d ticks, want one to each peer every %d", got, fullEvery, quietEvery)
	}
	for i := range nodes {
		for j := range nodes {
			if i != j && (!p.boxes[i].core.led.Live(p.now+1, ledger.NodeID(j)) || !p.boxes[i].core.Agrees(p.now, ledger.NodeID(j))) {
				t.Errorf("node %d does not see node %d live and agreeing", i, j)
			}
		}
	}
	all := (nodes - 1) * fullEvery
	p.lossy = true
	if got := rows(p, 0); got != all {
		t.Errorf("%d rows where they get lost, want all %d", got, all)
	}
	p.lossy = false
	p.demand(5, 0, 2000)
	p.ticks(3)
	for _, index := range []int{0, 5} { // a lender and the borrower
		if got := rows(p, index); got < all {
			t.Errorf("node %d sends %d rows while it trades, want all %d", index, got, all)
		}
	}
	p.demand(5, 0, 0)
	p.ticks(40)
	if got := rows(p, 5); got > all/4 {
		t.Errorf("%d rows after the trade, want a fifth of %d", got, all)
	}
	reborn := p.boxes[3]
	reborn.start(1<<40, false)
	p.ticks(3)
	if got := rows(p, 0); got < fullEvery {
		t.Errorf("%d rows while a peer waits for proof, want one to it each tick", got)
	}
	p.ticks(60)
	if got := rows(p, 0); got > all/4 {
		t.Errorf("%d rows after the proof, want a fifth of %d", got, all)
	}
	before := p.boxes[0].kinds[wire.KindRow]
	p.boxes[0].core.Leave(p.now+1, uint64(p.now/1e6))
	if got := p.boxes[0].kinds[wire.KindRow] - before; got != nodes-1 {
		t.Errorf("%d rows as it leaves, want one to everybody at once", got)
	}
}

// What it says a little differently each time reaches each peer within five ticks, and
// the first of them at the next.
func TestAQuietNodeThatMovesSendsEachRowToAFifth(t *testing.T) {
	const nodes = 6
	p := newPost(t, many(nodes, 1))
	p.ticks(40)
	p.clear()
	for i := range fullEvery {
		p.boxes[0].core.traffic.moved = p.now // as if its meters said so
		before := p.boxes[0].kinds[wire.KindRow]
		p.ticks(1)
		if p.boxes[0].kinds[wire.KindRow] == before {
			t.Errorf("tick %d: no row", i)
		}
	}
	if got, want := p.boxes[0].kinds[wire.KindRow], fullEvery-1+nodes-1; got != want {
		t.Errorf("%d rows in %d ticks, want %d: one each tick, and one time to all", got, fullEvery, want)
	}
}

func TestANodeWithoutMemoryIsProvedAmongCopies(t *testing.T) {
	p := newPost(t, many(65, 1))
	p.ticks(40)
	if p.boxes[0].kinds[wire.KindCopy] == 0 {
		t.Fatal("no copies: the test does not test")
	}
	reborn := p.boxes[9]
	reborn.start(1<<40, false)
	p.ticks(22) // its quarantine, and a few rows each way
	if s := reborn.core.led.Standing(); !s.Proved || s.Quarantine {
		t.Errorf("standing %+v", s)
	}
	if reborn.core.led.Active() != reborn.core.epoch.ID {
		t.Error("its base is not in force again")
	}
}

func TestALostDeltaIsRepairedByOneQuestion(t *testing.T) {
	p := newPost(t, many(4, 300))
	p.ticks(12)
	p.clear()
	spread := func(step int) {
		for k := range 60 {
			p.demand(1, (step*60+k)%300, allocator.Rate(10+step))
		}
	}
	cut := true
	p.lost = func(from, to int, kind wire.Kind) bool { return cut && from == 1 && to == 2 && kind == wire.KindDelta }
	for step := range 3 { // more than one delta has room for
		spread(step)
		p.ticks(1)
	}
	cut = false
	spread(3)
	p.ticks(1)
	asker, asked := p.boxes[2], p.boxes[1]
	if asker.drops["lost_base"] != 1 || asker.kinds[wire.KindRowWanted] != 1 {
		t.Fatalf("drops %v, asked %d times: the test does not test", asker.drops, asker.kinds[wire.KindRowWanted])
	}
	p.deliver() // the question
	p.deliver() // the answer
	row, there := asker.core.led.PeerRow(1), asked.core.traffic.own
	if row.Seq != there.Seq {
		t.Fatalf("row %d after the repair, want %d", row.Seq, there.Seq)
	}
	for i := range row.Sections {
		if !same(row.Sections[i].Demand, there.Sections[i].Demand) {
			t.Fatalf("section %d: %v, want %v", i, row.Sections[i], there.Sections[i])
		}
	}
}

func TestADeltaThatOvertakesItsBaseIsHeldBack(t *testing.T) {
	p := newPost(t, many(4, 300))
	p.ticks(12)
	var late [][]byte
	take := func() []byte {
		p.now += testTick.Nanoseconds()
		for k := range 60 {
			p.demand(1, (len(late)*60+k)%300, 50)
		}
		b := p.boxes[1]
		b.core.traffic.at = p.now // no room to say anything twice
		b.core.publish(p.now, uint64(p.now/1e6), false)
		packet := b.sent[0].packet
		b.sent = nil
		return packet
	}
	late = append(late, take())
	late = append(late, take())
	to := p.boxes[2].core
	to.Receive(p.now, "n001", late[1])
	if len(to.traffic.held) != 1 {
		t.Fatal("nothing is held back: the test does not test")
	}
	to.Receive(p.now, "n001", late[0])
	if got, want := to.led.PeerRow(1).Seq, p.boxes[1].core.traffic.own.Seq; got != want || len(to.traffic.held) != 0 {
		t.Errorf("row %d, want %d; %d held", got, want, len(to.traffic.held))
	}
}

func TestAPushPullOfDeltasIsOfWholeRows(t *testing.T) {
	p := newPost(t, many(4, 300))
	p.ticks(12)
	newcomer := p.boxes[3]
	newcomer.start(1<<40, false)
	newcomer.core.ReceiveState(p.now, "n000", p.boxes[0].core.State())
	for i := range 3 {
		if newcomer.core.led.PeerRow(ledger.NodeID(i)) == nil {
			t.Errorf("no row of node %d in the state; dropped %v", i, newcomer.drops)
		}
	}
}

func TestChangesOfManyBudgetsDoNotWriteTheMemoryEachTick(t *testing.T) {
	p := newPost(t, many(4, 300))
	p.ticks(12)
	before, listed := 0, 0
	for _, b := range p.boxes {
		before += b.saves
	}
	for step := range 20 {
		for node := range p.boxes {
			for k := range 15 {
				p.demand(node, (step*61+k*20)%300, allocator.Rate(100+(step*7+node*31+k)%1500))
			}
		}
		p.ticks(1)
		for _, s := range p.boxes[0].core.traffic.own.Sections {
			listed += len(s.Loans)
		}
	}
	after := 0
	for _, b := range p.boxes {
		after += b.saves
	}
	if listed == 0 {
		t.Fatal("nothing is lent: the test does not test")
	}
	if n := after - before; n > 3*len(p.boxes) {
		t.Errorf("%d writes in 20 ticks of %d nodes, want at most one for each name that is lent to", n, len(p.boxes))
	}
}
