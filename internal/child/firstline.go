package child

import "bytes"

// FirstLine is a writer that hands over the first line, such as the one in which
// a child says where it listens, and forgets the rest. Make it by [NewFirstLine].
type FirstLine struct {
	ready chan []byte
	text  []byte
	done  bool
}

// NewFirstLine returns a writer that has seen nothing.
func NewFirstLine() *FirstLine { return &FirstLine{ready: make(chan []byte, 1)} }

// Ready gets the line, without its end, once it is complete or longer than 4 KiB.
func (f *FirstLine) Ready() <-chan []byte { return f.ready }

// Write is called by one goroutine. It never fails.
func (f *FirstLine) Write(b []byte) (int, error) {
	const most = 4 << 10
	if f.done {
		return len(b), nil
	}
	f.text = append(f.text, b...)
	if line, _, ok := bytes.Cut(f.text, []byte("\n")); ok || len(f.text) > most {
		f.ready <- line
		f.done, f.text = true, nil
	}
	return len(b), nil
}
