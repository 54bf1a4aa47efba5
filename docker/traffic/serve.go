package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"
)

// serve serves each handler on its port of all addresses until ctx ends.
func serve(ctx context.Context, handlers map[string]http.Handler) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	defer wg.Wait()
	for port, h := range handlers {
		l, err := net.Listen("tcp", at("", port))
		if err != nil {
			cancel(err)
			return err
		}
		srv := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 5 * time.Minute}
		wg.Go(func() {
			if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				cancel(err)
			}
		})
		context.AfterFunc(ctx, func() { _ = srv.Close() }) // told to stop: nothing to add
	}
	<-ctx.Done()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}
