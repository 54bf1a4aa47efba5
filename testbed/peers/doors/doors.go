// Package doors measures the doors of a real node, from the outside, beside the
// least that such a door can be (package floor).
//
// # Model
//
// Every server is a process of its own with the same half of the cores; the load
// generator (package drive) and the proxies' backend have the other half. On two
// cores that is one core for the server: Go then runs one goroutine at a time, on
// both sides alike. The generator is so much cheaper than the servers that they
// are what limits the rate; the table says how busy they were.
//
// Load is a closed loop over a fixed number of connections that stay open: for
// HTTP [httpConns] of them with one request in flight, for gRPC [rpcConns] with
// [rpcStreams] each. A node runs alone with limits that nothing reaches, and with
// the door's settings as they are by default. Any answer but the expected one
// fails the batch.
//
// # Units
//
// Requests per second and latencies as the generator sees them; CPU is that of
// the whole server process, its gossip and metrics included.
package doors

import (
	"context"
	"fmt"
	"time"

	"subak/testbed/peers/drive"
	"subak/testbed/peers/measure"
	"subak/testbed/peers/place"
)

const (
	httpConns  = 32
	rpcConns   = 4
	rpcStreams = 8
)

// Bench is what is common to all doors.
type Bench struct {
	Self  string // path of this program, which is also generator and floors
	Node  string // path of subak
	Place place.Place
	Scale Scale
}

// Scale is how much is measured.
type Scale struct {
	Batch   time.Duration // of one server
	Batches int           // of each in a round
	Keys    int64         // how many distinct keys are sent
}

// rival is one side of a door's case.
type rival struct {
	name  string
	start func(context.Context, *rig) (server, error)
}

// ofFloor is a rival that this program serves.
func ofFloor(name, kind string, more ...string) rival {
	return rival{name, func(_ context.Context, r *rig) (server, error) { return r.floor(kind, more...) }}
}

// roomy makes a floor collect its garbage as seldom as a node does that is busy. The
// claims are about floors as Go makes them; what is noted beside them says how much
// of a node's speed is that.
const roomy = "--gogc=400"

// ofNode is a node with a door.
func ofNode(text string) rival {
	return rival{"subak run", func(ctx context.Context, r *rig) (server, error) { return r.node(ctx, text) }}
}

// door is a case of rivals that get the same requests.
func (b *Bench) door(id, what string, t drive.Target, claims []measure.Claim, rivals ...rival) measure.Case {
	c := measure.Case{
		ID: id, What: what, Batches: b.Scale.Batches, Claims: claims,
		Show: []measure.Metric{measure.Rate, measure.CPU, measure.Busy, measure.Mid, measure.Tail},
	}
	var r *rig
	servers, index := make([]server, len(rivals)), make([]int, len(rivals))
	c.Open = func(ctx context.Context) (closed func(), err error) {
		if r, err = b.open(); err != nil {
			return nil, err
		}
		for i, v := range rivals {
			servers[i], err = v.start(ctx, r)
			if err == nil {
				index[i], err = r.meet(t, servers[i])
			}
			if err != nil {
				r.close()
				return nil, fmt.Errorf("%s: %w", v.name, err)
			}
		}
		return r.close, nil
	}
	for i, v := range rivals {
		c.Sides = append(c.Sides, measure.Side{Name: v.name, Batch: func(context.Context) (measure.Reading, error) {
			return r.batch(servers[i], index[i])
		}})
	}
	return c
}

// meet connects the generator to a server and warms both.
func (r *rig) meet(t drive.Target, s server) (int, error) {
	t.Addr = s.addr
	i, err := r.gen.Dial(t)
	if err != nil {
		return 0, err
	}
	_, err = r.gen.For(i, 2*r.bench.Scale.Batch)
	return i, err
}

// batch drives one server for a while.
func (r *rig) batch(s server, index int) (measure.Reading, error) {
	before, err := s.cpu()
	if err != nil {
		return measure.Reading{}, err
	}
	b, err := r.gen.For(index, r.bench.Scale.Batch)
	if err != nil {
		return measure.Reading{}, err
	}
	after, err := s.cpu()
	return measure.Reading{Ops: b.Ops, Elapsed: b.Elapsed, CPU: after - before, Mid: b.Mid, Tail: b.Tail}, err
}

// cpu is the CPU time that the server has used.
func (s server) cpu() (time.Duration, error) { return place.CPUTime(s.process.PID()) }

// atLeast is a claim on the requests per second of side beside other's.
func atLeast(id, what string, side, other int, bound float64) measure.Claim {
	return measure.Claim{ID: id, What: what, Metric: measure.Rate, Side: side, Other: other, Sense: measure.AtLeast, Bound: bound}
}

// atMost is a claim on another metric of the first side beside the second's.
func atMost(id, what string, m measure.Metric, bound float64) measure.Claim {
	return measure.Claim{ID: id, What: what, Metric: m, Other: 1, Bound: bound}
}

// noted is a figure without a bound.
func noted(c measure.Claim) measure.Claim {
	c.Sense = measure.NoBound
	return c
}
