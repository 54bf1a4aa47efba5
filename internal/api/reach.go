package api

import (
	"context"
	"net/http"
)

// Reach is what a node found of the ways to its seeds, and of the way from its
// peers to the address that it advertises. An error is "" for a way that works.
type Reach struct {
	Advertised string      `json:"advertised"`
	Seeds      []SeedReach `json:"seeds"`
	Peers      []PeerReach `json:"peers"`
}

// SeedReach is the way to one seed.
type SeedReach struct {
	Seed         string   `json:"seed"`
	Self         bool     `json:"self"` // it is this node
	Addresses    []string `json:"addresses"`
	ResolveError string   `json:"resolve_error,omitempty"`
	// UDPError: no answer to a ping came back to the advertised address.
	UDPError  string  `json:"udp_error,omitempty"`
	RTTMillis float64 `json:"rtt_ms"` // of the ping; 0 without an answer
	// TCPError: no push/pull was possible, which goes out by a stream.
	TCPError string `json:"tcp_error,omitempty"`
	Hint     string `json:"hint,omitempty"` // what may be the matter with TCP
}

// PeerReach is the way from a peer that was asked to call back.
type PeerReach struct {
	Peer    string `json:"peer"`
	Address string `json:"address"`
	UDP     bool   `json:"udp"` // its call by datagram arrived
	TCP     bool   `json:"tcp"` // its call by stream arrived
	Error   string `json:"error,omitempty"`
}

// Reach asks the node to try the ways to and from it, which takes up to eleven
// seconds: the client's timeout must be longer.
func (c *Client) Reach(ctx context.Context) (Reach, error) {
	var r Reach
	err := c.call(ctx, http.MethodPost, "/v1/reach", nil, &r)
	return r, err
}
