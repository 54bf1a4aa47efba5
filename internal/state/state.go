// Package state keeps the little that a node must remember over a restart in
// one small file: written whole beside the old one, checked by a hash, renamed
// into place. A file that is torn or belongs to another node is recognised. An
// OS lock on the directory keeps a second process of the same name away
// (assumption A4 of docs/architecture.md).
//
// A Dir is not safe for concurrent use.
package state

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Faults of a stored file. Each leads to a start without memory, which is safe
// and slower: the node borrows until a config epoch gives it its base again.
var (
	ErrTorn    = errors.New("the state file is torn or was changed by hand")
	ErrForeign = errors.New("the state file belongs to another node or cluster")
)

// ErrLocked says that another process of this node is running.
var ErrLocked = errors.New("another process holds this data directory")

const (
	fileName = "state.json"
	sizeMax  = 8 << 20
)

type header struct {
	Format  int    `json:"format"`
	Cluster string `json:"cluster"`
	Node    string `json:"node"`
	SHA256  string `json:"sha256"`
}

// Dir is an open, locked data directory.
type Dir struct {
	path          string
	cluster, node string
	lock          *os.File
}

// Open makes the directory if need be and locks it. The error wraps [ErrLocked]
// when another process holds it.
func Open(path, cluster, node string) (*Dir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("state: make data directory: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(path, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("state: open lock: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		lock.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("state: %s: %w", path, ErrLocked)
		}
		return nil, fmt.Errorf("state: lock %s: %w", path, err)
	}
	return &Dir{path: path, cluster: cluster, node: node, lock: lock}, nil
}

// Close gives the directory up.
func (d *Dir) Close() error { return d.lock.Close() }

// Load reads what was saved last into v. It returns false without an error if
// nothing was ever saved.
func (d *Dir) Load(v any) (bool, error) {
	f, err := os.Open(filepath.Join(d.path, fileName))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("state: %w", err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, sizeMax+1))
	if err != nil {
		return false, fmt.Errorf("state: read: %w", err)
	}
	first, payload, ok := bytes.Cut(raw, []byte("\n"))
	var h header
	if !ok || len(raw) > sizeMax || json.Unmarshal(first, &h) != nil || h.Format != 1 || h.SHA256 != sum(payload) {
		return false, fmt.Errorf("state: %s: %w", f.Name(), ErrTorn)
	}
	if h.Cluster != d.cluster || h.Node != d.node {
		return false, fmt.Errorf("state: %s is of node %q in cluster %q: %w", f.Name(), h.Node, h.Cluster, ErrForeign)
	}
	if err := json.Unmarshal(payload, v); err != nil {
		return false, fmt.Errorf("state: %s: %w: %w", f.Name(), ErrTorn, err)
	}
	return true, nil
}

// Save makes v durable: when it returns nil, v survives a crash of the machine.
// On an error the file of before is still whole.
func (d *Dir) Save(v any) error {
	payload, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("state: encode: %w", err)
	}
	head, err := json.Marshal(header{Format: 1, Cluster: d.cluster, Node: d.node, SHA256: sum(payload)})
	if err != nil {
		return fmt.Errorf("state: encode: %w", err)
	}
	data := append(append(head, '\n'), payload...)
	if err := d.replace(data); err != nil {
		return fmt.Errorf("state: save: %w", err)
	}
	return nil
}

func (d *Dir) replace(data []byte) (err error) {
	f, err := os.CreateTemp(d.path, fileName+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return err
	}
	if err = os.Rename(f.Name(), filepath.Join(d.path, fileName)); err != nil {
		return err
	}
	dir, err := os.Open(d.path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}
