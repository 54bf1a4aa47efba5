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

// Limit gives the child at most this many percent of one core, 1 to 1000; 0 ends
// the limit. how says by what means: a CPU quota of the kernel as containers have
// it (100 ms periods, [ByQuota]), or, where there is none to be had, SIGSTOP and
// SIGCONT in turn ([ByTurns], up to 99 percent).
func (p *Process) Limit(percent int) (how How, err error) {
	if percent < 0 || percent > 1000 {
		return "", fmt.Errorf("limit %s to %d %% of a core: want 0 to 1000", p.name, percent)
	}
	p.mu.Lock()
	before := p.limit
	p.limit = nil
	p.mu.Unlock()
	if before != nil {
		if err := before.lift(); err != nil {
			return "", fmt.Errorf("limit of %s: %w", p.name, err)
		}
	}
	if gone, _ := p.Ended(); gone {
		return "", fmt.Errorf("limit %s: it has ended", p.name)
	}
	if percent == 0 {
		return "", nil
	}
	l, how, err := p.newLimiter(percent)
	if err != nil {
		return "", fmt.Errorf("limit %s: %w", p.name, err)
	}
	p.mu.Lock()
	p.limit = l
	p.mu.Unlock()
	return how, nil
}

// How a CPU limit is enforced.
type How string

// The two ways.
const (
	ByQuota How = "quota"
	ByTurns How = "turns"
)

// limiter is a limit in force.
type limiter interface {
	lift() error
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
