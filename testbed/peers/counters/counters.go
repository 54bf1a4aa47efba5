// Package counters measures what counting costs on the decision path. The probe is
// built with package enforce as it is and with one that counts nothing, and both
// run side by side; see [strip].
package counters

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"subak/testbed/peers/measure"
)

// Scale is how much is measured.
type Scale struct {
	Batch   time.Duration // of one side
	Batches int           // of each in a round
}

// most is what counting may add to a decision, ns.
const most = 8

// Cases are one goroutine and all cores. repo is the source of Subak.
func (s Scale) Cases(repo string) []measure.Case {
	cores := runtime.GOMAXPROCS(0)
	one := s.of(repo, "counters/one", "one decision, one goroutine, with and without its counters", 1)
	one.Claims = []measure.Claim{{
		ID: "counters/one", What: "what counting adds to a decision on one goroutine",
		Metric: measure.Nanos, Relation: measure.Difference, Side: 0, Other: 1, Bound: most, Unit: "ns",
	}}
	s.Batch *= 5 // all cores are seldom undisturbed at once
	all := s.of(repo, "counters/cores", "one decision on every core at once, time on its core, with and without its counters", cores)
	all.Claims = []measure.Claim{{
		ID: "counters/cores", What: "what counting adds on its core while all cores count: a line that they shared would cost more",
		Metric: measure.Nanos, Relation: measure.Difference, Side: 0, Other: 1, Bound: most, Unit: "ns",
	}}
	return []measure.Case{one, all}
}

func (s Scale) of(repo, id, what string, goroutines int) measure.Case {
	probes := make([]*probe, 2)
	c := measure.Case{ID: id, What: what, Show: []measure.Metric{measure.Nanos}, Batches: s.Batches}
	c.Open = func(ctx context.Context) (func(), error) {
		dir, err := os.MkdirTemp("", "bench-peers-")
		if err != nil {
			return nil, err
		}
		closed := func() {
			for _, p := range probes {
				p.close()
			}
			_ = os.RemoveAll(dir) // scratch
		}
		for i := range probes {
			if probes[i], err = start(ctx, repo, dir, i == 0); err != nil {
				closed()
				return nil, err
			}
		}
		return closed, nil
	}
	for i, name := range []string{"as it is", "without counters"} {
		c.Sides = append(c.Sides, measure.Side{Name: name, Batch: func(context.Context) (measure.Reading, error) {
			return probes[i].batch(s.Batch, goroutines)
		}})
	}
	return c
}

// probe is a running probe.
type probe struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
	n   int // decisions in a batch; 0 before it was calibrated
}

// start builds and starts a probe.
func start(ctx context.Context, repo, dir string, counting bool) (*probe, error) {
	path := filepath.Join(dir, "probe-"+strconv.FormatBool(counting))
	args := []string{"build", "-o", path}
	if !counting {
		overlay, err := without(repo, dir)
		if err != nil {
			return nil, err
		}
		args = append(args, "-overlay", overlay)
	}
	build := exec.CommandContext(ctx, "go", append(args, "./probe")...)
	build.Dir = filepath.Join(repo, "testbed/peers")
	if text, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the probe: %w\n%s", err, text)
	}
	p := &probe{cmd: exec.Command(path)}
	p.cmd.Stderr = os.Stderr
	in, err1 := p.cmd.StdinPipe()
	out, err2 := p.cmd.StdoutPipe()
	if err := errors.Join(err1, err2, p.cmd.Start()); err != nil {
		return nil, fmt.Errorf("start the probe: %w", err)
	}
	p.in, p.out = in, bufio.NewScanner(out)
	return p, nil
}

// close ends a probe; nil is none.
func (p *probe) close() {
	if p != nil {
		p.in.Close()
		_ = p.cmd.Wait() // it ends with its input
	}
}

// batch makes decisions for about span. The reading's operations are those of one
// goroutine, so that time is that on its core.
func (p *probe) batch(span time.Duration, goroutines int) (measure.Reading, error) {
	for n := 1000; p.n == 0; n *= 2 {
		took, err := p.decide(n*goroutines, goroutines)
		if err != nil {
			return measure.Reading{}, err
		}
		if took > span/4 {
			p.n = max(int(float64(n)*float64(span)/float64(took)), 1)
		}
	}
	took, err := p.decide(p.n*goroutines, goroutines)
	return measure.Reading{Ops: int64(p.n), Elapsed: took}, err
}

func (p *probe) decide(n, goroutines int) (time.Duration, error) {
	if _, err := fmt.Fprintln(p.in, n, goroutines); err != nil {
		return 0, fmt.Errorf("probe: %w", err)
	}
	if !p.out.Scan() {
		return 0, fmt.Errorf("probe: it has ended: %w", errors.Join(p.out.Err(), io.ErrUnexpectedEOF))
	}
	ns, err := strconv.ParseInt(p.out.Text(), 10, 64)
	return time.Duration(ns), err
}
