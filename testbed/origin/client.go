package origin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// Client steers an origin in another process.
type Client struct {
	// Address is host:port of its control listener.
	Address string
	// HTTP sends the requests (default http.DefaultClient).
	HTTP *http.Client
}

// Report fetches the state.
func (c *Client) Report(ctx context.Context) (r Report, err error) {
	return r, c.call(ctx, http.MethodGet, "/report", nil, &r)
}

// Judge has a claim tested.
func (c *Client) Judge(ctx context.Context, claim Claim) (j Judgement, err error) {
	return j, c.call(ctx, http.MethodPost, "/judge", claim, &j)
}

// Enter begins a phase.
func (c *Client) Enter(ctx context.Context, name string) error {
	return c.call(ctx, http.MethodPost, "/phase?name="+url.QueryEscape(name), nil, nil)
}

// Reset starts anew with cfg.
func (c *Client) Reset(ctx context.Context, cfg Config) error {
	return c.call(ctx, http.MethodPost, "/reset", cfg, nil)
}

// answerMax bounds what is read of an answer, in bytes: the series of an hour
// in 64 classes stays below it.
const answerMax = 32 << 20

func (c *Client) call(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("origin: encode: %w", err)
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+c.Address+path, body)
	if err != nil {
		return fmt.Errorf("origin: %w", err)
	}
	client := c.HTTP
	if client == nil {
		client = http.DefaultClient
	}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("origin: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode/100 != 2 {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10)) // as far as it goes
		return fmt.Errorf("origin: %s %s: %s: %s", method, path, resp.Status, bytes.TrimSpace(text))
	}
	if out == nil {
		return nil
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, answerMax)).Decode(out); err != nil {
		return fmt.Errorf("origin: %s %s: %w", method, path, err)
	}
	return nil
}
