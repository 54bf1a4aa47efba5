//go:build linux

package run

import (
	"context"
	"errors"
	"fmt"

	"subak/internal/api"
	"subak/testbed/cluster"
	"subak/testbed/cluster/poison"
	"subak/testbed/scenario"
)

// poison sends what must be refused, one after the other, and takes down what
// became of each.
func (d *deed) poison(ctx context.Context) error {
	var errs []error
	for _, p := range d.Poison {
		var err error
		switch p {
		case scenario.BrokenFile:
			err = d.brokenFile(ctx)
		case scenario.OldFile:
			err = d.oldFile(ctx)
		case scenario.Conflict:
			err = d.conflict(ctx)
		case scenario.Garbage:
			err = d.garbage(ctx)
		case scenario.ForeignFile:
			err = d.foreignFile(ctx)
		default:
			err = fmt.Errorf("no way to send %q", p)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", p, err))
		}
	}
	return errors.Join(errs...)
}

// verdict takes down whether a node refused something; an error that is no
// refusal is returned.
func (d *deed) verdict(i int, what scenario.Poison, err error) error {
	if refused, ok := errors.AsType[*api.Refused](err); ok {
		d.record.event(d.Name, i, "refused", "%s: %s", what, refused.Message)
		return nil
	}
	if err == nil {
		d.record.event(d.Name, i, "accepted", "%s", what)
	}
	return err
}

// garbageRounds of everything that is hostile, some 50 ms each.
const garbageRounds = 30

// garbage sends hostile bytes from the origin's host, which is nobody's peer. It
// is refused if nothing was taken and every node still answers.
func (d *deed) garbage(ctx context.Context) error {
	sent, err := poison.Send(ctx, d.cluster, d.host(d.session.nodes), d.cluster.Roster(), garbageRounds, d.seed)
	if err != nil {
		return err
	}
	err = each(d.cluster.Roster(), func(_, i int) error {
		_, err := d.cluster.Client(i).Status(ctx)
		return err
	})
	switch {
	case err != nil:
		return err
	case sent.Accepted() > 0:
		d.record.event(d.Name, -1, "accepted", "%s: %d of %d requests to admin interfaces", scenario.Garbage, sent.Accepted(), sent.Requests)
	default:
		d.record.event(d.Name, -1, "refused", "%s: %d datagrams, %d streams, %d packets with the key, %d requests",
			scenario.Garbage, sent.Datagrams, sent.Streams, sent.Packets, sent.Requests)
	}
	return nil
}

// foreign is a sound file of a cluster with other nodes and another budget.
const foreign = "cluster: {name: elsewhere}\nnodes:\n  - {name: oslo, weight: 10}\n  - {name: lima, weight: 20}\n" +
	"budgets:\n  - name: other\n    limit: 500/s\n    classes:\n      - {name: a, reserve: 50%}\n      - {name: b, reserve: 50%}\n"

func (d *deed) foreignFile(ctx context.Context) error {
	ask, err := d.asked()
	if err != nil {
		return err
	}
	_, err = d.cluster.Client(ask).Change(ctx, api.ChangeRequest{Name: "foreign.yaml", File: foreign})
	return d.verdict(ask, scenario.ForeignFile, err)
}

// broken is a file whose parts each have a fault.
const broken = "budgets:\n  - name: origin\n    limit: -5/s\n    classes:\n      - {name: only, reserve: 300%}\n  - name: origin\n    limit: oops\n"

func (d *deed) brokenFile(ctx context.Context) error {
	ask, err := d.asked()
	if err != nil {
		return err
	}
	_, err = d.cluster.Client(ask).Change(ctx, api.ChangeRequest{Name: "broken.yaml", File: broken})
	return d.verdict(ask, scenario.BrokenFile, err)
}

// oldFile applies what the cluster began with, without saying that it means to.
func (d *deed) oldFile(ctx context.Context) error {
	ask, err := d.asked()
	if err != nil {
		return err
	}
	first := cluster.Edit{Limit: int64(d.story.Limit())}
	for _, c := range d.story.Budget.Classes {
		first.Reserve = append(first.Reserve, ppm(c.Reserve))
	}
	_, err = d.cluster.Apply(ctx, ask, first)
	return d.verdict(ask, scenario.OldFile, err)
}

// conflict applies two different edits at two nodes at once. Neither changes the
// limit. One of them wins, or both are refused.
func (d *deed) conflict(ctx context.Context) error {
	roster := d.cluster.Roster()
	if len(roster) < 2 || len(d.story.Budget.Classes) < 2 {
		return errors.New("two nodes and two classes are needed")
	}
	asked := []int{roster[0], roster[len(roster)-1]}
	made := make([]api.Change, 2)
	err := each(asked, func(k, i int) error {
		var err error
		made[k], err = d.cluster.Apply(ctx, i, cluster.Edit{Reserve: d.tilted(int64(k + 1))})
		if _, refused := errors.AsType[*api.Refused](err); refused {
			return d.verdict(i, scenario.Conflict, err)
		}
		return err
	})
	if err != nil {
		return err
	}
	return each(asked, func(k, i int) error {
		if made[k].Epoch == "" {
			return nil // refused at once
		}
		now, err := d.cluster.AwaitChange(ctx, i, made[k].Epoch)
		switch now.State {
		case api.ChangeInForce:
			d.record.event(d.Name, i, "in-force", "%s: epoch %s won", scenario.Conflict, made[k].Epoch)
			return nil
		case api.ChangeSuperseded, api.ChangeAbandoned:
			d.record.event(d.Name, i, "refused", "%s: epoch %s lost: %s", scenario.Conflict, made[k].Epoch, now.Reason)
			return nil
		}
		return err
	})
}

// tilted are the reserves with some percent of the first class given to the last.
func (d *deed) tilted(percent int64) (reserve []int64) {
	for _, c := range d.story.Budget.Classes {
		reserve = append(reserve, ppm(c.Reserve))
	}
	move := min(percent*10_000, reserve[0])
	reserve[0] -= move
	reserve[len(reserve)-1] += move
	return reserve
}
