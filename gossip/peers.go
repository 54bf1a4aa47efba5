package gossip

import (
	"cmp"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/hashicorp/serf/coordinate"
)

const (
	// maxPeers bounds the peer table, refused and dead peers included.
	maxPeers = 2048
	// forgetAfter is how long peers that are gone stay known: long enough to
	// rejoin them after an outage, short enough that a recycled address does not
	// tie two clusters together (lesson O16).
	forgetAfter = 10 * time.Minute
	// refusedFor is how long one proof of a foreign fingerprint holds against a
	// peer that is a member otherwise.
	refusedFor = 30 * time.Second
	// suspectAfter unanswered direct pings in a row make a live peer suspect.
	suspectAfter = 2
	// leftFor is how long a peer's word that it leaves explains its absence.
	leftFor    = time.Minute
	rttSamples = 5
)

// State is what is believed about a peer.
type State uint8

// The states. Suspect is this node's own finding: memberlist still lists the
// peer as alive, but our last two direct pings went unanswered.
const (
	Alive State = iota
	Suspect
	Dead
	Left
)

func (s State) String() string {
	return [...]string{"alive", "suspect", "dead", "left"}[s&3]
}

// Member is one peer as seen from here; this node itself is not among them.
type Member struct {
	Name        string
	Addr        string // host:port it advertises; may be empty for refused peers
	State       State
	Since       time.Time // of State, without regard to Suspect
	Fingerprint uint64    // as announced; 0 if unreadable
	Refused     string    // reason, or "" for a peer we exchange rows with
	Provisional bool      // it does not know its lineage yet: no rows
	RTT         time.Duration
	Estimate    time.Duration // by Vivaldi coordinates; 0 if unknown
	LossPPM     int           // estimated one-way loss of direct rows, parts per million
	Lossy       bool          // changed rows are sent to it twice
}

// peer is one entry of the table; guarded by the table's lock unless said
// otherwise.
type peer struct {
	node        *memberlist.Node // immutable copy, replaced as a whole
	state       State            // never Suspect here
	since       time.Time
	fingerprint uint64 // as announced when it became a member
	refused     string
	refusedAt   time.Time
	proof       uint64 // the fingerprint it was refused for
	member      bool   // memberlist holds it as alive

	rtts     [rttSamples]time.Duration
	rttCount int
	pings    pingLoss
	rows     rowLoss
	lossPPM  int
	nextPing time.Time
	poked    time.Time
	leftAt   time.Time // when it said that it leaves
	coord    *coordinate.Coordinate
	isLossy  bool
	sent     atomic.Uint32 // rows sent to it; not guarded
}

// target is where a row is sent; immutable but for rows.
type target struct {
	name  string
	node  *memberlist.Node
	lossy bool
	rows  *atomic.Uint32 // rows sent to it, see frame.counter
}

// peerTable holds all peers. Senders read the snapshots without a lock.
type peerTable struct {
	mu      sync.Mutex
	byName  map[string]*peer
	own     atomic.Uint64            // this node's fingerprint; written with mu held
	reach   atomic.Pointer[[]target] // live, not refused, sorted by name
	targets atomic.Pointer[[]target] // those of reach that rows are exchanged with
	members atomic.Int64             // what memberlist holds as alive, without self
	met     atomic.Bool              // there was a target once
}

func newPeerTable(own uint64) *peerTable {
	t := &peerTable{byName: make(map[string]*peer)}
	t.own.Store(own)
	t.reach.Store(new([]target))
	t.targets.Store(new([]target))
	return t
}

// setOwn changes this node's fingerprint. It names the members that are foreign
// by the new one, and says whether there was a change.
func (t *peerTable) setOwn(fp uint64) (strangers []string, changed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.own.Swap(fp) == fp {
		return nil, false
	}
	for _, name := range slices.Sorted(maps.Keys(t.byName)) {
		if p := t.byName[name]; p.member && p.refused == "" && relate(fp, p.fingerprint) == foreign {
			strangers = append(strangers, name)
		}
	}
	t.publishLocked()
	return strangers, true
}

// refusedLocked says why nothing is exchanged with a peer, "" if something is.
func (t *peerTable) refusedLocked(p *peer) string {
	if p.refused == "" && p.member && relate(t.own.Load(), p.fingerprint) == foreign {
		return reasonFingerprint
	}
	return p.refused
}

// copyNode takes what memberlist may change later.
func copyNode(n *memberlist.Node) *memberlist.Node {
	c := *n
	c.Addr = append(net.IP(nil), n.Addr...)
	c.Meta = append([]byte(nil), n.Meta...)
	return &c
}

// joined notes that memberlist has taken the node in, or its metadata changed.
func (t *peerTable) joined(n *memberlist.Node, fingerprint uint64, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.entryLocked(n.Name)
	if p == nil {
		return false
	}
	if !p.member || p.state != Alive {
		p.state, p.since = Alive, now
		p.rows, p.pings, p.lossPPM, p.isLossy, p.rttCount = rowLoss{}, pingLoss{}, 0, false, 0
		p.nextPing, p.leftAt = time.Time{}, time.Time{}
	}
	p.node, p.fingerprint, p.member, p.refused = copyNode(n), fingerprint, true, ""
	t.publishLocked()
	return true
}

// leaves notes that a peer said it is going.
func (t *peerTable) leaves(name string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.byName[name]; p != nil {
		p.leftAt = now
		if p.state == Dead { // the news came after memberlist's
			p.state = Left
		}
	}
}

// gone notes that memberlist has given the node up.
func (t *peerTable) gone(name string, now time.Time) State {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.byName[name]
	if p == nil {
		return Dead
	}
	p.state = Dead
	if !p.leftAt.IsZero() && now.Sub(p.leftAt) < leftFor {
		p.state = Left
	}
	p.since, p.member = now, false
	t.publishLocked()
	return p.state
}

// allGone notes that we have left memberlist's view altogether.
func (t *peerTable) allGone(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range t.byName {
		if p.member {
			p.state, p.since, p.member = Dead, now, false
		}
	}
	t.publishLocked()
}

// finding is what refuse made of a proof.
type finding uint8

const (
	refusedKnown finding = iota
	refusedNews          // the first proof against this peer
	refusedClash         // about a stranger that bears a live member's name: the member stays
)

// refuse notes proof that a node must not be spoken to. n may be nil if only
// the name is known. A live member is refused only if the proof is about its own
// address: a stranger of the same name (say, a copy of the cluster for tests)
// must not cut it off.
func (t *peerTable) refuse(name string, n *memberlist.Node, fingerprint uint64, reason string, now time.Time) finding {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.entryLocked(name)
	if p == nil {
		return refusedKnown
	}
	if p.member && (n == nil || n.Address() != p.node.Address()) {
		return refusedClash
	}
	news := p.refused == ""
	if news {
		p.since = now
	}
	p.refused, p.refusedAt, p.proof = reason, now, fingerprint
	if p.member && p.fingerprint == 0 { // it has chosen another lineage: that does not run out
		p.fingerprint = fingerprint
	}
	if n != nil && !p.member {
		p.node, p.state = copyNode(n), Alive
	}
	if !news {
		return refusedKnown
	}
	if p.member {
		t.publishLocked()
	}
	return refusedNews
}

// entryLocked finds or makes an entry; nil if the table is full of peers that
// must be kept.
func (t *peerTable) entryLocked(name string) *peer {
	if p := t.byName[name]; p != nil {
		return p
	}
	if len(t.byName) >= maxPeers && !t.evictLocked() {
		return nil
	}
	p := &peer{state: Dead}
	t.byName[name] = p
	return p
}

// evictLocked removes the non-member that changed longest ago.
func (t *peerTable) evictLocked() bool {
	victim, at := "", time.Time{}
	for name, p := range t.byName {
		if !p.member && (victim == "" || p.since.Before(at)) {
			victim, at = name, p.since
		}
	}
	if victim == "" {
		return false
	}
	delete(t.byName, victim)
	return true
}

// expire forgets peers gone for long and refusals of members that were not
// renewed. It returns the names forgotten.
func (t *peerTable) expire(now time.Time) (forgotten []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	changed := false
	for name, p := range t.byName {
		last := p.since
		if p.refused != "" {
			last = p.refusedAt
		}
		if !p.member && now.Sub(last) > forgetAfter {
			delete(t.byName, name)
			forgotten = append(forgotten, name)
		}
		if p.member && p.refused != "" && now.Sub(p.refusedAt) > refusedFor {
			p.refused, changed = "", true
		}
	}
	if changed {
		t.publishLocked()
	}
	return forgotten
}

// publishLocked rebuilds the snapshots that senders read.
func (t *peerTable) publishLocked() {
	reach, targets := make([]target, 0, len(t.byName)), make([]target, 0, len(t.byName))
	members := int64(0)
	for _, name := range slices.Sorted(maps.Keys(t.byName)) {
		p := t.byName[name]
		if !p.member {
			continue
		}
		members++
		if t.refusedLocked(p) != "" {
			continue
		}
		to := target{name: name, node: p.node, lossy: p.isLossy, rows: &p.sent}
		reach = append(reach, to)
		if relate(t.own.Load(), p.fingerprint) == kin {
			targets = append(targets, to)
		}
	}
	t.members.Store(members)
	t.reach.Store(&reach)
	t.targets.Store(&targets)
	if len(targets) > 0 {
		t.met.Store(true)
	}
}

// find returns where to send to a live peer.
func (t *peerTable) find(name string) (target, bool) {
	targets := *t.reach.Load()
	i, ok := slices.BinarySearchFunc(targets, name, func(a target, n string) int { return cmp.Compare(a.name, n) })
	if !ok {
		return target{}, false
	}
	return targets[i], true
}

func udpAddr(n *memberlist.Node) net.Addr { return &net.UDPAddr{IP: n.Addr, Port: int(n.Port)} }

// lostAddresses lists host:port of members believed dead, sorted by name. Nodes
// that left by themselves are not among them.
func (t *peerTable) lostAddresses() (names, addrs []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(t.byName)) {
		if p := t.byName[name]; !p.member && p.state == Dead && p.refused == "" && p.node != nil {
			names = append(names, name)
			addrs = append(addrs, p.node.Address())
		}
	}
	return names, addrs
}

func (t *peerTable) address(name string) (string, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.byName[name]; p != nil && p.node != nil {
		return p.node.Address(), true
	}
	return "", false
}

// nodeOf returns what a peer that is not refused announces of itself.
func (t *peerTable) nodeOf(name string) (*memberlist.Node, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.byName[name]; p != nil && p.node != nil && t.refusedLocked(p) == "" {
		return p.node, true
	}
	return nil, false
}

// list returns every peer known, sorted by name.
func (t *peerTable) list(distance func(*coordinate.Coordinate) time.Duration) []Member {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]Member, 0, len(t.byName))
	for _, name := range slices.Sorted(maps.Keys(t.byName)) {
		p := t.byName[name]
		m := Member{
			Name: name, State: p.state, Since: p.since, Fingerprint: p.fingerprint, Refused: t.refusedLocked(p),
			Provisional: p.member && p.fingerprint == 0, RTT: p.medianRTT(), LossPPM: p.lossPPM, Lossy: p.isLossy,
		}
		if p.node != nil {
			m.Addr = p.node.Address()
		}
		if p.refused != "" {
			m.Fingerprint = p.proof
		}
		if p.member && p.pings.streak() >= suspectAfter {
			m.State = Suspect
		}
		if p.coord != nil {
			m.Estimate = distance(p.coord)
		}
		out = append(out, m)
	}
	return out
}
