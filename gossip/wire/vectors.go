package wire

import (
	"container/list"

	"github.com/cespare/xxhash/v2"
)

// Vectors keeps incarnation vectors by the hash of their bytes, whoever sent
// them: what this node published itself and what it read from others. It is
// bounded in number and in bytes and drops what was longest unused. A dropped
// vector costs its next user one question to a peer.
//
// It starts empty and is shared by one Encoder and one Decoder.
type Vectors struct {
	byDigest map[uint64]*list.Element
	used     list.List // of *vector, the latest used first
	bytes    int
}

type vector struct {
	digest uint64
	incs   []byte // 8 bytes for each ref, big endian
}

// Bounds of a Vectors. A cluster in quiet times uses one vector in all, one with
// every node's view in flux a few for each node.
const (
	maxVectors     = 4096
	maxVectorBytes = 8 << 20
)

// NewVectors returns an empty store.
func NewVectors() *Vectors { return &Vectors{byDigest: map[uint64]*list.Element{}} }

// Has reports whether the vector of that digest is held.
func (v *Vectors) Has(digest uint64) bool { return v.byDigest[digest] != nil }

// Len returns the number of vectors held, Bytes their size.
func (v *Vectors) Len() int { return len(v.byDigest) }

// Bytes returns the size of the vectors held, in bytes.
func (v *Vectors) Bytes() int { return v.bytes }

func digestOf(incs []byte) uint64 { return xxhash.Sum64(incs) }

// get returns the vector of that digest, which must not be changed, or nil.
func (v *Vectors) get(digest uint64) []byte {
	el := v.byDigest[digest]
	if el == nil {
		return nil
	}
	v.used.MoveToFront(el)
	return el.Value.(*vector).incs
}

// put keeps a copy of incs, whose hash is digest.
func (v *Vectors) put(digest uint64, incs []byte) {
	if v.get(digest) != nil {
		return
	}
	v.byDigest[digest] = v.used.PushFront(&vector{digest, append([]byte{}, incs...)})
	v.bytes += len(incs)
	for len(v.byDigest) > maxVectors || v.bytes > maxVectorBytes {
		old := v.used.Remove(v.used.Back()).(*vector)
		delete(v.byDigest, old.digest)
		v.bytes -= len(old.incs)
	}
}
