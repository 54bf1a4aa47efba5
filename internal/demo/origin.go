package demo

import (
	"context"
	"os"

	"subak/testbed/origin"
)

// ServeOrigin is the body of the hidden command that [Options.OriginArgs] names:
// an origin in a process of its own, which ends with its standard input.
func ServeOrigin(ctx context.Context) error {
	return origin.Serve(ctx, "127.0.0.1", os.Stdout, os.Stdin)
}
