package demo

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/term"
)

// screen prints lines that stay and, on a terminal, a frame below them that is
// drawn anew in place. Safe for concurrent use.
type screen struct {
	mu    sync.Mutex // guards all
	out   io.Writer
	file  *os.File // the terminal; nil when there is none
	drawn int      // lines of the frame on the screen
}

const (
	hideCursor = "\x1b[?25l"
	showCursor = "\x1b[?25h"
	clearBelow = "\x1b[J"
)

// newScreen uses out as a terminal if it is one and plain is false.
func newScreen(out io.Writer, plain bool) *screen {
	s := &screen{out: out}
	if f, ok := out.(*os.File); ok && !plain && term.IsTerminal(int(f.Fd())) {
		s.file = f
	}
	return s
}

// live tells whether frames can be drawn.
func (s *screen) live() bool { return s.file != nil }

// size is that of the terminal, in characters.
func (s *screen) size() (width, height int) {
	if s.file != nil {
		if w, h, err := term.GetSize(int(s.file.Fd())); err == nil && w > 20 && h > 4 {
			return w, h
		}
	}
	return 80, 24
}

// say prints a line that stays.
func (s *screen) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.eraseLocked()
	fmt.Fprintf(s.out, format+"\n", args...)
}

// draw replaces the frame. It does nothing without a terminal.
func (s *screen) draw(frame []string) {
	if s.file == nil {
		return
	}
	width, height := s.size()
	frame = frame[:min(len(frame), height-1)]
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	b.WriteString(hideCursor)
	if s.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\r", s.drawn)
	}
	b.WriteString(clearBelow)
	for _, line := range frame {
		b.WriteString(cut(line, width-1))
		b.WriteByte('\n')
	}
	s.drawn = len(frame)
	fmt.Fprint(s.out, b.String())
}

// end erases the frame and gives the cursor back.
func (s *screen) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.eraseLocked()
	if s.file != nil {
		fmt.Fprint(s.out, showCursor)
	}
}

func (s *screen) eraseLocked() {
	if s.drawn > 0 {
		fmt.Fprintf(s.out, "\x1b[%dA\r%s", s.drawn, clearBelow)
		s.drawn = 0
	}
}

// cut shortens a line to n characters.
func cut(line string, n int) string {
	if utf8.RuneCountInString(line) <= n {
		return line
	}
	return string([]rune(line)[:n])
}
