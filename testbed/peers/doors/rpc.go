package doors

import (
	"bytes"
	"fmt"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/proto"

	"subak/testbed/peers/drive"
	"subak/testbed/peers/measure"
)

// placeholder is where a key of the generator goes.
const placeholder = "00000000"

// rpcRequest asks for one descriptor with a path and whose request it is, and says
// where in it the key goes.
func rpcRequest() (message []byte, vary int) {
	m, err := proto.Marshal(&ratelimit.RateLimitRequest{
		Domain: "edge",
		Descriptors: []*common.RateLimitDescriptor{{Entries: []*common.RateLimitDescriptor_Entry{
			{Key: "path", Value: "/api/items"}, {Key: "api_key", Value: placeholder},
		}}},
	})
	if err != nil {
		panic(err) // of a constant
	}
	return m, bytes.Index(m, []byte(placeholder))
}

// rpcTarget asks with keys keys in turn; 0 means that no key comes twice.
func rpcTarget(keys uint32) drive.Target {
	message, vary := rpcRequest()
	return drive.Target{
		Kind: drive.RPC, Conns: rpcConns, Streams: rpcStreams, Request: message, Vary: vary, Keys: keys,
		Method: ratelimit.RateLimitService_ShouldRateLimit_FullMethodName,
		Answer: []byte{1 << 3, byte(ratelimit.RateLimitResponse_OK)}, // overall_code
	}
}

// rpcDoor is a door for Envoy; its one rule may tell tenants apart.
func rpcDoor(tenant string) string {
	if tenant != "" {
		tenant = ", tenant: " + tenant
	}
	return fmt.Sprintf(`envoy:
  - name: envoys
    listen: LISTEN
    default: {budget: origin, class: uncleared}
    domains: [{name: edge, budget: origin, rules: [{match: {path: "/api/*"}, class: confirmed%s}]}]
`, tenant)
}

// rls is Envoy's rate limit service.
func (b *Bench) rls() measure.Case {
	const keys = 256
	what := fmt.Sprintf("RLS: one call, %d connections with %d calls in flight on each", rpcConns, rpcStreams)
	return b.door("doors/rls", what, rpcTarget(keys), []measure.Claim{
		atLeast("doors/rls", "RLS: requests/s beside a bare grpc-go server's that always says OK", 0, 1, 0.85),
		atMost("doors/rls-cpu", "RLS: server CPU for each request beside that one's", measure.CPU, 1.15),
		noted(atMost("doors/rls-p99", "its p99", measure.Tail, 0)),
		noted(atLeast("doors/rls-roomy", "its requests/s beside that server's with a node's collector", 0, 2, 0)),
	}, ofNode(rpcDoor("")), ofFloor("grpc-go, always OK", "always-ok"), ofFloor("grpc-go, roomy heap", "always-ok", roomy))
}
