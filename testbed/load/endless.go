package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
)

// Endless sends one request and reads its answer until the answer ends, the
// connection breaks or ctx ends, which is no error: the client that holds up a
// drain (lesson O23). It returns the status (0 when there was no answer) and how
// many bytes of the body came.
func Endless(ctx context.Context, dial Dialer, target string) (status int, bytes int64, err error) {
	u, err := url.Parse(target)
	if err != nil || u.Scheme != "http" || u.Host == "" {
		return 0, 0, fmt.Errorf("load: %q is not an http URL", target)
	}
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	transport := &http.Transport{DialContext: dial, DisableKeepAlives: true}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return 0, 0, fmt.Errorf("load: %w", err)
	}
	resp, err := transport.RoundTrip(req)
	if err == nil {
		status = resp.StatusCode
		bytes, err = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close() // it has been read as far as it goes
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, io.EOF) {
		return status, bytes, fmt.Errorf("load: endless request: %w", err)
	}
	return status, bytes, nil
}
