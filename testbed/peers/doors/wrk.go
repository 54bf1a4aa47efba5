package doors

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"time"

	"subak/testbed/peers/measure"
)

// wrk drives the HTTP doors with another generator than ours, as a check of ours:
// its ratio should be about the same. It is left out where wrk is not installed.
func (b *Bench) wrk(id, what, path string, fields []string, rivals ...rival) (measure.Case, bool) {
	program, err := exec.LookPath("wrk")
	if err != nil {
		return measure.Case{}, false
	}
	var r *rig
	servers := make([]server, len(rivals))
	c := measure.Case{
		ID: id, What: what + ", by wrk", Show: []measure.Metric{measure.Rate, measure.CPU}, Batches: 4, Once: true,
		Open: func(ctx context.Context) (closed func(), err error) {
			if r, err = b.open(); err != nil {
				return nil, err
			}
			for i, v := range rivals {
				if servers[i], err = v.start(ctx, r); err != nil {
					r.close()
					return nil, fmt.Errorf("%s: %w", v.name, err)
				}
			}
			return r.close, nil
		},
		Claims: []measure.Claim{noted(atLeast(id, "the same by wrk, as a check of the generator", 0, 1, 0))},
	}
	for i, v := range rivals {
		c.Sides = append(c.Sides, measure.Side{Name: v.name, Batch: func(ctx context.Context) (measure.Reading, error) {
			return b.wrkBatch(ctx, program, servers[i], path, fields)
		}})
	}
	return c, true
}

// wrkBatch runs wrk for as long as it can be told to.
func (b *Bench) wrkBatch(ctx context.Context, program string, s server, path string, fields []string) (measure.Reading, error) {
	args := []string{"-t1", "-c" + strconv.Itoa(httpConns), "-d1s"}
	for _, f := range fields {
		args = append(args, "-H", f)
	}
	argv := b.Place.Command(b.Self, b.Place.Rest, program, append(args, "http://"+s.addr+path)...)
	before, err1 := s.cpu()
	out, err2 := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput()
	after, err3 := s.cpu()
	if err := errors.Join(err1, err2, err3); err != nil {
		return measure.Reading{}, fmt.Errorf("wrk: %w\n%s", err, out)
	}
	r, err := parseWrk(string(out))
	r.CPU = after - before
	return r, err
}

// parseWrk reads how many requests wrk made in what time.
func parseWrk(out string) (measure.Reading, error) {
	m := regexp.MustCompile(`(\d+) requests in ([0-9.]+m?s),`).FindStringSubmatch(out)
	if m == nil {
		return measure.Reading{}, fmt.Errorf("wrk says no number of requests: %q", out)
	}
	if regexp.MustCompile(`Non-2xx|Socket errors`).MatchString(out) {
		return measure.Reading{}, fmt.Errorf("wrk saw errors: %q", out)
	}
	n, err1 := strconv.ParseInt(m[1], 10, 64)
	took, err2 := time.ParseDuration(m[2])
	return measure.Reading{Ops: n, Elapsed: took}, errors.Join(err1, err2)
}
