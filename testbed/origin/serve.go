package origin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// Addresses is where a served origin listens.
type Addresses struct {
	Data    string `json:"data"`    // host:port that the proxies forward to
	Control string `json:"control"` // host:port of [Origin.Control]
}

// Control is the handler through which another process reads and steers the
// origin: GET /report, POST /phase?name=, POST /reset with a
// [Config] and POST /judge with a [Claim], both in JSON. It belongs on a listener of its own, away from the traffic.
func (o *Origin) Control() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /report", func(w http.ResponseWriter, _ *http.Request) { answer(w, o.Report()) })
	mux.HandleFunc("POST /judge", func(w http.ResponseWriter, r *http.Request) {
		var c Claim
		if !read(w, r, &c) {
			return
		}
		j, err := o.Judge(c)
		if err != nil {
			report(w, err)
			return
		}
		answer(w, j)
	})
	mux.HandleFunc("POST /phase", func(w http.ResponseWriter, r *http.Request) {
		report(w, o.Enter(r.FormValue("name")))
	})
	mux.HandleFunc("POST /reset", func(w http.ResponseWriter, r *http.Request) {
		var cfg Config
		if read(w, r, &cfg) {
			report(w, o.Reset(cfg))
		}
	})
	return mux
}

// read decodes the body into v, or answers what is wrong with it.
func read(w http.ResponseWriter, r *http.Request, v any) bool {
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10)).Decode(v)
	if err != nil {
		report(w, fmt.Errorf("origin: decode: %w", err))
	}
	return err == nil
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the reader has gone: nobody to tell
}

func report(w http.ResponseWriter, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// Serve runs an origin as a process of its own: it listens on two free ports of
// host, writes its [Addresses] as one line of JSON to out, and serves until ctx
// ends or in, when not nil, does: a child that reads from its parent ends with it.
func Serve(ctx context.Context, host string, out io.Writer, in io.Reader) error {
	o, err := New(Config{})
	if err != nil {
		return err
	}
	data, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return fmt.Errorf("origin: %w", err)
	}
	defer func() { _ = data.Close() }()
	control, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return fmt.Errorf("origin: %w", err)
	}
	defer func() { _ = control.Close() }()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if in != nil {
		// Ends with the process at the latest: a read cannot be called off.
		go func() {
			_, _ = io.Copy(io.Discard, in)
			cancel(nil)
		}()
	}
	if err := json.NewEncoder(out).Encode(Addresses{data.Addr().String(), control.Addr().String()}); err != nil {
		return fmt.Errorf("origin: tell the addresses: %w", err)
	}
	var wg sync.WaitGroup
	serve := func(l net.Listener, h http.Handler) *http.Server {
		srv := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 5 * time.Minute}
		wg.Go(func() {
			if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				cancel(fmt.Errorf("origin: serve: %w", err))
			}
		})
		return srv
	}
	servers := []*http.Server{serve(data, o), serve(control, o.Control())}
	<-ctx.Done()
	for _, srv := range servers {
		_ = srv.Close() // it has been told to stop: nothing to add
	}
	wg.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}
