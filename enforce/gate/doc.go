// Package gate is the HTTP door in front of a node's limiters.
//
// A Gate serves one listener: classify the request by the operator's rules,
// decide with the local limiter (package enforce: no lock, no network call), then
// forward it to a backend or refuse it. On the check path it answers the
// forward-auth requests of nginx, Traefik, Caddy or Envoy instead of forwarding.
//
// What a client says about itself counts only as far as a configured number of
// trusted hops vouches for it: with none, its address is that of the connection
// and no forwarding header is read (lesson O26). Classification never falls
// through in silence: a request that no rule names goes to the default class, is
// denied, or is let through, as configured, and is counted.
//
// Nor is a request judged as one thing and served as another: the rules match the
// one normal form of its path and host, and that form is what the backend gets,
// byte by byte; what has none, or means different things to different servers, is
// refused with 400 (normal.go). A Server refuses HTTP/1 that could be framed in
// two ways before anything reads it (framing.go).
//
// A request is admitted once, whatever becomes of it then: a backend that cannot
// be reached costs no second charge at another, and a request that a backend may
// have seen is not sent again (forward.go). Bodies of responses may be paced by
// a budget in bytes: each piece is paid in full before it is sent (egress.go).
// Everything a client can hold (heads, bodies, connections, requests in flight, an
// answer that it does not take) has a bound in Limits; beyond the bound on
// requests in flight the answer is 503, not 429, because it is not the client's
// doing.
//
// A Gate is safe for concurrent use; New starts nothing. A Server starts what it
// needs in Serve and ends it before Serve returns, handshakes under way excepted,
// which end with it. Everything counted is read at scrape time, labelled by
// configured names only (lesson O27).
package gate
