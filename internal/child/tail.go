package child

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
)

// tail keeps the end of what a child writes, at most tailMax bytes, and appends
// all of it to a file if one is open.
type tail struct {
	mu   sync.Mutex // guards all below
	text []byte
	file *os.File
	err  error // the first one of the file
}

const tailMax = 32 << 10

// open makes a file get everything from now on; an empty name is no file.
func (t *tail) open(name string) (err error) {
	if name == "" {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.file, err = os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		return fmt.Errorf("log: %w", err)
	}
	return nil
}

// close ends the file.
func (t *tail) close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.file == nil {
		return t.err
	}
	err := errors.Join(t.err, t.file.Close())
	t.file = nil
	return err
}

// Write never fails: a full disk must not end a child.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.file != nil && t.err == nil {
		_, t.err = t.file.Write(b)
	}
	t.text = append(t.text, b...)
	if over := len(t.text) - tailMax; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(b), nil
}

// last is [Process.Last].
func (t *tail) last(n int) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := strings.Split(string(bytes.TrimSpace(t.text)), "\n")
	from := max(0, len(lines)-n)
	for i, line := range lines {
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			from = min(i, from)
			break
		}
	}
	return "    " + strings.Join(lines[from:min(from+n, len(lines))], "\n    ")
}
