package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
)

// ChangeRequest asks a node to change what the whole cluster works under: the
// nodes and budgets of a file, or the removal of dead nodes.
type ChangeRequest struct {
	// Name is the file's name, for messages, and File its text (YAML). No text
	// leaves nodes and budgets as they are.
	Name string `json:"name,omitempty"`
	File string `json:"file,omitempty"`
	// Forget lists nodes that the operator declares dead: their process does not
	// run and will not come back under its present incarnation.
	Forget []string `json:"forget,omitempty"`
	// Canary is the node that takes the change first, for CanarySeconds: up to an
	// hour, 0 means ten seconds.
	Canary        string  `json:"canary,omitempty"`
	CanarySeconds float64 `json:"canary_seconds,omitempty"`
	// Revert allows content that was in force before.
	Revert bool `json:"revert,omitempty"`
	// Replace puts the change in the place of one that is under way.
	Replace bool `json:"replace,omitempty"`
	// Expect, if set, is the epoch (VERSION-HASH) that must be in force.
	Expect string `json:"expect,omitempty"`
	// DryRun asks for the plan alone.
	DryRun bool `json:"dry_run,omitempty"`
}

// ChangeState is how far a change has come.
type ChangeState string

// The states.
const (
	ChangePlanned    ChangeState = "planned"    // a dry run
	ChangeNone       ChangeState = "none"       // the file says what is in force
	ChangeCanary     ChangeState = "canary"     // on trial at one node
	ChangeSpreading  ChangeState = "spreading"  // on its way
	ChangeInForce    ChangeState = "in-force"   // at every node that is heard
	ChangeSuperseded ChangeState = "superseded" // another change won
	ChangeAbandoned  ChangeState = "abandoned"  // taken back: what was before is in force
)

// Done reports whether nothing more will come.
func (s ChangeState) Done() bool {
	return s != ChangeCanary && s != ChangeSpreading
}

// Change is one config epoch on its way into force, as the answering node sees
// it.
type Change struct {
	// Epoch is VERSION-HASH; of the epoch in force for a plan, and of the one that
	// took its place where another with the same content did, as after a trial.
	Epoch  string      `json:"epoch"`
	Parent string      `json:"parent,omitempty"`
	State  ChangeState `json:"state"`
	Reason string      `json:"reason,omitempty"` // why it is not in force, or what superseded it
	// Plan says in words what differs from the epoch before.
	Plan     []string     `json:"plan"`
	Warnings []string     `json:"warnings,omitempty"`
	Nodes    []ChangeNode `json:"nodes"`
	// Canary is the node on trial, if any.
	Canary  string  `json:"canary,omitempty"`
	Seconds float64 `json:"seconds"` // since this node learned of it
}

// ChangeNode is how far one node is with a change.
type ChangeNode struct {
	Name      string  `json:"name"`
	Adopted   bool    `json:"adopted"` // its bases are lowered where the change lowers them
	Acked     bool    `json:"acked"`   // and nothing above them is lent
	InForce   bool    `json:"in_force"`
	AgeMillis float64 `json:"age_ms"` // of its newest row; -1 when none
	Waits     string  `json:"waits,omitempty"`
}

// Change asks the node for a change, or for its plan.
func (c *Client) Change(ctx context.Context, r ChangeRequest) (Change, error) {
	var out Change
	err := c.post(ctx, "/v1/apply", r, &out)
	return out, err
}

// Progress asks how far an epoch (VERSION-HASH) is; empty means the newest.
func (c *Client) Progress(ctx context.Context, epoch string) (Change, error) {
	var query url.Values
	if epoch != "" {
		query = url.Values{"epoch": {epoch}}
	}
	var out Change
	err := c.call(ctx, http.MethodGet, "/v1/change", query, &out)
	return out, err
}

// Promote ends the trial of a canary well, Abandon badly: the change goes to
// all nodes, or is taken back.
func (c *Client) Promote(ctx context.Context) (Change, error) {
	var out Change
	err := c.post(ctx, "/v1/promote", struct{}{}, &out)
	return out, err
}

// Abandon takes a change on trial back.
func (c *Client) Abandon(ctx context.Context) (Change, error) {
	var out Change
	err := c.post(ctx, "/v1/abandon", struct{}{}, &out)
	return out, err
}

// post sends a JSON body.
func (c *Client) post(ctx context.Context, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("ask %s: %w", c.address, err)
	}
	return c.exchange(ctx, http.MethodPost, path, nil, bytes.NewReader(body), out)
}
