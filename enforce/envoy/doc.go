// Package envoy is the door for Envoy's rate limit service protocol, version 3
// (envoy.service.ratelimit.v3.RateLimitService).
package envoy
