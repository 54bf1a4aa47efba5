package demo

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// supervisor starts child processes that cannot outlive this one. Each child is
// the leader of its own process group, so that Ctrl-C in the terminal reaches the
// demo only, and asks the kernel for SIGKILL when its parent goes. The kernel
// means the parent's *thread* by that; so one goroutine, bound to its thread for
// the life of the supervisor, makes all the starts.
type supervisor struct {
	starts chan func()
	done   chan struct{}

	mu  sync.Mutex // guards all
	all []*process
}

func newSupervisor() *supervisor {
	s := &supervisor{starts: make(chan func()), done: make(chan struct{})}
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		defer close(s.done)
		for f := range s.starts {
			f()
		}
	}()
	return s
}

// process is one child.
type process struct {
	name string
	cmd  *exec.Cmd
	log  tail
	done chan struct{} // closed when it has ended and been waited for
	err  error         // valid after done
}

// launch is what to start. Stdin, when asked for, stays open until the child is
// stopped; Stdout goes to the log unless given.
type launch struct {
	name   string
	path   string
	args   []string
	env    []string
	stdin  bool
	stdout io.Writer
}

// start runs a child.
func (s *supervisor) start(l launch) (*process, error) {
	p := &process{name: l.name, done: make(chan struct{})}
	p.cmd = exec.Command(l.path, l.args...)
	p.cmd.Env = l.env
	p.cmd.SysProcAttr = childAttributes()
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	if l.stdout != nil {
		p.cmd.Stdout = l.stdout
	}
	// A process left behind that holds the log open must not hold up Wait.
	p.cmd.WaitDelay = time.Second
	if l.stdin {
		if _, err := p.cmd.StdinPipe(); err != nil {
			return nil, fmt.Errorf("demo: start %s: %w", l.name, err)
		}
	}
	started := make(chan error)
	s.starts <- func() { started <- p.cmd.Start() }
	if err := <-started; err != nil {
		return nil, fmt.Errorf("demo: start %s: %w", l.name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	s.mu.Lock()
	s.all = append(s.all, p)
	s.mu.Unlock()
	return p, nil
}

// kill is kill -9; it returns when the child is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended by itself
	<-p.done
}

// stop asks with SIGTERM, and kills after the grace.
func (p *process) stop(grace time.Duration) {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself
	select {
	case <-p.done:
	case <-time.After(grace):
		p.kill()
	}
}

// ended tells whether the child has ended, and how.
func (p *process) ended() (bool, error) {
	select {
	case <-p.done:
		return true, p.err
	default:
		return false, nil
	}
}

// failure describes a child that ended when it should not have, with the last
// lines it wrote.
func (p *process) failure() error {
	_, err := p.ended()
	if err == nil {
		err = errors.New("ended")
	}
	return fmt.Errorf("demo: %s: %w; its last lines:\n%s", p.name, err, p.log.last(15))
}

// close stops every child at once, waits for all of them, and ends the thread.
func (s *supervisor) close(grace time.Duration) {
	s.mu.Lock()
	all := s.all
	s.mu.Unlock()
	var wg sync.WaitGroup
	for _, p := range all {
		wg.Go(func() { p.stop(grace) })
	}
	wg.Wait()
	close(s.starts)
	<-s.done
}

// tail keeps the end of what a child writes: at most tailMax bytes.
type tail struct {
	mu   sync.Mutex // guards text
	text []byte
}

const tailMax = 32 << 10

// Write never fails.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	if over := len(t.text) - tailMax; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(b), nil
}

// last returns the last n lines, indented. Of a Go panic the first lines say
// more than the last: then it returns n lines from there.
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
