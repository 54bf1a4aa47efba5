package envoy

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
)

// Door is the RateLimitService of one server. Its Service is replaced as a whole
// when rules or limiters change; calls under way finish with the one they met.
type Door struct {
	service atomic.Pointer[Service]
	calls   sync.Pool
}

// NewDoor returns a door with its first service.
func NewDoor(s *Service) *Door {
	d := &Door{}
	d.service.Store(s)
	return d
}

// Service returns the present service.
func (d *Door) Service() *Service { return d.service.Load() }

// Swap puts another service in force and returns the one before.
func (d *Door) Swap(s *Service) *Service { return d.service.Swap(s) }

// Register implements Part. The registrar must be a Server's: another one's codec
// does not know how to read a call.
func (d *Door) Register(r grpc.ServiceRegistrar) {
	r.RegisterService(&grpc.ServiceDesc{
		ServiceName: ratelimitv3.RateLimitService_ServiceDesc.ServiceName,
		HandlerType: (*any)(nil),
		Methods:     []grpc.MethodDesc{{MethodName: "ShouldRateLimit", Handler: handle}},
		Metadata:    ratelimitv3.RateLimitService_ServiceDesc.Metadata,
	}, d)
}

// keepRaw bounds what a call keeps of its last message.
const keepRaw = 16 << 10

// handle answers one call. The call goes back to the pool with its encoding.
func handle(srv any, _ context.Context, receive func(any) error, _ grpc.UnaryServerInterceptor) (res any, err error) {
	d := srv.(*Door)
	c, _ := d.calls.Get().(*call)
	if c == nil {
		c = &call{}
	}
	c.home = d
	s := d.service.Load()
	if err := receive(c); err != nil {
		s.tally.malformed.Add(1)
		return nil, err
	}
	defer func() {
		if p := recover(); p != nil {
			s.tally.panics.Add(1)
			res, err = nil, recovered(s.deps.Log, p)
		}
	}()
	s.answer(c)
	return c, nil
}

// recovered turns a panic into an error for the peer, and words for the log.
func recovered(log *slog.Logger, p any) error {
	if log != nil {
		log.Error("envoy door: a call panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	}
	return status.Error(codes.Internal, "internal error")
}

// codec is the protobuf codec of gRPC with a short cut for calls, which are read
// and written without messages in between.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2(proto.Name)} }

// Unmarshal implements encoding.CodecV2.
func (k codec) Unmarshal(data mem.BufferSlice, v any) error {
	c, ok := v.(*call)
	if !ok {
		return k.CodecV2.Unmarshal(data, v)
	}
	c.raw = c.raw[:0]
	for _, b := range data {
		c.raw = append(c.raw, b.ReadOnlyData()...)
	}
	return c.decode()
}

// Marshal implements encoding.CodecV2.
func (k codec) Marshal(v any) (mem.BufferSlice, error) {
	c, ok := v.(*call)
	if !ok {
		return k.CodecV2.Marshal(v)
	}
	b := append(make([]byte, 0, len(c.out)), c.out...) // the transport keeps it
	c.home.put(c)
	return mem.BufferSlice{mem.SliceBuffer(b)}, nil
}

// put takes a call back that nothing uses any more.
func (d *Door) put(c *call) {
	if cap(c.raw) <= keepRaw && cap(c.out) <= keepRaw {
		d.calls.Put(c)
	}
}
