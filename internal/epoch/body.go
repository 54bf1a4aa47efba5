package epoch

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"subak/allocator/ledger"
)

const (
	// BodyMax bounds a body in bytes, as it travels and lies on disk. A thousand
	// budgets over 22 nodes take about a tenth of it.
	BodyMax = 256 << 10
	// plainMax bounds what a body may unpack to.
	plainMax = 8 << 20
	// format is the first byte of a body and a field of the record: the newest
	// that this version reads and the one that it writes.
	format = 1
)

// ErrNewer says that a body was written by a later version of this program.
var ErrNewer = errors.New("the epoch was made by a newer version of subak; upgrade this node")

// content is the record as it is encoded. The order of the fields is the order
// of the bytes that are hashed.
type content struct {
	Format       int      `json:"format"`
	Version      uint64   `json:"version"`
	Parent       name     `json:"parent"`
	Root         uint64   `json:"root"` // 0 in a root itself
	ParentRoster []string `json:"parent_roster,omitempty"`
	Forced       []forced `json:"forced,omitempty"` // by name
	Canary       string   `json:"canary,omitempty"`
	History      []uint64 `json:"history,omitempty"`
	Document     Document `json:"document"`
}

// name is an epoch's id in JSON.
type name struct {
	Version uint64 `json:"version"`
	Hash    uint64 `json:"hash"`
}

type forced struct {
	Node        string `json:"node"`
	Incarnation uint64 `json:"incarnation"`
}

// pack turns a record into its body and its hash.
func (c *content) pack() (body []byte, hash uint64, err error) {
	plain, err := json.Marshal(c)
	if err != nil {
		return nil, 0, fmt.Errorf("epoch: encode: %w", err)
	}
	if len(plain) > plainMax {
		return nil, 0, fmt.Errorf("epoch: %d bytes of budgets and nodes, at most %d are allowed", len(plain), plainMax)
	}
	var b bytes.Buffer
	b.WriteByte(format)
	w, err := flate.NewWriter(&b, flate.DefaultCompression)
	if err != nil {
		return nil, 0, fmt.Errorf("epoch: encode: %w", err)
	}
	_, err = w.Write(plain)
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, 0, fmt.Errorf("epoch: encode: %w", err)
	}
	if b.Len() > BodyMax {
		return nil, 0, fmt.Errorf("epoch: budgets and nodes take %d bytes when packed, at most %d are allowed", b.Len(), BodyMax)
	}
	return b.Bytes(), hashOf(plain), nil
}

// unpack reads a body that should hash to id.
func unpack(id ledger.EpochID, body []byte) (*content, error) {
	plain, err := inflate(body)
	if err != nil {
		return nil, err
	}
	if got := hashOf(plain); got != id.Hash {
		return nil, fmt.Errorf("epoch: body hashes to %016x, not %016x", got, id.Hash)
	}
	c := &content{}
	dec := json.NewDecoder(bytes.NewReader(plain))
	dec.DisallowUnknownFields()
	if err := dec.Decode(c); err != nil {
		return nil, newerOr(plain, fmt.Errorf("epoch: decode: %w", err))
	}
	if c.Format != format {
		return nil, newerOr(plain, fmt.Errorf("epoch: format %d in a body of format %d", c.Format, format))
	}
	again, err := json.Marshal(c)
	if err != nil || !bytes.Equal(again, plain) {
		return nil, errors.New("epoch: decode: not in canonical form")
	}
	if c.Version != id.Version {
		return nil, fmt.Errorf("epoch: version %d in a body named %v", c.Version, id)
	}
	return c, nil
}

// newerOr is ErrNewer if plain says that it is of a later format, else err.
func newerOr(plain []byte, err error) error {
	var head struct {
		Format int `json:"format"`
	}
	if json.Unmarshal(plain, &head) == nil && head.Format > format {
		return fmt.Errorf("format %d, this version reads %d: %w", head.Format, format, ErrNewer)
	}
	return err
}

// inflate unpacks a body, within plainMax.
func inflate(body []byte) ([]byte, error) {
	switch {
	case len(body) == 0 || len(body) > BodyMax:
		return nil, fmt.Errorf("epoch: body of %d bytes, 1 to %d allowed", len(body), BodyMax)
	case body[0] > format:
		return nil, fmt.Errorf("format %d, this version reads %d: %w", body[0], format, ErrNewer)
	case body[0] != format:
		return nil, errors.New("epoch: body of an unknown format")
	}
	plain, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(body[1:])), plainMax+1))
	if err != nil {
		return nil, fmt.Errorf("epoch: unpack: %w", err)
	}
	if len(plain) > plainMax {
		return nil, fmt.Errorf("epoch: body unpacks to more than %d bytes", plainMax)
	}
	return plain, nil
}

// hashOf is the first eight bytes of SHA-256. It is never 0, which means none.
func hashOf(plain []byte) uint64 {
	sum := sha256.Sum256(plain)
	return max(1, binary.BigEndian.Uint64(sum[:]))
}
