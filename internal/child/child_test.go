package child

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestAChildThatFailsIsReportedWithItsLastLines(t *testing.T) {
	p, err := withSupervisor(t).Start(role("fails"))
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	text := p.Failure().Error()
	if !strings.Contains(text, "exit status 3") || !strings.HasSuffix(text, "    the reason") ||
		!strings.Contains(text, "line 39") || strings.Contains(text, "line 20\n") {
		t.Errorf("failure reads:\n%s", text)
	}
	if p.EndedAt().IsZero() {
		t.Error("its end has no time")
	}
}

func TestTheWholeLogGoesToAFileOverSeveralLives(t *testing.T) {
	s := withSupervisor(t)
	l := role("fails")
	l.LogFile = filepath.Join(t.TempDir(), "log")
	for range 2 {
		p, err := s.Start(l)
		if err != nil {
			t.Fatal(err)
		}
		<-p.Done()
	}
	text, err := os.ReadFile(l.LogFile)
	if err != nil || strings.Count(string(text), "\n") != 82 || strings.Count(string(text), "line 0\n") != 2 {
		t.Errorf("the file says (%v):\n%s", err, text)
	}
}

func TestALogFileThatCannotBeMadeIsAnError(t *testing.T) {
	l := role("fails")
	l.LogFile = filepath.Join(t.TempDir(), "no", "log")
	if _, err := withSupervisor(t).Start(l); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "fails") {
		t.Errorf("error %v, want one that names the child and the file", err)
	}
}

func TestClosingEndsEveryChildByItself(t *testing.T) {
	s := New()
	var all []*Process
	for range 3 {
		p := started(t, s, "hangs")
		if group, err := syscall.Getpgid(p.PID()); err != nil || group != p.PID() {
			t.Errorf("child %d is in group %d (%v), want its own", p.PID(), group, err)
		}
		all = append(all, p)
	}
	if err := all[1].Pause(); err != nil {
		t.Error(err)
	}
	s.Close(time.Minute)
	for _, p := range all {
		if gone, err := p.Ended(); !gone || err != nil {
			t.Errorf("%s: ended %v with %v, want yes and by itself, also the paused one", p.Name(), gone, err)
		}
		if err := syscall.Kill(p.PID(), 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("%s: process %d is still there (%v)", p.Name(), p.PID(), err)
		}
	}
}

func TestKillIsAtOnceAndSeenAsSuch(t *testing.T) {
	p := started(t, withSupervisor(t), "hangs")
	if gone, _ := p.Ended(); gone || !p.EndedAt().IsZero() {
		t.Error("ended before it was killed")
	}
	p.Kill()
	if !killed(p) {
		t.Errorf("ended with %v, want killed", p.err)
	}
	p.Kill() // a second time does no harm
	if err := p.Signal(syscall.SIGHUP); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("a signal to a dead child: %v", err)
	}
}

func killed(p *Process) bool {
	_, err := p.Ended()
	exit, ok := errors.AsType[*exec.ExitError](err)
	return ok && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
}

func TestWhoDoesNotStopInTimeIsKilled(t *testing.T) {
	s := withSupervisor(t)
	if p := started(t, s, "stubborn"); !p.Stop(time.Millisecond) || !killed(p) {
		t.Error("one that ignores TERM was not killed")
	}
	if p := started(t, s, "hangs"); p.Stop(time.Minute) || killed(p) {
		t.Error("one that obeys TERM was killed")
	}
}

func TestChildrenDieWithAParentThatIsKilled(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	l := role("parent")
	l.Stdout = w
	p, err := withSupervisor(t).Start(l)
	if err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	if line, err := bufio.NewReader(r).ReadString('\n'); err != nil || line != "hanging\n" { // the grandchild is up
		t.Fatalf("grandchild says %q (%v)", line, err)
	}
	p.Kill()
	// The pipe ends when its last writer, the grandchild, is gone.
	if _, err := io.Copy(io.Discard, r); err != nil {
		t.Error(err)
	}
}

func TestAHookMakesTheStartAndUnbindsTheChildFromItsThread(t *testing.T) {
	s := withSupervisor(t)
	var death syscall.Signal = -1
	l := role("hangs")
	l.Start = func(cmd *exec.Cmd) error {
		death = pdeathsig(cmd.SysProcAttr)
		return cmd.Start()
	}
	if _, err := s.Start(l); err != nil || death != 0 {
		t.Errorf("started by the hook with a death signal of %v (%v), want none", death, err)
	}
	l.Start = func(*exec.Cmd) error { return io.ErrClosedPipe }
	if _, err := s.Start(l); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("the hook's failure came out as %v", err)
	}
}

func TestTheEnvironmentIsCleanOfAPrefix(t *testing.T) {
	t.Setenv("CHILD_TEST_X", "1")
	t.Setenv("CHILDLESS", "2")
	env := strings.Join(CleanEnv("CHILD_"), "\n") + "\n"
	if strings.Contains(env, "CHILD_TEST_X") || !strings.Contains(env, "CHILDLESS=2\n") {
		t.Errorf("environment:\n%s", env)
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

func TestTheFirstLineIsHandedOverAndTheRestForgotten(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"{\"a\":1}\nand\nmore", `{"a":1}`},
		{strings.Repeat("x", 5000), strings.Repeat("x", 5000)}, // without an end: as far as it came
	} {
		f := NewFirstLine()
		for i := 0; i < len(c.in); i += 1000 {
			_, _ = f.Write([]byte(c.in[i:min(i+1000, len(c.in))]))
		}
		if got := string(<-f.Ready()); got != c.want {
			t.Errorf("first line %.20q, want %.20q", got, c.want)
		}
	}
}
