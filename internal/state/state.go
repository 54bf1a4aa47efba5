// Package state keeps the little that a node must remember over a restart in
// one small file: written whole beside the old one, checked by a hash, renamed
// into place. A file that is torn or belongs to another node is recognised. An
// OS lock on the directory keeps a second process of the same name away
// (assumption A4 of docs/architecture.md). That a file is an old copy cannot be
// seen from the file: the ledger learns it from what peers have heard.
//
// The file is one line of JSON with the format, the owner and the SHA-256 of
// itself and of all that follows, then the memory as JSON. Files are at most 8
// MiB; what crashed saves left behind is removed when the directory is opened.
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
	// ErrFormat: whole, but not of a format that this version knows.
	ErrFormat = errors.New("the state file is of a later version")
)

// ErrTooLarge says that a memory does not fit into a file that Load would read.
var ErrTooLarge = errors.New("the memory is too large to be saved")

// ErrLocked says that another process of this node is running.
var ErrLocked = errors.New("another process holds this data directory")

const (
	fileName = "state.json"
	sizeMax  = 8 << 20
	// format of the files written. From 2 on the hash covers the first line too.
	format = 2
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
	d := &Dir{path: path, cluster: cluster, node: node, lock: lock}
	d.sweep()
	return d, nil
}

// sweep removes what saves that a crash cut off have left. Nobody else writes
// here: the lock is held. A file that cannot be removed does no harm.
func (d *Dir) sweep() {
	left, _ := filepath.Glob(filepath.Join(d.path, fileName+".*"))
	for _, f := range left {
		_ = os.Remove(f)
	}
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
	// The line must be as Save would write it, so that no change of a byte in it
	// goes unseen.
	if !ok || len(raw) > sizeMax || json.Unmarshal(first, &h) != nil || !bytes.Equal(first, h.line()) || h.SHA256 != h.sum(payload) {
		return false, fmt.Errorf("state: %s: %w", f.Name(), ErrTorn)
	}
	if h.Format != format {
		return false, fmt.Errorf("state: %s has format %d, this version knows %d: %w", f.Name(), h.Format, format, ErrFormat)
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
	h := header{Format: format, Cluster: d.cluster, Node: d.node}
	h.SHA256 = h.sum(payload)
	data := append(append(h.line(), '\n'), payload...)
	if len(data) > sizeMax {
		return fmt.Errorf("state: save %d bytes: %w", len(data), ErrTooLarge)
	}
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

// line returns the first line of the file, without its end.
func (h header) line() []byte {
	b, err := json.Marshal(h)
	if err != nil {
		panic(err) // strings and a number
	}
	return b
}

// sum hashes the line with an empty sum, and the payload.
func (h header) sum(payload []byte) string {
	h.SHA256 = ""
	s := sha256.New()
	s.Write(h.line())
	s.Write(payload)
	return hex.EncodeToString(s.Sum(nil))
}
