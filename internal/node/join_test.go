package node

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"subak/allocator"
	"subak/allocator/ledger"
	"subak/gossip"
	"subak/gossip/wire"
	"subak/internal/epoch"
)

// contents is a cluster's document with the given limit, in units per second.
func contents(cluster string, limit allocator.Rate, nodes ...string) *epoch.Document {
	d := &epoch.Document{Cluster: cluster}
	weights := make([]int64, len(nodes))
	for i, n := range nodes {
		d.Nodes, weights[i] = append(d.Nodes, epoch.Node{Name: n, Weight: 1}), 1
	}
	whole := limit * allocator.Unit
	d.Budgets = []epoch.Budget{{Name: "origin", Unit: "/s", Burst: time.Second, Spec: allocator.Spec{
		Budget: whole, Weights: weights, Classes: []allocator.ClassSpec{{Name: "high", Reservation: whole / 2}, {Name: "low", Reservation: whole / 2}},
	}}}
	return d
}

// lineageOf is the first epoch of a document, and one that follows it.
func lineageOf(t testing.TB, d *epoch.Document, next *epoch.Document, canary string) (root, child *epoch.Record) {
	t.Helper()
	dir := ledger.NewDirectory()
	e, err := epoch.Root(d, dir)
	if err != nil {
		t.Fatal(err)
	}
	if root, err = epoch.Decode(e.ID, e.Body, dir); err != nil {
		t.Fatal(err)
	}
	if child, err = root.Child(epoch.Edit{Document: next, Canary: canary}, dir); err != nil {
		t.Fatal(err)
	}
	return root, child
}

// answers are the messages by which a peer tells an epoch.
func answers(t testing.TB, from string, r *epoch.Record) (out []gossip.Message) {
	t.Helper()
	packets, err := wire.NewEncoder(r.Epoch.Root, ledger.NewDirectory(), wire.NewVectors()).Epoch(r.Epoch)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range packets {
		out = append(out, gossip.Message{From: from, Fingerprint: r.Epoch.Root, Packet: p})
	}
	return out
}

func peerOf(name string, fingerprint uint64) gossip.Member {
	return gossip.Member{Name: name, Fingerprint: fingerprint, Provisional: fingerprint == 0}
}

const second = int64(time.Second)

func TestAJoinerTakesTheNewestEpochOfTheOnlyLineage(t *testing.T) {
	root, child := lineageOf(t, contents("test", 100, "a", "b"), contents("test", 200, "a", "b", "c"), "")
	peers := []gossip.Member{peerOf("a", root.Epoch.Root), peerOf("b", root.Epoch.Root), peerOf("z", 0)}
	j := newJoiner("test")
	var asked []string
	for now := second; now < 2*second; now += askEvery / 2 {
		if ask, answer := j.turn(now, peers); ask != "" {
			asked = append(asked, ask)
		} else if answer != nil {
			t.Fatal("an answer before one came")
		}
	}
	if !slices.Equal(asked, []string{"a", "b"}) {
		t.Errorf("asked %v in a second, want each peer that knows, in turn", asked)
	}
	for _, r := range []*epoch.Record{child, root, child} {
		for _, m := range answers(t, "b", r) {
			if drop := j.receive(2*second, m); drop != "" {
				t.Errorf("an answer was dropped: %s", drop)
			}
		}
	}
	if _, got := j.turn(2*second, peers); got == nil || got.Epoch.ID != child.Epoch.ID {
		t.Errorf("got %v, want the newer of two answers", got)
	}
}

func TestAJoinerWaitsAMomentForPeersOfAnotherLineage(t *testing.T) {
	root, _ := lineageOf(t, contents("test", 100, "a", "b"), contents("test", 200, "a", "b"), "")
	other, _ := lineageOf(t, contents("test", 300, "x", "y"), contents("test", 200, "x", "y"), "")
	ours, theirs := peerOf("a", root.Epoch.Root), peerOf("x", other.Epoch.Root)
	j := newJoiner("test")
	j.turn(second, []gossip.Member{ours})
	for _, m := range answers(t, "a", root) {
		j.receive(second, m)
	}
	if _, answer := j.turn(second+settleTime-1, []gossip.Member{ours}); answer != nil {
		t.Error("the first answer was taken before others could show")
	}
	for now := second + settleTime; now < 60*second; now += second {
		if ask, answer := j.turn(now, []gossip.Member{ours, theirs}); ask != "" || answer != nil {
			t.Fatalf("between two lineages it asks %q and takes %v", ask, answer)
		}
	}
	if got := j.reason(); !strings.Contains(got, "two clusters") || !strings.Contains(got, "a (") || !strings.Contains(got, "x (") {
		t.Errorf("reason %q, want both sides by name", got)
	}
	theirs.State = gossip.Dead
	if _, answer := j.turn(60*second, []gossip.Member{ours, theirs}); answer == nil {
		t.Error("it does not go on when the other cluster is gone")
	}
}

func TestAJoinerSaysWhatItWaitsForAndTheMend(t *testing.T) {
	j := newJoiner("test")
	for _, tc := range []struct {
		name    string
		members []gossip.Member
		want    string
	}{
		{"nobody", nil, "gossip.seeds"},
		{"only refused and dead ones", []gossip.Member{{Name: "a", Fingerprint: 1, Refused: "fingerprint"}, {Name: "b", Fingerprint: 1, State: gossip.Dead}}, "gossip.seeds"},
		{"none that knows", []gossip.Member{peerOf("a", 0), peerOf("b", 0)}, "start all nodes with --bootstrap once"},
		{"one that knows", []gossip.Member{peerOf("a", 0), peerOf("b", 7)}, "being asked"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			j.turn(second, tc.members)
			if got := j.reason(); !strings.HasPrefix(got, "no epoch yet") || !strings.Contains(got, tc.want) {
				t.Errorf("reason %q, want it to name %q", got, tc.want)
			}
		})
	}
}

func TestAJoinerReadsOnlyAnswersToItsQuestions(t *testing.T) {
	root, trial := lineageOf(t, contents("test", 100, "a", "b"), contents("test", 200, "a", "b"), "a")
	foreign, _ := lineageOf(t, contents("prod", 100, "a", "b"), contents("prod", 200, "a", "b"), "")
	good := answers(t, "a", root)[0]
	with := func(edit func(*gossip.Message)) gossip.Message {
		m := good
		edit(&m)
		return m
	}
	row := []byte{0x93, 0x10, 3, 0}
	for _, tc := range []struct {
		name string
		m    gossip.Message
		drop string
	}{
		{"of a peer that was not asked", with(func(m *gossip.Message) { m.From = "b" }), "provisional"},
		{"of a peer without a lineage", with(func(m *gossip.Message) { m.Fingerprint = 0 }), "provisional"},
		{"of a peer of another lineage", with(func(m *gossip.Message) { m.Fingerprint++ }), "epoch-refused"},
		{"by relay", with(func(m *gossip.Message) { m.Via = gossip.Relay }), "provisional"},
		{"by push/pull", with(func(m *gossip.Message) { m.Via = gossip.Sync }), "provisional"},
		{"garbage", with(func(m *gossip.Message) { m.Packet = []byte("garbage") }), "type"},
		{"another kind", with(func(m *gossip.Message) { m.Packet = row }), "short"},
		{"a changed body", with(func(m *gossip.Message) {
			m.Packet = slices.Clone(m.Packet)
			m.Packet[len(m.Packet)-1] ^= 1
		}), "epoch-refused"},
		{"of another cluster", answers(t, "a", foreign)[0], "epoch-refused"},
		{"on trial at another node", answers(t, "a", trial)[0], "epoch-on-trial"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			j := newJoiner("test")
			j.turn(second, []gossip.Member{peerOf("a", root.Epoch.Root)})
			if got := j.receive(second, tc.m); got != tc.drop {
				t.Errorf("dropped as %q, want %q", got, tc.drop)
			}
			if _, answer := j.turn(10*second, []gossip.Member{peerOf("a", tc.m.Fingerprint)}); answer != nil {
				t.Errorf("it was taken: %v", answer.Epoch.ID)
			}
		})
	}
	j := newJoiner("test")
	j.turn(second, []gossip.Member{peerOf("a", root.Epoch.Root)})
	if got := j.receive(second+answerMax+1, good); got != "provisional" {
		t.Errorf("an answer that came too late is dropped as %q", got)
	}
}

func TestALongEpochArrivesOverALossyLinkByAskingAgain(t *testing.T) {
	d := contents("test", 100, "a", "b")
	for i := range 300 { // bodies are packed: names that pack badly
		b := d.Budgets[0]
		b.Name = "budget-" + strings.Repeat(string(rune('a'+i%26)), 3) + time.Duration(i*i*7919).String()
		d.Budgets = append(d.Budgets, b)
	}
	root, _ := lineageOf(t, d, contents("test", 200, "a", "b"), "")
	parts := answers(t, "a", root)
	if len(parts) < 3 {
		t.Fatalf("a body of %d packets tests nothing", len(parts))
	}
	j := newJoiner("test")
	peers := []gossip.Member{peerOf("a", root.Epoch.Root)}
	now := second
	for try := range 2 {
		j.turn(now, peers)
		for i, m := range parts {
			if i%2 == try { // half of each answer is lost
				j.receive(now, m)
			}
		}
		now += second
	}
	if _, answer := j.turn(now, peers); answer == nil || answer.Epoch.ID != root.Epoch.ID {
		t.Error("two halves of two answers do not make one")
	}
}

func TestAnAnswerThatNoCoreCanBeBuiltFromIsSaidAndAskedForAgain(t *testing.T) {
	root, _ := lineageOf(t, contents("test", 100, "a", "b"), contents("test", 200, "a", "b"), "")
	peers := []gossip.Member{peerOf("a", root.Epoch.Root)}
	j := newJoiner("test")
	j.turn(second, peers)
	j.receive(second, answers(t, "a", root)[0])
	_, answer := j.turn(2*second, peers)
	if answer == nil {
		t.Fatal("no answer")
	}
	j.refuse(errors.New("it does not fit"))
	if ask, again := j.turn(3*second, peers); ask != "a" || again != nil {
		t.Errorf("asks %q and has %v", ask, again)
	}
	if got := j.reason(); !strings.Contains(got, "it does not fit") {
		t.Errorf("reason %q", got)
	}
}

// FuzzAnswer: whatever peers send, a joiner neither panics nor takes an epoch
// that does not hash to its id, and what it holds is bounded by its questions.
func FuzzAnswer(f *testing.F) {
	root, child := lineageOf(f, contents("test", 100, "a", "b"), contents("test", 200, "a", "b", "c"), "")
	fp := root.Epoch.Root
	for _, r := range []*epoch.Record{root, child} {
		for _, m := range answers(f, "a", r) {
			f.Add(m.Packet, fp, uint8(gossip.Direct))
			f.Add(m.Packet[:len(m.Packet)/2], fp, uint8(gossip.Direct))
			f.Add(m.Packet, fp+1, uint8(gossip.Sync))
		}
	}
	f.Add(wire.NewEncoder(0, ledger.NewDirectory(), wire.NewVectors()).LineageWanted(), uint64(0), uint8(0))
	f.Add([]byte{}, fp, uint8(0))
	f.Fuzz(func(t *testing.T, packet []byte, fingerprint uint64, via uint8) {
		j := newJoiner("test")
		peers := []gossip.Member{peerOf("a", fp)}
		j.turn(second, peers)
		for range 3 {
			j.receive(second, gossip.Message{From: "a", Fingerprint: fingerprint, Packet: packet, Via: gossip.Via(via % 3)})
		}
		if _, answer := j.turn(2*second, peers); answer != nil {
			if id := answer.Epoch.ID; id != root.Epoch.ID && id != child.Epoch.ID {
				t.Fatalf("took %v", id)
			}
		}
		_ = j.reason()
	})
}
