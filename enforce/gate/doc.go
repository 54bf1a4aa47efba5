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
// A Gate is safe for concurrent use; New starts nothing. Everything it counts is
// read at scrape time, labelled by configured names only (lesson O27).
package gate
