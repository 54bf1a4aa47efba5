//go:build linux

package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"subak/testbed/evidence"
	"subak/testbed/run"
)

// screen shows how one run goes: on a terminal a line that is renewed, elsewhere a
// line now and then.
type screen struct {
	out  io.Writer
	live bool
	name string

	mu    sync.Mutex // guards what follows
	shown time.Time
	line  bool // a live line is there
}

// plainEvery is the time between two lines of progress that stay.
const plainEvery = 10 * time.Second

func newScreen(out io.Writer, name string) *screen {
	s := &screen{out: out, name: name, shown: time.Now()}
	if f, ok := out.(*os.File); ok {
		s.live = term.IsTerminal(int(f.Fd()))
	}
	return s
}

// say prints a line that stays.
func (s *screen) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clearLocked()
	fmt.Fprintf(s.out, "%s: %s\n", s.name, fmt.Sprintf(format, args...))
}

func (s *screen) clearLocked() {
	if s.line {
		fmt.Fprint(s.out, "\r\033[K")
		s.line = false
	}
}

func (s *screen) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clearLocked()
}

func (s *screen) progress(p run.Progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.live && time.Since(s.shown) < plainEvery {
		return
	}
	s.shown = time.Now()
	s.clearLocked()
	fmt.Fprintf(s.out, "%s: %s", s.name, progressLine(p))
	if s.live {
		s.line = true
		return
	}
	fmt.Fprintln(s.out)
}

func progressLine(p run.Progress) string {
	line := fmt.Sprintf("%s, %.0f s left, shares %.0f, origin %.0f of %d/s", p.Phase, max(0, (p.Length-p.At).Seconds()), p.Shares, p.Origin, p.Limit)
	if len(p.Down) > 0 {
		line += ", down: " + strings.Join(p.Down, " ")
	}
	return line
}

// conclude prints the verdicts.
func (s *screen) conclude(o *evidence.Outcome) {
	for _, v := range o.Verdicts {
		mark := "kept  "
		if !v.Kept {
			mark = "BROKEN"
		}
		s.say("%s %s: %s (%s)", mark, v.Claim, v.Measured, v.Bound)
	}
	for _, b := range o.Run.Busy {
		s.say("machine too busy: %s", b)
	}
	for _, e := range o.Run.Events {
		if e.Kind == "failed" {
			s.say("not done: %s", e.Text)
		}
	}
	if o.Run.Logs != "" {
		s.say("logs: %s", o.Run.Logs)
	}
}
