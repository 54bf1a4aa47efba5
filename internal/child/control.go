package child

import (
	"fmt"
	"syscall"

	"github.com/prometheus/procfs"
)

// Pause stops every thread of the child (SIGSTOP), and returns when they are
// stopped. It fails when the child has ended.
func (p *Process) Pause() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	p.paused = true
	return p.awaitStopped()
}

// Resume ends a pause. It does nothing to a child that is not paused.
func (p *Process) Resume() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.paused {
		return nil
	}
	p.paused = false
	return p.Signal(syscall.SIGCONT)
}

// Usage is what a child uses of the machine.
type Usage struct {
	RSS int64 // bytes
	CPU int64 // ns of CPU time since it started, in steps of 10 ms
}

// Usage reads /proc. It fails when the child has ended.
func (p *Process) Usage() (Usage, error) {
	if gone, _ := p.Ended(); gone {
		return Usage{}, fmt.Errorf("usage of %s: it has ended", p.name)
	}
	proc, err := procfs.NewProc(p.PID())
	if err != nil {
		return Usage{}, fmt.Errorf("usage of %s: %w", p.name, err)
	}
	stat, err := proc.Stat()
	if err != nil {
		return Usage{}, fmt.Errorf("usage of %s: %w", p.name, err)
	}
	return Usage{RSS: int64(stat.ResidentMemory()), CPU: int64(stat.CPUTime() * 1e9)}, nil
}
