package api

import (
	"context"
	"net/http"
	"time"
)

// Shares is what a node enforces at this instant. Unlike [Status], which is a
// snapshot that may be a quarter of a second old, it is read from the data plane
// when asked, without the decision loop, so it can be asked for often.
type Shares struct {
	Time    time.Time `json:"time"`
	Budgets []Share   `json:"budgets"`
}

// Share is one budget's part of [Shares], in units per second.
type Share struct {
	Name    string    `json:"name"`
	Total   float64   `json:"total"`
	Classes []float64 `json:"classes"` // by priority
}

// Shares asks what the node enforces now.
func (c *Client) Shares(ctx context.Context) (Shares, error) {
	var s Shares
	err := c.call(ctx, http.MethodGet, "/v1/shares", nil, &s)
	return s, err
}
