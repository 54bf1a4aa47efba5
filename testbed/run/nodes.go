//go:build linux

package run

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"subak/testbed/cluster"
	"subak/testbed/evidence"
	"subak/testbed/scenario"
)

// Polls of a node that starts.
const (
	doorEvery  = 20 * time.Millisecond
	readyEvery = 20 * time.Millisecond
)

// each does something for all nodes at the same time and joins the errors.
func each(nodes []int, f func(k, i int) error) error {
	errs := make([]error, len(nodes))
	var wg sync.WaitGroup
	for k, i := range nodes {
		wg.Go(func() { errs[k] = f(k, i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// end ends the process of a node. Its clients know before it is done: those whose
// requests are under way then are not failed by anybody.
func (d *deed) end(i int, sig scenario.Signal) {
	d.away(i, true)
	if sig == scenario.SIGKILL {
		d.record.event(d.Name, i, "kill", "")
		d.cluster.Kill(i)
		return
	}
	d.record.event(d.Name, i, "stop", "")
	at := d.record.now()
	killed := d.cluster.Stop(i)
	how := "by itself"
	if killed {
		how = "killed after its grace"
	}
	d.record.event(d.Name, i, "exit", "after %s, %s", (d.record.now() - at).Round(time.Millisecond), how)
}

// begin starts a node and returns once it is ready; its clients come back as soon
// as its door is open.
func (d *deed) begin(ctx context.Context, i int) error {
	if err := d.cluster.Start(i); err != nil {
		return err
	}
	d.record.event(d.Name, i, "start", "")
	return d.awaitUp(ctx, i)
}

// awaitUp waits until the door of a node is open, sends its clients back, and
// waits until it is ready.
func (d *deed) awaitUp(ctx context.Context, i int) error {
	for {
		conn, err := d.host(i).DialContext(ctx, "tcp", d.at(i, proxyPort))
		if err == nil {
			_ = conn.Close()
			break
		}
		if err := sleep(ctx, doorEvery); err != nil {
			return err
		}
	}
	d.away(i, false)
	d.record.event(d.Name, i, "open", "")
	for {
		if ready, _, err := d.cluster.Client(i).Ready(ctx); err == nil && ready {
			d.record.event(d.Name, i, "ready", "")
			return nil
		}
		if err := sleep(ctx, readyEvery); err != nil {
			return err
		}
	}
}

// down is kill and stop: the nodes are started again at the end.
func (d *deed) down(ctx context.Context, band *evidence.Band) error {
	sig := scenario.SIGKILL
	if d.Kind == scenario.Stop {
		sig = scenario.SIGTERM
	}
	ended := make(chan error, 1)
	go func() { ended <- each(d.nodes, func(_, i int) error { d.end(i, sig); return nil }) }()
	more := d.lasting(ctx)
	err := <-ended
	if band.To = d.record.now(); !more {
		return err
	}
	return each(d.nodes, func(_, i int) error { return d.begin(ctx, i) })
}

// restart ends nodes and starts them again, one each Every, or all at once.
func (d *deed) restart(ctx context.Context, band *evidence.Band) error {
	var mu sync.Mutex // guards band
	return each(d.nodes, func(k, i int) error {
		if err := sleep(ctx, time.Duration(k)*d.Every); err != nil {
			return err
		}
		d.end(i, d.Signal)
		if err := sleep(ctx, d.Rest); err != nil {
			return err
		}
		mu.Lock()
		band.To = max(band.To, d.record.now())
		mu.Unlock()
		return d.begin(ctx, i)
	})
}

func (d *deed) pause(ctx context.Context) error {
	err := each(d.nodes, func(_, i int) error { return d.cluster.Pause(i) })
	d.lasting(ctx)
	return errors.Join(err, each(d.nodes, func(_, i int) error { return d.cluster.Resume(i) }))
}

func (d *deed) slow(ctx context.Context) error {
	percent := int(ppm(d.CPU) / 10_000)
	err := each(d.nodes, func(_, i int) error {
		how, err := d.cluster.Limit(i, percent)
		d.record.event(d.Name, i, "slow", "%d %% of a core, %v", percent, how)
		return err
	})
	d.lasting(ctx)
	return errors.Join(err, each(d.nodes, func(_, i int) error { _, err := d.cluster.Limit(i, 0); return err }))
}

// asked is the node that an operator asks: Via, or the first of the roster that
// runs and is not one of the fault's own.
func (d *deed) asked() (int, error) {
	if d.Via != "" {
		return d.top.Index(d.Via), nil
	}
	for _, i := range d.cluster.Roster() {
		own := false
		for _, k := range d.nodes {
			own = own || k == i
		}
		if !own && d.cluster.Alive(i) {
			return i, nil
		}
	}
	return 0, errors.New("no node is up that could be asked")
}

// change applies an edit and waits until it is in force at every node. The limit,
// where it changes, binds as told by both instants.
func (d *deed) change(ctx context.Context, ask int, e cluster.Edit) error {
	from := d.record.now()
	d.record.event(d.Name, ask, "apply", "")
	made, err := d.cluster.Apply(ctx, ask, e)
	if err != nil {
		return err
	}
	in := time.Duration(1<<62 - 1) // never
	_, err = d.cluster.AwaitChange(ctx, ask, made.Epoch)
	if err == nil {
		in = d.record.now()
		d.record.event(d.Name, ask, "in-force", "epoch %s after %s", made.Epoch, (in - from).Round(time.Millisecond))
	}
	if e.Limit > 0 {
		d.record.limit(evidence.Limit{At: from, In: in, Limit: e.Limit})
	}
	return err
}

func (d *deed) apply(ctx context.Context) error {
	ask, err := d.asked()
	if err != nil {
		return err
	}
	e := cluster.Edit{Limit: int64(d.Edit.Limit.Rate) / 1_000_000}
	for _, c := range d.Edit.Classes {
		e.Reserve = append(e.Reserve, ppm(c.Reserve))
	}
	// A scenario may go back to what was in force before; the product asks that
	// this be said.
	e.Revert = true
	return d.change(ctx, ask, e)
}

// join starts absent nodes and puts them into the roster together.
func (d *deed) join(ctx context.Context, band *evidence.Band) error {
	ask, err := d.asked()
	if err != nil {
		return err
	}
	err = each(d.nodes, func(_, i int) error {
		if err := d.cluster.Start(i); err != nil {
			return err
		}
		d.record.event(d.Name, i, "start", "")
		return d.cluster.AwaitMet(ctx, i, ask)
	})
	if err != nil {
		return err
	}
	up := make(chan error, 1)
	go func() { up <- each(d.nodes, func(_, i int) error { return d.awaitUp(ctx, i) }) }()
	err = d.change(ctx, ask, cluster.Edit{Roster: append(d.cluster.Roster(), d.nodes...)})
	band.To = d.record.now()
	return errors.Join(err, <-up)
}

// leave takes nodes out of the roster and then stops them.
func (d *deed) leave(ctx context.Context, band *evidence.Band) error {
	ask, err := d.asked()
	if err != nil {
		return err
	}
	if err := d.change(ctx, ask, cluster.Edit{Roster: d.without()}); err != nil {
		return err
	}
	err = each(d.nodes, func(_, i int) error { d.end(i, scenario.SIGTERM); return nil })
	band.To = d.record.now()
	return err
}

// without is the roster without the fault's nodes.
func (d *deed) without() (rest []int) {
	for _, i := range d.cluster.Roster() {
		keep := true
		for _, k := range d.nodes {
			keep = keep && i != k
		}
		if keep {
			rest = append(rest, i)
		}
	}
	return rest
}

func (d *deed) forget(ctx context.Context) error {
	ask, err := d.asked()
	if err != nil {
		return err
	}
	return d.change(ctx, ask, cluster.Edit{Forget: d.nodes})
}

// rotate gives the cluster another key, node by node.
func (d *deed) rotate(ctx context.Context, band *evidence.Band) error {
	if len(d.nodes) == 0 {
		d.nodes = d.cluster.Roster()
	}
	band.Nodes = d.nodes
	old, fresh := d.cluster.Keys(), cluster.NewKey()
	steps := [][]string{append(append([]string{}, old...), fresh), append([]string{fresh}, old...), {fresh}}
	for k, keys := range steps {
		if k > 0 {
			if err := sleep(ctx, d.Every); err != nil {
				return err
			}
		}
		d.cluster.SetKeys(keys)
		for _, i := range d.nodes {
			d.end(i, scenario.SIGTERM)
			if err := d.begin(ctx, i); err != nil {
				return fmt.Errorf("step %d of 3: %w", k+1, err)
			}
		}
		band.To = d.record.now()
	}
	return nil
}
