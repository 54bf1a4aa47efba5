package child

import (
	"errors"
	"fmt"
	"syscall"
	"time"
)

// How a CPU limit is enforced.
type How string

// The two ways.
const (
	ByQuota How = "quota"
	ByTurns How = "turns"
)

// limitPeriod is the length in which a limited child gets its part, the kernel's
// default for quotas.
const limitPeriod = 100 * time.Millisecond

// limitMost is the largest limit, in percent of one core.
const limitMost = 1000

// limiter is a limit in force. lift ends it; it takes [Process.mu].
type limiter interface {
	lift() error
}

// Limit gives the child at most this many percent of one core, 1 to 1000; 0 ends
// the limit. how says by what means: a CPU quota of the kernel, as containers have
// it ([ByQuota]), or, where none is to be had, SIGSTOP and SIGCONT in turn
// ([ByTurns], up to 99 percent). Both work in periods of 100 ms, of which a child
// that wants all it can get is stopped for the end.
func (p *Process) Limit(percent int) (how How, err error) {
	if percent < 0 || percent > limitMost {
		return "", fmt.Errorf("limit %s to %d %% of a core: want 0 to %d", p.name, percent, limitMost)
	}
	p.limits.Lock()
	defer p.limits.Unlock()
	if err := p.swapLimit(nil); err != nil || percent == 0 {
		return "", err
	}
	l, how, err := p.newLimiter(percent)
	if err != nil {
		return "", fmt.Errorf("limit %s: %w", p.name, err)
	}
	return how, p.swapLimit(l)
}

func (p *Process) newLimiter(percent int) (limiter, How, error) {
	q, err := newQuota(p.PID(), percent)
	if err == nil {
		return q, ByQuota, nil
	}
	if percent >= 100 {
		return nil, "", fmt.Errorf("a limit of a whole core needs a CPU quota: %w", err)
	}
	return p.takeTurns(percent), ByTurns, nil
}

// swapLimit puts a limiter, nil for none, in the place of the present one. Once
// the child has ended there is none.
func (p *Process) swapLimit(next limiter) error {
	p.mu.Lock()
	last, over := p.limit, p.over
	p.limit = next
	if over {
		p.limit = nil
	}
	p.mu.Unlock()
	var errs []error
	if last != nil {
		errs = append(errs, last.lift())
	}
	if over {
		errs = append(errs, fmt.Errorf("limit %s: it has ended", p.name))
		if next != nil {
			errs = append(errs, next.lift())
		}
	}
	return errors.Join(errs...)
}

// turns lets a child run for a part of each period only.
type turns struct {
	p    *Process
	quit chan struct{}
	done chan struct{}
}

func (p *Process) takeTurns(percent int) *turns {
	t := &turns{p: p, quit: make(chan struct{}), done: make(chan struct{})}
	run := limitPeriod * time.Duration(percent) / 100
	go func() {
		defer close(t.done)
		for t.turn(syscall.SIGSTOP, limitPeriod-run) && t.turn(syscall.SIGCONT, run) {
		}
	}()
	return t
}

// turn sends a signal, unless the child is paused, and waits; false is the end.
func (t *turns) turn(sig syscall.Signal, length time.Duration) bool {
	t.p.mu.Lock()
	if !t.p.paused {
		_ = t.p.cmd.Process.Signal(sig) // it may have ended by itself
	}
	t.p.mu.Unlock()
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-t.quit:
	case <-t.p.done:
	}
	return false
}

func (t *turns) lift() error {
	close(t.quit)
	<-t.done
	t.p.mu.Lock()
	defer t.p.mu.Unlock()
	if !t.p.paused {
		_ = t.p.cmd.Process.Signal(syscall.SIGCONT) // it may have ended by itself
	}
	return nil
}
