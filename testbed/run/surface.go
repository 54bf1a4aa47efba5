//go:build linux

package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"subak/testbed/load"
	"subak/testbed/origin"
)

// stream holds up a drain: a request at each node whose answer never ends.
func (d *deed) stream(ctx context.Context) error {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- each(d.nodes, func(_, i int) error {
			at := d.record.now()
			status, n, err := load.Endless(inner, d.host(i).DialContext, d.url(i, d.Class, origin.EndlessSuffix[1:]))
			if inner.Err() != nil {
				return nil // closed by its client, at the end
			}
			d.record.event(d.Name, i, "exit", "broke after %s, status %d, %d bytes: %v", (d.record.now() - at).Round(time.Millisecond), status, n, err)
			if status != 200 {
				return fmt.Errorf("the stream at %s was refused: status %d, %w", d.name(i), status, errors.Join(err))
			}
			return nil
		})
	}()
	d.lasting(ctx)
	cancel()
	return <-ended
}
