package doors

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	quotav3 "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/goccy/go-yaml"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/protobuf/types/known/durationpb"
)

// All that is said in the files for Envoy of what must fit the node's.
func TestTheFilesForEnvoyAskWhatTheNodeAnswers(t *testing.T) {
	t.Parallel()
	node := flat(t, "envoy-node.yaml")
	for _, tc := range []struct {
		file  string
		facts map[string]string // the end of a path in the file, and what is there
	}{
		{"envoy-rls.yaml", map[string]string{
			"rate_limit_service/transport_api_version":                        "V3",
			"rate_limit_service/grpc_service/envoy_grpc/cluster_name":         "subak",
			"http_filters/0/typed_config/domain":                              node["envoy/0/domains/0/name"],
			"clusters/1/name":                                                 "subak",
			"rate_limits/0/actions/0/request_headers/descriptor_key":          "path",
			"rate_limits/0/actions/0/request_headers/header_name":             ":path",
			"http_filters/0/typed_config/failure_mode_deny":                   "false",
			"clusters/1/load_assignment/cluster_name":                         "subak",
			"http_filters/1/name":                                             "envoy.filters.http.router",
			"filters/0/typed_config/use_remote_address":                       "true",
			"filters/0/typed_config/normalize_path":                           "true",
			"HttpProtocolOptions/explicit_http_config/http2_protocol_options": "",
		}},
		{"envoy-rlqs.yaml", map[string]string{
			"typed_config/rlqs_server/envoy_grpc/cluster_name": "subak",
			"typed_config/domain":                              node["envoy/0/domains/0/name"],
			"on_match/action/typed_config/bucket_id_builder/bucket_id_builder/path/string_value":    "/api/",
			"on_no_match/action/typed_config/bucket_id_builder/bucket_id_builder/path/string_value": "/",
			"on_match/action/typed_config/no_assignment_behavior/fallback_rate_limit/blanket_rule":  "DENY_ALL",
		}},
	} {
		have := flat(t, tc.file)
		for end, want := range tc.facts {
			found := false
			for path, v := range have {
				if strings.HasSuffix(path, end) {
					found = true
					if v != want {
						t.Errorf("%s: %s is %q, want %q", tc.file, path, v, want)
					}
				}
			}
			if !found {
				t.Errorf("%s: no %s", tc.file, end)
			}
		}
	}
	if node["envoy/0/client_key"] != "remote_address" || node["envoy/0/listen"] != envoyAddr || node["envoy/0/quota/enabled"] != "true" {
		t.Errorf("the node's door: %v", node)
	}
}

// flat reads a YAML file as a map from path to text.
func flat(t *testing.T, name string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var doc any
	if err := yaml.Unmarshal(text, &doc); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	out := map[string]string{}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			if len(v) == 0 {
				out[path] = ""
			}
			for k, inner := range v {
				walk(strings.TrimPrefix(path+"/"+k, "/"), inner)
			}
		case []any:
			for i, inner := range v {
				walk(fmt.Sprintf("%s/%d", path, i), inner)
			}
		default:
			out[path] = fmt.Sprint(v)
		}
	}
	walk("", doc)
	return out
}

// envoyDoor is a node with the door that Envoys ask, and a connection to it.
func envoyDoor(t *testing.T) (*grpc.ClientConn, context.Context) {
	t.Helper()
	r := prepareRig(t)
	r.doors[envoyAddr] = freePorts(t, 1)[0]
	path := filepath.Join(r.dir, "subak.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// A quota's hold must fit into the term.
	r.write("subak.yaml", once(t, string(text), "term: 200ms", "term: 3s")+r.addressed("envoy-node.yaml"))
	r.startNode()
	c, err := grpc.NewClient(r.doors[envoyAddr], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return c, ctx
}

func TestWhatEnvoysAskIsAnsweredByGRPC(t *testing.T) {
	t.Parallel()
	c, ctx := envoyDoor(t)
	t.Run("a client finds the services and their health", func(t *testing.T) { testServices(ctx, t, c) })
	t.Run("a client of the rate limit service is told of its quota", func(t *testing.T) { testRateLimitService(ctx, t, c) })
	t.Run("a client of the quota service gets a bucket", func(t *testing.T) { testQuotaService(ctx, t, c) })
}

func descriptor(path string) *commonv3.RateLimitDescriptor {
	return &commonv3.RateLimitDescriptor{Entries: []*commonv3.RateLimitDescriptor_Entry{
		{Key: "path", Value: path}, {Key: "remote_address", Value: "192.0.2.7"},
	}}
}

func testRateLimitService(ctx context.Context, t *testing.T, c *grpc.ClientConn) {
	rls := rlsv3.NewRateLimitServiceClient(c)
	for path, want := range map[string]rlsv3.RateLimitResponse_Code{
		"/api/x": rlsv3.RateLimitResponse_OK, "/page": rlsv3.RateLimitResponse_OVER_LIMIT,
	} {
		res, err := rls.ShouldRateLimit(ctx, &rlsv3.RateLimitRequest{Domain: "edge", Descriptors: []*commonv3.RateLimitDescriptor{descriptor(path)}})
		if err != nil {
			t.Fatal(err)
		}
		if res.OverallCode != want || len(res.Statuses) != 1 || res.Statuses[0].Code != want {
			t.Errorf("%s: %v, want %v", path, res, want)
		}
		fields := map[string]string{}
		for _, h := range res.ResponseHeadersToAdd {
			fields[strings.ToLower(h.Key)] = h.Value + string(h.RawValue)
		}
		if want == rlsv3.RateLimitResponse_OVER_LIMIT && (fields["retry-after"] == "" || !strings.HasPrefix(fields["ratelimit"], `"origin/uncleared";`)) {
			t.Errorf("%s: fields %v, want Retry-After and RateLimit", path, fields)
		}
	}
}

func testQuotaService(ctx context.Context, t *testing.T, c *grpc.ClientConn) {
	stream, err := quotav3.NewRateLimitQuotaServiceClient(c).StreamRateLimitQuotas(ctx)
	if err != nil {
		t.Fatal(err)
	}
	id := &quotav3.BucketId{Bucket: map[string]string{"path": "/api/"}}
	report := func(elapsed time.Duration, asked uint64) {
		if err := stream.Send(&quotav3.RateLimitQuotaUsageReports{Domain: "edge", BucketQuotaUsages: []*quotav3.RateLimitQuotaUsageReports_BucketQuotaUsage{{
			BucketId: id, TimeElapsed: durationpb.New(elapsed), NumRequestsDenied: asked,
		}}}); err != nil {
			t.Fatal(err)
		}
	}
	report(500*time.Millisecond, 100)
	rate := 0.0
	for rate == 0 { // a first bucket is saved up for
		res, err := stream.Recv()
		if err != nil {
			t.Fatalf("no bucket: %v", err)
		}
		for _, a := range res.BucketAction {
			if b := a.GetQuotaAssignmentAction().GetRateLimitStrategy().GetTokenBucket(); b != nil {
				rate = float64(b.GetTokensPerFill().GetValue()) / b.GetFillInterval().AsDuration().Seconds()
			}
		}
		report(500*time.Millisecond, 100)
	}
	if rate > 1000 {
		t.Errorf("a bucket of %g/s, more than the budget", rate)
	}
}

func testServices(ctx context.Context, t *testing.T, c *grpc.ClientConn) {
	stream, err := reflectpb.NewServerReflectionClient(c).ServerReflectionInfo(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&reflectpb.ServerReflectionRequest{MessageRequest: &reflectpb.ServerReflectionRequest_ListServices{}}); err != nil {
		t.Fatal(err)
	}
	res, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	listed := fmt.Sprint(res.GetListServicesResponse())
	for _, service := range []string{"envoy.service.ratelimit.v3.RateLimitService", "envoy.service.rate_limit_quota.v3.RateLimitQuotaService", "grpc.health.v1.Health"} {
		if !strings.Contains(listed, service) {
			t.Errorf("reflection does not list %s: %s", service, listed)
		}
	}
	for _, service := range []string{"", "envoy.service.ratelimit.v3.RateLimitService"} {
		h, err := healthpb.NewHealthClient(c).Check(ctx, &healthpb.HealthCheckRequest{Service: service})
		if err != nil || h.Status != healthpb.HealthCheckResponse_SERVING {
			t.Errorf("health of %q: %v, %v; want SERVING", service, h, err)
		}
	}
}
