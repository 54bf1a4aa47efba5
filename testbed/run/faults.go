//go:build linux

package run

import (
	"context"
	"fmt"
	"strings"
	"time"

	"subak/testbed/evidence"
	"subak/testbed/scenario"
)

// deed is one fault at work.
type deed struct {
	*session
	*scenario.Fault
	nodes []int // that it befalls
}

// act does one fault at its time: begins it, waits, ends it, and takes down when
// that really was. What cannot be done is an event, and so are its consequences.
func (r *session) act(ctx context.Context, f *scenario.Fault) {
	if r.until(ctx, f.At) != nil {
		return
	}
	d := &deed{session: r, Fault: f, nodes: r.indices(f.Nodes)}
	band := evidence.Band{Kind: string(f.Kind), Label: f.Name, Nodes: d.nodes, From: r.record.now()}
	for _, g := range f.Groups {
		band.Groups = append(band.Groups, r.indices(g))
	}
	if band.Nodes == nil {
		band.Nodes = r.indices(append(append([]string{}, f.From...), f.To...))
	}
	r.opt.Say("%5.1f s  %s", band.From.Seconds(), d)
	if err := d.do(ctx, &band); err != nil && ctx.Err() == nil {
		r.record.event(f.Name, -1, failedKind, "%v", err)
		r.opt.Say("%5.1f s  %s: %v", r.record.now().Seconds(), f.Name, err)
	}
	if band.To == 0 {
		band.To = r.record.now()
	}
	r.record.band(band)
}

// String says what is about to be done.
func (d *deed) String() string {
	what := string(d.Kind)
	if d.Name != what {
		what += " (" + d.Name + ")"
	}
	if names := strings.Join(d.Nodes, " "); names != "" && len(d.Nodes) <= 6 {
		what += " " + names
	}
	if d.For > 0 {
		what += fmt.Sprintf(", for %s", d.For)
	}
	return what
}

// until waits for a time of the run.
func (r *session) until(ctx context.Context, at time.Duration) error {
	return sleep(ctx, time.Until(r.record.start.Add(at)))
}

// lasting waits until the fault is to end and tells whether the run goes on after
// it.
func (d *deed) lasting(ctx context.Context) (more bool) {
	return d.until(ctx, min(d.At+d.For, d.length())) == nil && d.At+d.For < d.length()
}

// do does the fault. The band's end is when it was undone, which for some is
// before all consequences are seen.
func (d *deed) do(ctx context.Context, band *evidence.Band) error {
	if t := tamperOf(d.Fault, d.indices); t != nil {
		undo := d.fabric.with(d.net.Set, t)
		d.lasting(ctx)
		undo()
		return nil
	}
	switch d.Kind {
	case scenario.Kill, scenario.Stop:
		return d.down(ctx, band)
	case scenario.Restart:
		return d.restart(ctx, band)
	case scenario.Pause:
		return d.pause(ctx)
	case scenario.Slow:
		return d.slow(ctx)
	case scenario.Join:
		return d.join(ctx, band)
	case scenario.Leave:
		return d.leave(ctx, band)
	case scenario.Forget:
		return d.forget(ctx)
	case scenario.Apply:
		return d.apply(ctx)
	case scenario.Rotate:
		return d.rotate(ctx, band)
	case scenario.PoisonKind:
		return d.poison(ctx)
	case scenario.Stream:
		return d.stream(ctx)
	case scenario.Doctor:
		return d.doctor(ctx)
	}
	return fmt.Errorf("no way to do %q", d.Kind)
}
