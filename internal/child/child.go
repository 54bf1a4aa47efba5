// Package child runs child processes that cannot outlive this one, and does to
// them what happens to processes: kill -9, TERM, a stop and its end, too little
// CPU.
//
// Model: a [Supervisor] starts each [Process] as the leader of its own process
// group, so that Ctrl-C in the terminal reaches the parent only, and asks the
// kernel for SIGKILL when the parent goes. The kernel means the parent's *thread*
// by that; so one goroutine, bound to its thread for the life of the supervisor,
// makes all the starts. A start that is left to a hook (see [Launch.Start]) may
// happen on a thread that ends before the child does, and that thread's end would
// kill the child: such a child is not bound to the parent here, and who passes
// the hook sees to it by other means, such as a pid namespace.
//
// What a child writes is kept: its end in memory, and all of it in a file when
// asked for. Units: CPU in nanoseconds or percent of one core, memory in bytes.
//
// All methods may be called from several goroutines at once. [Supervisor.Close]
// leaves no process, no goroutine and no file descriptor.
package child

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Supervisor starts child processes, and ends those that are left at its end.
type Supervisor struct {
	starts chan func()
	done   chan struct{}

	mu  sync.Mutex // guards all
	all []*Process
}

// New returns a supervisor without children. Close it.
func New() *Supervisor {
	s := &Supervisor{starts: make(chan func()), done: make(chan struct{})}
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		defer close(s.done)
		for f := range s.starts {
			f()
		}
	}()
	return s
}

// Launch is what to start.
type Launch struct {
	// Name is for messages, such as "node ams". Required, as is Path.
	Name string
	Path string
	Args []string
	// Env is the whole environment; nil is this process's own.
	Env []string
	// Stdin opens the child's standard input, until it is stopped; otherwise the
	// child has none.
	Stdin bool
	// Stdout gets what the child prints there; nil puts it into the log, where
	// standard error always goes.
	Stdout io.Writer
	// LogFile, unless empty, is a file to which the log is appended.
	LogFile string
	// Start, unless nil, makes the start in the place of [exec.Cmd.Start], such as
	// inside of another network namespace.
	Start func(*exec.Cmd) error
}

// Start runs a child.
func (s *Supervisor) Start(l Launch) (*Process, error) {
	p := &Process{name: l.Name, done: make(chan struct{})}
	p.cmd = exec.Command(l.Path, l.Args...)
	p.cmd.Env = l.Env
	p.cmd.SysProcAttr = attributes(l.Start == nil)
	// A process left behind that holds the log open must not hold up Wait.
	p.cmd.WaitDelay = time.Second
	if err := s.start(p, l); err != nil {
		return nil, fmt.Errorf("start %s: %w", l.Name, errors.Join(err, p.log.close()))
	}
	go p.wait()
	s.mu.Lock()
	s.all = append(s.all, p)
	s.mu.Unlock()
	return p, nil
}

func (s *Supervisor) start(p *Process, l Launch) error {
	if err := p.log.open(l.LogFile); err != nil {
		return err
	}
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	if l.Stdout != nil {
		p.cmd.Stdout = l.Stdout
	}
	if l.Stdin {
		if _, err := p.cmd.StdinPipe(); err != nil {
			return err
		}
	}
	if l.Start != nil {
		return l.Start(p.cmd)
	}
	started := make(chan error)
	s.starts <- func() { started <- p.cmd.Start() }
	return <-started
}

// Close stops every child at once (see [Process.Stop]), waits for all of them,
// and ends the thread. Nothing may be started afterwards.
func (s *Supervisor) Close(grace time.Duration) {
	s.mu.Lock()
	all := s.all
	s.mu.Unlock()
	var wg sync.WaitGroup
	for _, p := range all {
		wg.Go(func() { p.Stop(grace) })
	}
	wg.Wait()
	close(s.starts)
	<-s.done
}

// CleanEnv is this process's environment without the variables whose names begin
// with a prefix, such as those that would win over a configuration file.
func CleanEnv(prefix string) []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, prefix) {
			env = append(env, v)
		}
	}
	return env
}

// Process is one child.
type Process struct {
	name    string
	cmd     *exec.Cmd
	log     tail
	done    chan struct{} // closed when it has ended and been waited for
	err     error         // valid after done, as is endedAt
	endedAt time.Time

	limits sync.Mutex // held while the limit is being changed

	mu     sync.Mutex // guards what follows
	paused bool
	over   bool    // it has ended
	limit  limiter // nil without a limit on its CPU
}

func (p *Process) wait() {
	p.err = p.cmd.Wait()
	p.endedAt = time.Now()
	_ = p.log.close() // its end is in memory too
	p.mu.Lock()
	last := p.limit
	p.limit, p.over = nil, true
	p.mu.Unlock()
	if last != nil {
		_ = last.lift() // an empty group left behind does no harm
	}
	close(p.done)
}

// Name is that of the launch.
func (p *Process) Name() string { return p.name }

// PID is the process's number.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the child has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Ended tells whether the child has ended, and how: nil for a status of 0.
func (p *Process) Ended() (bool, error) {
	select {
	case <-p.done:
		return true, p.err
	default:
		return false, nil
	}
}

// EndedAt is when the child ended; the zero time if it has not.
func (p *Process) EndedAt() time.Time {
	if gone, _ := p.Ended(); !gone {
		return time.Time{}
	}
	return p.endedAt
}

// Kill is kill -9; it returns when the child is gone.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // it may have ended by itself
	<-p.done
}

// Stop asks with SIGTERM, ending a pause, kills after the grace, and returns when
// the child is gone. killed tells whether the grace was not enough.
func (p *Process) Stop(grace time.Duration) (killed bool) {
	_ = p.Signal(syscall.SIGTERM) // it may have ended by itself
	_ = p.Resume()
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
		return false
	case <-timer.C:
		p.Kill()
		return true
	}
}

// Signal sends a signal. It fails when the child has ended.
func (p *Process) Signal(sig os.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil {
		return fmt.Errorf("signal %v to %s: %w", sig, p.name, err)
	}
	return nil
}

// Failure describes a child that ended when it should not have, with the last
// lines it wrote.
func (p *Process) Failure() error {
	_, err := p.Ended()
	if err == nil {
		err = errors.New("ended")
	}
	return fmt.Errorf("%s: %w; its last lines:\n%s", p.name, err, p.log.last(15))
}

// Last returns the last n lines of the log, indented. Of a Go panic the first
// lines say more than the last: then it returns n lines from there.
func (p *Process) Last(n int) string { return p.log.last(n) }
