package doors

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"subak/testbed/peers/drive"
	"subak/testbed/peers/measure"
)

// growthMax is how much a node's memory may grow by any number of distinct keys,
// MB. Tables for the 100,000 tenants that a class tells apart by default take about
// 6; the rest is the room that a node under load gives its collector.
const growthMax = 32

// grown is what distinct keys made of a node.
type grown struct {
	keys   int64
	memory float64 // MB
	series int
}

// keys sends a door a number of distinct keys, each the name of a tenant.
func (b *Bench) keys(id, what string, t drive.Target, v rival) measure.Case {
	var r *rig
	var s server
	var index int
	var g grown
	value := func(v func() float64) func(context.Context) (measure.Reading, error) {
		return func(context.Context) (measure.Reading, error) { return measure.Reading{Value: v()}, nil }
	}
	alone := func(id, what, unit string, side int, sense measure.Sense, bound float64) measure.Claim {
		return measure.Claim{ID: id, What: what, Metric: measure.Value, Relation: measure.Alone, Side: side, Sense: sense, Bound: bound, Unit: unit}
	}
	return measure.Case{
		ID: id, What: fmt.Sprintf("%d distinct %s", b.Scale.Keys, what), Show: []measure.Metric{measure.Value}, Once: true,
		Open: func(ctx context.Context) (closed func(), err error) {
			if r, err = b.open(); err != nil {
				return nil, err
			}
			if s, err = v.start(ctx, r); err == nil {
				index, err = r.meet(t, s)
			}
			if err != nil {
				r.close()
				return nil, err
			}
			return r.close, nil
		},
		Sides: []measure.Side{
			{Name: "memory grew by", Batch: func(ctx context.Context) (measure.Reading, error) {
				var err error
				if g, err = r.grow(ctx, s, index); err == nil {
					err = r.apart(t, s)
				}
				return measure.Reading{Value: g.memory}, err
			}},
			{Name: "metric series grew by", Batch: value(func() float64 { return float64(g.series) })},
			{Name: "keys that were sent", Batch: value(func() float64 { return float64(g.keys) })},
		},
		Claims: []measure.Claim{
			alone(id+"-memory", "resident memory that a node gains by them", "MB", 0, measure.AtMost, growthMax),
			alone(id+"-series", "metric series that it gains by them", "series", 1, measure.AtMost, 0),
			alone(id+"-sent", "keys that were sent, all admitted", "keys", 2, measure.NoBound, 0),
		},
	}
}

// grow sends the keys and compares before with after.
func (r *rig) grow(ctx context.Context, s server, index int) (grown, error) {
	before, seriesBefore, err := s.size(ctx)
	if err != nil {
		return grown{}, err
	}
	batch, err := r.gen.Count(index, r.bench.Scale.Keys)
	if err != nil {
		return grown{}, err
	}
	after, seriesAfter, err := s.size(ctx)
	return grown{keys: batch.Ops, memory: float64(after-before) / 1e6, series: seriesAfter - seriesBefore}, err
}

// apart is an error unless the node tells tenants apart: one that asks often must
// be refused.
func (r *rig) apart(t drive.Target, s server) error {
	t.Addr, t.Keys = s.addr, 1
	i, err := r.gen.Dial(t)
	if err != nil {
		return err
	}
	if _, err := r.gen.Count(i, 1000); err == nil {
		return errors.New("one key passed 1000 times at a rate of one a second: no tenants are told apart")
	}
	return nil
}

// size is a node's resident memory, bytes, and how many metric series it has.
func (s server) size(ctx context.Context) (memory int64, series int, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.admin+"/metrics", nil)
	if err != nil {
		return 0, 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, 0, fmt.Errorf("metrics: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return 0, 0, fmt.Errorf("metrics: %s", resp.Status)
	}
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if !strings.HasPrefix(lines.Text(), "#") {
			series++
		}
	}
	if err := lines.Err(); err != nil {
		return 0, 0, fmt.Errorf("metrics: %w", err)
	}
	u, err := s.process.Usage()
	return u.RSS, series, err
}

// keyTenants lets every key pass once, and bounds one that comes often.
const keyTenants = "{each: 1/s}"

const tenantDoor = `listeners:
  - name: edge
    listen: LISTEN
    check: {enabled: true}
    trusted_hops: 1
    tenant: {header: X-Api-Key}
    default: {budget: origin, class: uncleared}
    rules: [{match: {path: "/api/*"}, budget: origin, class: confirmed}]
`

// keyCases are the doors' cases of many keys.
func (b *Bench) keyCases() []measure.Case {
	t := checkTarget()
	t.Request = request("/v1/check", append(checkFields(), "X-Api-Key: "+placeholder)...)
	t.Vary = bytes.Index(t.Request, []byte(placeholder))
	tenants := func(text string) rival {
		return rival{"subak run", func(ctx context.Context, r *rig) (server, error) { return r.nodeOf(ctx, keyTenants, text) }}
	}
	return []measure.Case{
		b.keys("keys/check", "API keys at the forward-auth door", t, tenants(tenantDoor)),
		b.keys("keys/rls", "descriptor values at the RLS door", rpcTarget(0), tenants(rpcDoor("api_key"))),
	}
}
