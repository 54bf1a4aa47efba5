package demo

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestAChildThatFailsIsReportedWithItsLastLines(t *testing.T) {
	s := withSupervisor(t)
	p, err := s.start(helperLaunch("fails"))
	if err != nil {
		t.Fatal(err)
	}
	<-p.done
	text := p.failure().Error()
	if !strings.Contains(text, "exit status 3") || !strings.HasSuffix(text, "    the reason") ||
		!strings.Contains(text, "line 39") || strings.Contains(text, "line 20\n") {
		t.Errorf("failure reads:\n%s", text)
	}
}

func TestClosingEndsEveryChildByItself(t *testing.T) {
	s := newSupervisor()
	var all []*process
	for _, role := range []string{"hangs", "waits", "hangs"} {
		l := helperLaunch(role)
		l.stdin = true
		p, err := s.start(l)
		if err != nil {
			t.Fatal(err)
		}
		if group, err := syscall.Getpgid(p.cmd.Process.Pid); err != nil || group != p.cmd.Process.Pid {
			t.Errorf("child %d is in group %d (%v), want its own", p.cmd.Process.Pid, group, err)
		}
		all = append(all, p)
	}
	s.close(time.Minute)
	for _, p := range all {
		if gone, _ := p.ended(); !gone {
			t.Errorf("%s still runs", p.name)
		}
		if err := syscall.Kill(p.cmd.Process.Pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("%s: process %d is still there (%v)", p.name, p.cmd.Process.Pid, err)
		}
	}
}

func TestKillIsAtOnceAndSeenAsSuch(t *testing.T) {
	s := withSupervisor(t)
	p, err := s.start(helperLaunch("hangs"))
	if err != nil {
		t.Fatal(err)
	}
	p.kill()
	_, err = p.ended()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("ended with %v, want killed", err)
	}
	p.kill() // a second time does no harm
}

func TestChildrenDieWithAParentThatIsKilled(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s := withSupervisor(t)
	l := helperLaunch("parent")
	l.stdout = w
	p, err := s.start(l)
	if err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	if line := lineOf(t, r); line != "hanging\n" { // the grandchild is up
		t.Fatalf("grandchild says %q", line)
	}
	p.kill()
	// The pipe ends when its last writer, the grandchild, is gone.
	if _, err := io.Copy(io.Discard, r); err != nil {
		t.Error(err)
	}
}

func TestTheTailIsBounded(t *testing.T) {
	var b tail
	for range 10_000 {
		_, _ = b.Write([]byte("0123456789\n"))
	}
	if len(b.text) > tailMax || b.last(2) != "    0123456789\n    0123456789" {
		t.Errorf("%d bytes kept, last two lines %q", len(b.text), b.last(2))
	}
}

func TestOfAPanicTheFirstLinesAreShown(t *testing.T) {
	var b tail
	_, _ = b.Write([]byte("before\npanic: the cause\nframe 1\nframe 2\nframe 3\n"))
	if got := b.last(2); got != "    panic: the cause\n    frame 1" {
		t.Errorf("last two lines %q", got)
	}
}
