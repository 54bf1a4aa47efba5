package wire

import (
	"bytes"
	"encoding/binary"
	"testing"

	"subak/allocator/ledger"
)

func TestVectorsForgetTheLongestUnusedFirst(t *testing.T) {
	v := NewVectors()
	put := func(i int) uint64 {
		incs := binary.BigEndian.AppendUint64(nil, uint64(i))
		v.put(digestOf(incs), incs)
		return digestOf(incs)
	}
	first, second := put(0), put(1)
	for i := 2; i < maxVectors; i++ {
		put(i)
	}
	if v.get(first) == nil { // used again
		t.Fatal("dropped below the limit")
	}
	put(maxVectors)
	if v.Has(second) || !v.Has(first) || v.Len() != maxVectors || v.Bytes() != 8*maxVectors {
		t.Errorf("first %v second %v, %d vectors of %d bytes", v.Has(first), v.Has(second), v.Len(), v.Bytes())
	}
}

func TestVectorsAreBoundedInBytes(t *testing.T) {
	v := NewVectors()
	big := make([]byte, 8*MaxRefs)
	for i := range 4 * maxVectorBytes / len(big) {
		binary.BigEndian.PutUint64(big, uint64(i))
		v.put(digestOf(big), big)
		if v.Bytes() > maxVectorBytes {
			t.Fatalf("%d bytes held", v.Bytes())
		}
	}
	if v.Len() != maxVectorBytes/len(big) {
		t.Errorf("%d vectors held", v.Len())
	}
}

func TestUnfinishedAssembliesAreBounded(t *testing.T) {
	var a assemblies
	part := make([]byte, PartSize)
	for i := range 10 * maxAssemblies {
		if a.add(whole{kind: KindEpoch, digest: uint64(i), total: MaxBody}, 0, part) != nil {
			t.Fatal("complete after one part")
		}
		if len(a.open) > maxAssemblies {
			t.Fatalf("%d open", len(a.open))
		}
	}
	if len(a.open) != maxAssemblies {
		t.Errorf("%d open, want %d", len(a.open), maxAssemblies)
	}
}

func TestAnAssemblyNobodyFeedsAgesOut(t *testing.T) {
	var a assemblies
	part := make([]byte, PartSize)
	a.add(whole{digest: 1, total: MaxBody}, 0, part)
	a.clock += maxAssemblyAge + 1
	a.add(whole{digest: 2, total: MaxBody}, 0, part)
	if len(a.open) != 1 || a.open[0].digest != 2 {
		t.Errorf("%d open, first %d", len(a.open), a.open[0].digest)
	}
}

func TestPartsOfDifferentWholesAreNotMixed(t *testing.T) {
	var a assemblies
	one, two := bytes.Repeat([]byte{1}, PartSize), bytes.Repeat([]byte{2}, PartSize)
	w := whole{kind: KindEpoch, total: 2 * PartSize}
	other := w
	other.parent = ledger.EpochID{Version: 1}
	a.add(w, 0, one)
	if a.add(other, PartSize, two) != nil {
		t.Fatal("joined parts of two wholes")
	}
	if got := a.add(w, PartSize, one); !bytes.Equal(got, bytes.Repeat([]byte{1}, 2*PartSize)) {
		t.Error("the whole is not the join of its parts")
	}
}

func TestNamesOfMoreEpochsThanAreKeptAreBuiltAgain(t *testing.T) {
	s := newSide("a", "b")
	var cache nameCache
	cache.dir = s.dir
	var epochs []*ledger.Epoch
	for v := range 20 {
		epochs = append(epochs, s.learn(ledger.EpochID{Version: uint64(v)}, []string{"a"}, []string{"b"}))
	}
	for range 2 {
		for _, ep := range epochs {
			n, err := cache.of(ep)
			if err != nil || n.epoch != ep || len(n.ids) != 2 {
				t.Fatalf("%+v %v", n, err)
			}
		}
	}
}

func TestAnEpochWithoutAUsableRosterIsRefused(t *testing.T) {
	s := newSide("a")
	for name, ep := range map[string]*ledger.Epoch{
		"empty":          {},
		"outside":        {Roster: []ledger.Member{{ID: 5}}},
		"parent outside": {Roster: []ledger.Member{{ID: 0}}, ParentRoster: []ledger.NodeID{-1}},
		"too many":       {Roster: make([]ledger.Member, MaxNodes+1)},
	} {
		if _, err := s.enc.names.of(ep); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestAStateYieldsItsPacketsInOrder(t *testing.T) {
	_, packets := samples(t)
	var state []byte
	for _, p := range packets {
		var err error
		if state, err = AppendState(state, p); err != nil {
			t.Fatal(err)
		}
	}
	i := 0
	for p, err := range Packets(state) {
		if err != nil || !bytes.Equal(p, packets[i]) {
			t.Fatalf("packet %d: %v", i, err)
		}
		i++
	}
	if i != len(packets) {
		t.Errorf("%d packets, want %d", i, len(packets))
	}
	for range Packets(state) {
		break // an early stop must be allowed
	}
}

func TestAStateEndsAtItsFirstFault(t *testing.T) {
	good, err := AppendState(nil, []byte{1, 2, 3})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		tail []byte
		want Reason
	}{
		"empty packet":        {[]byte{0}, ReasonTruncated},
		"length past the end": {[]byte{5, 1}, ReasonTruncated},
		"length cut off":      {[]byte{0x80}, ReasonTruncated},
		"length over MaxLong": {binary.AppendUvarint(nil, MaxLong+1), ReasonRange},
		"length of 2^63":      {binary.AppendUvarint(nil, 1<<63), ReasonRange},
		"length of 11 bytes":  {bytes.Repeat([]byte{0xff}, 11), ReasonRange},
	} {
		var errs []Reason
		for _, err := range Packets(append(bytes.Clone(good), c.tail...)) {
			errs = append(errs, ReasonOf(err))
		}
		if len(errs) != 2 || errs[0] != ReasonNone || errs[1] != c.want {
			t.Errorf("%s: got %v, want [none %v]", name, errs, c.want)
		}
	}
	for _, err := range Packets(make([]byte, MaxState+1)) {
		if ReasonOf(err) != ReasonTooLarge {
			t.Errorf("state over the limit: %v", err)
		}
	}
}

func TestAStateDoesNotGrowOverItsLimit(t *testing.T) {
	var state []byte
	var err error
	for err == nil {
		state, err = AppendState(state, make([]byte, MaxLong))
	}
	if len(state) > MaxState || len(state) < MaxState-2*MaxLong || ReasonOf(err) != ReasonTooLarge {
		t.Errorf("%d bytes, %v", len(state), err)
	}
	for _, bad := range [][]byte{nil, make([]byte, MaxLong+1)} {
		if got, err := AppendState([]byte{1}, bad); err == nil || len(got) != 1 {
			t.Errorf("packet of %d bytes: state of %d, %v", len(bad), len(got), err)
		}
	}
}
