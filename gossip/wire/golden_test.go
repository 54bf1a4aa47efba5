package wire

import (
	"encoding/hex"
	"testing"

	"subak/allocator/ledger"
)

// The bytes below are the format. A change here needs a new major, or it must be
// shown that nodes of before still read it.
func TestTheFormatIsStable(t *testing.T) {
	s := threeNodes()
	ep := s.known[testEpoch]
	ep.Body, ep.Parent = []byte("body"), ledger.EpochID{Version: 6, Hash: 9}
	first, err := s.dec.Decode(pack(t, goodRow()...))
	if err != nil {
		t.Fatal(err)
	}
	var rows [4][]byte
	for i := range rows {
		packet, _, err := s.enc.Row(first.Row, ep)
		if err != nil {
			t.Fatal(err)
		}
		rows[i] = append([]byte{}, packet...)
	}
	first.Row.Clock = 0x89abcdef
	clockRow, _, err := s.enc.Row(first.Row, ep)
	if err != nil {
		t.Fatal(err)
	}
	clockRow = append([]byte{}, clockRow...)
	first.Row.Heard, first.Row.Extra = nil, nil
	bareRow, _, err := s.enc.Row(first.Row, ep)
	if err != nil {
		t.Fatal(err)
	}
	bareRow = append([]byte{}, bareRow...)
	vectors := s.enc.Vector(digestOf(incsOf(11, 99, 13, 14)))
	epochs, err := s.enc.Epoch(ep)
	if err != nil {
		t.Fatal(err)
	}
	state, err := AppendState(nil, []byte{0x90})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		got  []byte
		want string
	}{
		{"row with vector", rows[0], "dc00101001ce3413e8fa07cfa1b2c3d4e5f607180163cd03e801cd0bb805c40c0bf403070801003c01021405c420000000000000000b0000000000000063000000000000000d000000000000000ec40402000106c402000391a8737472616e676572"},
		{"row with digest", rows[3], "dc00101001ce3413e8fa07cfa1b2c3d4e5f607180163cd03e801cd0bb805c40c0bf403070801003c01021405cf2a9c502bc5d292b9c40402000106c402000391a8737472616e676572"},
		{"row with clock", clockRow, "dc00111001ce3413e8fa07cfa1b2c3d4e5f607180163cd03e801cd0bb805c40c0bf403070801003c01021405cf2a9c502bc5d292b9c40402000106c402000391a8737472616e676572ce89abcdef"},
		{"row without optional fields", bareRow, "9c1001ce3413e8fa07cfa1b2c3d4e5f607180163cd03e801cd0bb805c40c0bf403070801003c01021405"},
		{"vector", vectors[0], "971002ce3413e8facf2a9c502bc5d292b92000c420000000000000000b0000000000000063000000000000000d000000000000000e"},
		{"vector wanted", s.enc.VectorWanted(77), "941003ce3413e8fa4d"},
		{"epoch", epochs[0], "9b1004ce3413e8fa07cfa1b2c3d4e5f607180609cffeedfacecafe12340400c404626f6479"},
		{"epoch wanted", s.enc.EpochWanted(testEpoch), "951005ce3413e8fa07cfa1b2c3d4e5f60718"},
		{"lineage wanted", NewEncoder(0, s.dir, NewVectors()).LineageWanted(), "93100600"},
		{"state", state, "0190"},
	} {
		if got := hex.EncodeToString(c.got); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}
