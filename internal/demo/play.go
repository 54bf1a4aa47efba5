package demo

import (
	"context"
	"fmt"
	"sync"
	"time"

	"subak/testbed/load"
	"subak/testbed/origin"
)

// play runs the script against the cluster and collects the evidence.
func (c *cluster) play(ctx context.Context) (evidence, error) {
	g, err := load.New(load.Config{
		Seed: c.opt.Seed, Phases: c.plan.loadPhases(), Streams: c.plan.streams(c.proxies()), Late: lateAfter, Bin: seriesBin,
	})
	if err != nil {
		return evidence{}, err
	}
	if err := c.origin.Reset(ctx, origin.Config{Classes: c.plan.classNames()}); err != nil {
		return evidence{}, err
	}
	start := time.Now()
	w := newWatcher(&c.plan, c.askers(), c.origin, start)
	inner, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	loaded := make(chan struct{})
	wg.Go(func() { w.run(inner) })
	wg.Go(func() {
		defer close(loaded)
		_ = g.Run(inner) // its only error is that of the context
	})
	err = c.direct(inner, w, start, loaded)
	cancel(err)
	wg.Wait()
	if err != nil {
		return evidence{}, err
	}
	return c.collect(ctx, g, w)
}

func (c *cluster) askers() []asker {
	var all []asker
	for i := range c.at {
		all = append(all, c.nodes.Client(i))
	}
	return all
}

// direct moves from phase to phase until the load is over.
func (c *cluster) direct(ctx context.Context, w *watcher, start time.Time, loaded <-chan struct{}) error {
	ticker := time.NewTicker(250 * time.Millisecond)
	defer ticker.Stop()
	next := time.NewTimer(0)
	defer next.Stop()
	phase, end := -1, time.Duration(0)
	shown := start
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-loaded:
			return ctx.Err()
		case <-next.C:
			if phase+1 == len(c.plan.phases) {
				continue
			}
			phase++
			if err := c.enter(ctx, w, phase, start); err != nil {
				return err
			}
			end += c.plan.phases[phase].length
			next.Reset(time.Until(start.Add(end)))
		case now := <-ticker.C:
			if err := c.crashed(); err != nil {
				return err
			}
			if phase < 0 {
				continue
			}
			s := w.scene(phase, end)
			if c.ui.live() {
				width, _ := c.ui.size()
				c.ui.draw(frame(s, width))
			} else if now.Sub(shown) >= 4*time.Second {
				shown = now
				c.ui.say("%s", progress(s))
			}
		}
	}
}

// enter begins a phase: the fault first, then the news of it.
func (c *cluster) enter(ctx context.Context, w *watcher, phase int, start time.Time) error {
	ph := c.plan.phases[phase]
	if i := ph.kill; i >= 0 {
		w.killedNode(i)
		c.nodes.Kill(i)
	}
	w.enter(phase)
	if err := c.origin.Enter(ctx, ph.name); err != nil {
		return err
	}
	if i := ph.start; i >= 0 {
		if err := c.startNode(i); err != nil {
			return err
		}
		w.startedNode(i)
	}
	c.ui.say("%5.1f s  %-6s %s", time.Since(start).Seconds(), ph.name, ph.title)
	return nil
}

// collect asks the witnesses once the load is over.
func (c *cluster) collect(ctx context.Context, g *load.Generator, w *watcher) (evidence, error) {
	w.once(ctx) // the last admissions
	e := evidence{seed: c.opt.Seed, load: g.Report()}
	var err error
	if e.origin, err = c.origin.Report(ctx); err != nil {
		return e, err
	}
	e.judged, err = c.origin.Judge(ctx, origin.Claim{
		Limit: c.plan.limit, Burst: c.plan.burst, Slots: int64(c.plan.extra()), Spread: e.origin.Transit.P999,
	})
	e.watched, e.backAt, e.baseAt = w.summary()
	return e, err
}

// watchOver ends ctx with the failure of a process that ended by itself.
func (c *cluster) watchOver(ctx context.Context, cancel context.CancelCauseFunc) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if err := c.crashed(); err != nil {
				cancel(err)
				return
			}
		}
	}
}

// scene is what to show now; end is when the phase ends, since the start.
func (w *watcher) scene(phase int, end time.Duration) scene {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Since(w.start)
	s := scene{
		limit: float64(w.plan.limit), title: w.plan.phases[phase].title, phase: phase + 1,
		phases: len(w.plan.phases), left: end - now, total: w.plan.length() - now,
	}
	for i, n := range w.nodes {
		b := budgetOf(&n.status)
		ns := nodeScene{name: w.plan.nodes[i].name, share: b.Share, admitted: n.rate()}
		for _, class := range b.Classes {
			ns.demand += class.Demand
		}
		switch {
		case n.starting:
			ns.state = "starting"
		case n.down:
			ns.state = "killed"
		case !n.up:
			ns.state = "no answer"
		case !n.status.Ready:
			ns.state = "not ready: " + n.status.Reason
		}
		if n.up {
			s.shares += b.Share
		}
		s.nodes = append(s.nodes, ns)
	}
	s.origin = halfSeconds(w.witness)
	return s
}

// halfSeconds adds the origin's series up into arrivals/s by half second,
// without the unfinished last one.
func halfSeconds(r origin.Report) []float64 {
	if r.Bin <= 0 {
		return nil
	}
	bins := int(r.Elapsed / r.Bin)
	per := max(1, int(500*time.Millisecond/r.Bin))
	var all []float64
	for b := 0; b+per <= bins; b += per {
		n := uint32(0)
		for _, series := range r.Series {
			for _, v := range series[min(b, len(series)):min(b+per, len(series))] {
				n += v
			}
		}
		all = append(all, float64(n)/(time.Duration(per)*r.Bin).Seconds())
	}
	return all
}

// progress is the scene as one line.
func progress(s scene) string {
	demand, admitted, down := 0.0, 0.0, ""
	for _, n := range s.nodes {
		if n.state != "" {
			down += ", " + n.name + " " + n.state
			continue
		}
		demand += n.demand
		admitted += n.admitted
	}
	now := 0.0
	if len(s.origin) > 0 {
		now = s.origin[len(s.origin)-1]
	}
	return fmt.Sprintf("%9s %6s: demand %s, admitted %s, origin %s of %s, shares %s%s", "",
		fmt.Sprintf("%d/%d", s.phase, s.phases), perSecond(demand), perSecond(admitted), perSecond(now),
		perSecond(s.limit), perSecond(s.shares), down)
}
