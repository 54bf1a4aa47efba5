package envoy

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// healthPoll is how often watchers look at the readiness.
const healthPoll = 250 * time.Millisecond

// health is the gRPC health service. It keeps no state of its own, so it cannot
// disagree with what /readyz says (lesson O25).
type health struct {
	grpc_health_v1.UnimplementedHealthServer
	ready  func() (bool, string)
	names  map[string]bool
	closed chan struct{}
	once   sync.Once
}

func newHealth(ready func() (bool, string), services map[string]grpc.ServiceInfo) *health {
	h := &health{ready: ready, names: map[string]bool{"": true}, closed: make(chan struct{})}
	for name := range services {
		h.names[name] = true
	}
	return h
}

// close says not serving from now on.
func (h *health) close() { h.once.Do(func() { close(h.closed) }) }

func (h *health) status(service string) grpc_health_v1.HealthCheckResponse_ServingStatus {
	if !h.names[service] {
		return grpc_health_v1.HealthCheckResponse_SERVICE_UNKNOWN
	}
	select {
	case <-h.closed:
		return grpc_health_v1.HealthCheckResponse_NOT_SERVING
	default:
	}
	if h.ready != nil {
		if ok, _ := h.ready(); !ok {
			return grpc_health_v1.HealthCheckResponse_NOT_SERVING
		}
	}
	return grpc_health_v1.HealthCheckResponse_SERVING
}

// Check implements the health service.
func (h *health) Check(_ context.Context, r *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	st := h.status(r.GetService())
	if st == grpc_health_v1.HealthCheckResponse_SERVICE_UNKNOWN {
		return nil, status.Error(codes.NotFound, "unknown service")
	}
	return &grpc_health_v1.HealthCheckResponse{Status: st}, nil
}

// List implements the health service.
func (h *health) List(context.Context, *grpc_health_v1.HealthListRequest) (*grpc_health_v1.HealthListResponse, error) {
	all := map[string]*grpc_health_v1.HealthCheckResponse{}
	for name := range h.names {
		all[name] = &grpc_health_v1.HealthCheckResponse{Status: h.status(name)}
	}
	return &grpc_health_v1.HealthListResponse{Statuses: all}, nil
}

// Watch implements the health service: the status now, and whenever it changes.
func (h *health) Watch(r *grpc_health_v1.HealthCheckRequest, stream grpc_health_v1.Health_WatchServer) error {
	tick := time.NewTicker(healthPoll)
	defer tick.Stop()
	last := grpc_health_v1.HealthCheckResponse_UNKNOWN
	for {
		if st := h.status(r.GetService()); st != last {
			last = st
			if err := stream.Send(&grpc_health_v1.HealthCheckResponse{Status: st}); err != nil {
				return err
			}
		}
		select {
		case <-stream.Context().Done():
			return status.FromContextError(stream.Context().Err()).Err()
		case <-h.closed:
			err := stream.Send(&grpc_health_v1.HealthCheckResponse{Status: h.status(r.GetService())})
			if err != nil {
				return err
			}
			return status.Error(codes.Unavailable, "the server shuts down")
		case <-tick.C:
		}
	}
}
