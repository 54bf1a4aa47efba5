package node

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"subak/allocator/ledger"
	"subak/gossip"
	"subak/gossip/wire"
	"subak/internal/epoch"
)

// A node without memory in a cluster that exists does not know what config epoch
// is in force. Its file may be older or newer than that, so it must not make one
// up from it (trap 19). It is provisional: it enforces 0, announces no lineage,
// and asks its peers.

const (
	// askEvery is the time between two questions, each to another peer, in ns.
	askEvery = int64(500 * time.Millisecond)
	// settleTime is how long a node that met the first peer with a lineage waits
	// for others, in ns: they may be of another one.
	settleTime = int64(500 * time.Millisecond)
	// answerMax is for how long after a question the answer is read, in ns.
	answerMax = 10 * int64(time.Second)
)

// stage is how far a joiner has come.
type stage uint8

const (
	alone     stage = iota // no peer met
	unlearned              // none of the peers met knows a lineage
	mixed                  // peers of several lineages
	asking
)

// joiner finds out what epoch is in force. It is told the time, the members and
// the packets, and is owned by the loop.
type joiner struct {
	cluster string
	enc     *wire.Encoder
	dec     *wire.Decoder

	stage    stage
	lineages map[uint64][]string // names of the live peers by fingerprint
	met      int64               // when the first of them was met, lease clock; 0 for not yet
	asked    map[string]int64    // when each was asked; bounded by the live peers
	due      int64               // of the next question
	last     string              // who was asked last

	found *epoch.Record // the newest answer of the only lineage
	dir   *ledger.Directory
	fault error // of the last answer that could not be used
}

func newJoiner(cluster string) *joiner {
	j := &joiner{cluster: cluster, lineages: map[uint64][]string{}, asked: map[string]int64{}}
	dir, vectors := ledger.NewDirectory(), wire.NewVectors() // nothing that is learned by name
	j.enc = wire.NewEncoder(0, dir, vectors)
	j.dec = wire.NewDecoder(0, dir, vectors, j.known)
	return j
}

// known spares reading an answer again that is here.
func (j *joiner) known(id ledger.EpochID) *ledger.Epoch {
	if j.found != nil && j.found.Epoch.ID == id {
		return j.found.Epoch
	}
	return nil
}

// receive takes one packet of a peer and says why it was dropped, "" if it was
// not. Only parts of an epoch count, from a peer that was asked, of the lineage
// that this peer announces.
func (j *joiner) receive(now int64, m gossip.Message) (drop string) {
	h, err := wire.Peek(m.Packet)
	switch at, asked := j.asked[m.From]; {
	case err != nil:
		return wire.ReasonOf(err).String()
	case h.Kind != wire.KindEpoch || m.Via != gossip.Direct || m.Fingerprint == 0 || !asked || now-at > answerMax:
		return "provisional"
	}
	got, err := j.dec.Decode(m.Packet)
	switch {
	case err != nil:
		return wire.ReasonOf(err).String()
	case got.Epoch == nil: // some part is still missing, or it is here already
		return ""
	}
	switch err := j.take(got.Epoch, m.Fingerprint); {
	case errors.Is(err, errOnTrial):
		return "epoch-on-trial"
	case err != nil:
		j.fault = fmt.Errorf("the answer of %s cannot be used: %w", m.From, err)
		return "epoch-refused"
	}
	return ""
}

// errOnTrial: one node tries the epoch, so it is in force nowhere else. Another
// peer has a better answer, and that one too when the trial is over.
var errOnTrial = errors.New("it is on trial")

// take judges a whole answer and keeps it if it is the newest.
func (j *joiner) take(b *wire.EpochBody, fingerprint uint64) error {
	dir := ledger.NewDirectory() // what a refused answer names leaves no trace
	r, err := epoch.Decode(b.ID, b.Body, dir)
	switch {
	case err != nil:
		return err
	case r.Epoch.Root != fingerprint:
		return fmt.Errorf("it is of lineage %016x, but the peer is of %016x", r.Epoch.Root, fingerprint)
	case r.Doc.Cluster != j.cluster:
		return fmt.Errorf("it is of cluster %q", r.Doc.Cluster)
	case r.Canary != "":
		return errOnTrial
	}
	if j.found == nil || j.found.Epoch.Root != r.Epoch.Root || j.found.Epoch.ID.Less(r.Epoch.ID) {
		j.found, j.dir, j.fault = r, dir, nil
	}
	return nil
}

// turn looks at the members and says whom to ask now, "" for nobody, and, at the
// end, what the cluster works under: with that the node is provisional no more.
func (j *joiner) turn(now int64, members []gossip.Member) (ask string, answer *epoch.Record) {
	if j.look(now, members); j.stage != asking {
		return "", nil
	}
	for root, names := range j.lineages { // the only one
		if j.found != nil && j.found.Epoch.Root == root && now-j.met >= settleTime {
			return "", j.found
		}
		if now >= j.due {
			ask = after(names, j.last)
			j.last, j.due, j.asked[ask] = ask, now+askEvery, now
		}
	}
	return ask, nil
}

// refuse drops an answer that no core can be built from.
func (j *joiner) refuse(err error) {
	j.found, j.dir = nil, nil
	j.fault = fmt.Errorf("the epoch that its peers tell cannot be used: %w", err)
}

// look sorts the live peers by lineage.
func (j *joiner) look(now int64, members []gossip.Member) {
	clear(j.lineages)
	j.stage = alone
	here := map[string]bool{}
	for _, m := range members {
		switch {
		case m.Refused != "" || m.State != gossip.Alive && m.State != gossip.Suspect:
		case m.Fingerprint == 0:
			j.stage = max(j.stage, unlearned)
		default:
			j.lineages[m.Fingerprint] = append(j.lineages[m.Fingerprint], m.Name)
			here[m.Name] = true
		}
	}
	for name := range j.asked {
		if !here[name] {
			delete(j.asked, name)
		}
	}
	switch {
	case len(j.lineages) == 0:
		j.met = 0
	case len(j.lineages) > 1:
		j.stage = mixed
	default:
		j.stage = asking
	}
	if len(j.lineages) > 0 && j.met == 0 {
		j.met = now
	}
}

// after returns the name behind last in a sorted list, the first behind its end.
func after(names []string, last string) string {
	at, found := slices.BinarySearch(names, last)
	if found {
		at++
	}
	return names[at%len(names)]
}

// standing is what the log tells of a joiner once: whose answer had which fault
// does not matter.
type standing struct {
	stage stage
	fault bool
}

func (j *joiner) standing() standing { return standing{j.stage, j.fault != nil} }

// reason says in words what a joiner waits for, with the mend.
func (j *joiner) reason() string {
	const none = "no epoch yet: this node remembers none, and "
	switch j.stage {
	case alone:
		return none + "no peer is met that could tell; check gossip.seeds and that a peer runs (only the first start of a whole cluster takes --bootstrap)"
	case unlearned:
		return none + "neither does any peer met; if the whole cluster lost its memory, start all nodes with --bootstrap once"
	case mixed:
		return none + "peers of several lineages answer, so two clusters share this name and key: " + j.sides() + "; part them, or stop the wrong one"
	}
	if j.fault != nil {
		return none + j.fault.Error()
	}
	return none + "peers are being asked"
}

// sides lists the peers of each lineage, in a fixed order.
func (j *joiner) sides() string {
	var sides []string
	for root, names := range j.lineages {
		sides = append(sides, fmt.Sprintf("%s (%016x)", strings.Join(names, ", "), root))
	}
	slices.Sort(sides)
	return strings.Join(sides, " against ")
}

// mute is the outbox of a node that must not be heard: nothing that it would
// decide by its file leaves it or is remembered.
type mute struct{}

var errProvisional = errors.New("no epoch yet")

func (mute) Publish([]byte, bool)        {}
func (mute) Spread([]byte)               {}
func (mute) SendTo(string, []byte) error { return errProvisional }
func (mute) Save(ledger.Stored) error    { return nil }

// seekEvery is the time between two looks at the members while provisional, ns.
const seekEvery = int64(100 * time.Millisecond)

// act lets the core act or, as long as it must not, the joiner. It returns when
// to call again.
func (n *Node) act(now int64, news bool) (next int64) {
	if n.joiner == nil {
		return n.core.Turn(now, wallMillis(), news)
	}
	was := n.joiner.standing()
	ask, answer := n.joiner.turn(now, n.gossip.Members())
	if answer != nil {
		err := n.adopt(answer, n.joiner.dir)
		if err == nil {
			return now
		}
		n.joiner.refuse(err)
	}
	if ask != "" {
		if err := n.gossip.SendTo(ask, n.joiner.enc.LineageWanted()); err != nil {
			n.drops.count("not-sent")
		}
	}
	if n.joiner.standing() != was {
		n.log.Warn(n.joiner.reason())
	}
	return now + seekEvery
}

// mayReceive reports whether the core may see a packet. From a node that does
// not know its lineage only the question for it; from one of another lineage
// nothing, as may still wait in the inbox when a joiner has chosen.
func (n *Node) mayReceive(m gossip.Message) bool {
	if m.Fingerprint == 0 {
		h, err := wire.Peek(m.Packet)
		return err == nil && h.Kind == wire.KindLineageWanted
	}
	return m.Fingerprint == n.core.Epoch().Root
}
