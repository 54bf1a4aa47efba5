//go:build linux

package run

import (
	"context"
	"time"

	"subak/testbed/load"
)

// direct moves the origin from phase to phase and tells of the progress until the
// last phase and the load are over. It fails when a node crashes.
func (r *session) direct(ctx context.Context, loaded <-chan struct{}) error {
	ticker := time.NewTicker(500 * time.Millisecond)
	defer ticker.Stop()
	next := time.NewTimer(0)
	defer next.Stop()
	phase, end := -1, time.Duration(0)
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-loaded:
			if loaded = nil; phase == len(r.story.Phases) { // without load it is over at once
				return ctx.Err()
			}
		case <-next.C:
			if phase++; phase == len(r.story.Phases) {
				if loaded == nil {
					return ctx.Err()
				}
				continue
			}
			p := r.story.Phases[phase]
			end += p.Length
			next.Reset(time.Until(r.record.start.Add(end)))
			if err := r.origin.Enter(p.Name); err != nil {
				return err
			}
		case <-ticker.C:
			if err := r.cluster.Crashed(); err != nil {
				r.record.event("crash", -1, "crash", "%v", err)
				return err
			}
			r.opt.Progress(r.progress(phase))
		}
	}
}

// progress is how far the run is.
func (r *session) progress(phase int) Progress {
	p := Progress{At: r.record.now(), Length: r.length(), Limit: r.limitNow()}
	if phase >= 0 && phase < len(r.story.Phases) {
		p.Phase = r.story.Phases[phase].Name
	}
	for i := range r.nodes {
		last, ok := r.cluster.Latest(i)
		switch {
		case !r.cluster.Alive(i):
			p.Down = append(p.Down, r.name(i))
		case ok && time.Since(last.Got) < 2*time.Second:
			p.Shares += last.Share
		}
	}
	for _, bins := range r.origin.Arrivals(load.Monotonic()-int64(time.Second), time.Second, 1) {
		p.Origin += float64(bins[0])
	}
	return p
}

func (r *session) limitNow() int64 {
	r.record.mu.Lock()
	defer r.record.mu.Unlock()
	limit := int64(r.story.Limit())
	for _, l := range r.record.limits {
		limit = l.Limit
	}
	return limit
}
