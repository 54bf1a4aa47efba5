// Package envoy is the door for Envoy's rate limit service protocol, version 3
// (envoy.service.ratelimit.v3.RateLimitService), and the gRPC server for it.
//
// # Model
//
// A call names a domain and some descriptors: lists of keys with values. The
// domain leads to a budget; the first rule that matches a descriptor gives its
// class, cost and tenant. Each descriptor is charged cost x hits units, all of
// a call's or none (enforce.DecideAll): one that is refused costs its siblings
// nothing, and tells them so (lesson O11). The answer has a status for each
// descriptor with limit, rest and reset, and header fields for the client, the
// ones that package gate sends.
//
// # Decisions on the protocol
//
//   - hits_addend of the call: 0 is 1, as it cannot be told from unset. That of
//     a descriptor goes before it; there 0 is a peek: the descriptor fails the call
//     if it could not be paid once, takes nothing and is no demand.
//   - is_negative_hits is counted and not obeyed: who gives back need not be who
//     was charged, and what was not charged would be tokens from nothing.
//   - A limit in a descriptor is counted and not obeyed: the budget is the
//     cluster's, and one data plane does not set it.
//   - current_limit is the class's bucket at this node as the RateLimit fields put
//     it: q units, earned in w seconds (unit_multiplier where w is above 1).
//   - A cost that is only known afterwards (apply_on_stream_done) is charged if it
//     fits then, and is demand if not: the protocol does not say that the work is
//     done already.
//   - A key that a descriptor has twice matches only if all its values do.
//   - An unlisted domain, a descriptor that no rule matches and a call without
//     descriptors go the way of OnUnknown and are counted (lesson O26). None of
//     them is an error, nor is a value that is no UTF-8, because an Envoy that
//     fails open lets a failed call pass. A call of more than 32 descriptors is
//     refused.
//
// # Units
//
// Costs are units of the budget, 1..enforce.MaxCost; times are nanoseconds of the
// lease clock; Retry-After and the fields are in whole seconds, rounded up.
//
// # Bounds
//
// Nothing is kept of a value: tenants live in the limiter's bounded table, metrics
// are labelled by configured names (lesson O27). Messages, calls in flight on
// a connection and connections are bounded (ServerConfig).
//
// # Concurrency
//
// A Service is immutable but for its counters, and is replaced as a whole (Renew,
// Door.Swap). A call takes no lock of ours and allocates its answer's bytes only.
// Server starts what grpc-go starts, and nothing before Serve.
//
// # Envoy's side
//
//	http_filters:
//	  - name: envoy.filters.http.ratelimit
//	    typed_config:
//	      "@type": type.googleapis.com/envoy.extensions.filters.http.ratelimit.v3.RateLimit
//	      domain: edge
//	      rate_limit_service:
//	        transport_api_version: V3
//	        grpc_service: {envoy_grpc: {cluster_name: subak}}
//
// and in the virtual host, for a descriptor of path and client:
//
//	rate_limits:
//	  - actions:
//	      - request_headers: {header_name: ":path", descriptor_key: path}
//	      - remote_address: {}
package envoy
