// Package grpclimit is interceptors for google.golang.org/grpc over [limit]. A
// refused call ends with RESOURCE_EXHAUSTED and a google.rpc.RetryInfo that says
// when to come again.
//
// # Model
//
// On servers each call is judged before its handler begins: [Config.UnaryServer],
// [Config.StreamServer]. A stream is charged when it opens, and, if
// [Config.Messages] is set, for each message that it receives after its first.
// On clients a call waits for its tokens within its deadline or, if [Config.Refuse]
// is set, fails at once, before anything is sent: [Config.UnaryClient],
// [Config.StreamClient]. That is for a program that keeps a budget of a service
// that does not keep one itself.
//
// Everything is safe for concurrent use.
package grpclimit

import (
	"context"
	"errors"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"subak/enforce"
	"subak/enforce/limit"
)

// Config says what calls are charged to.
type Config struct {
	// Class is charged where Classify is nil or names no class. A call for which
	// there is none is refused with PERMISSION_DENIED (lesson O26).
	Class *limit.Class
	// Classify returns the class to charge and the call to make of an RPC, by its
	// full method name ("/package.Service/Method") and its context, where the
	// peer and the metadata are. nil charges Class with a cost of 1.
	Classify func(ctx context.Context, method string) (*limit.Class, limit.Call)
	// Messages charges a server's streams the same again for each message received
	// after the first, and ends them when one is refused.
	Messages bool
	// Refuse makes client calls fail at once instead of waiting.
	Refuse bool
}

// UnaryServer returns the interceptor for unary calls to a server.
func (c Config) UnaryServer() grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		if err := c.judge(ctx, info.FullMethod); err != nil {
			return nil, err
		}
		return next(ctx, req)
	}
}

// StreamServer returns the interceptor for streams to a server.
func (c Config) StreamServer() grpc.StreamServerInterceptor {
	return func(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
		if err := c.judge(s.Context(), info.FullMethod); err != nil {
			return err
		}
		if c.Messages {
			s = &meteredStream{ServerStream: s, cfg: &c, method: info.FullMethod}
		}
		return next(srv, s)
	}
}

// meteredStream charges for messages. RecvMsg is called by one goroutine at a time.
type meteredStream struct {
	grpc.ServerStream
	cfg    *Config
	method string
	begun  bool
}

// RecvMsg receives the next message and charges it. The first is paid by the
// opening of the stream.
func (s *meteredStream) RecvMsg(m any) error {
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	if !s.begun {
		s.begun = true
		return nil
	}
	return s.cfg.judge(s.Context(), s.method)
}

// UnaryClient returns the interceptor for unary calls of a client.
func (c Config) UnaryClient() grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, next grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if err := c.spend(ctx, method); err != nil {
			return err
		}
		return next(ctx, method, req, reply, cc, opts...)
	}
}

// StreamClient returns the interceptor for streams of a client, which are charged
// when they open.
func (c Config) StreamClient() grpc.StreamClientInterceptor {
	return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, next grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		if err := c.spend(ctx, method); err != nil {
			return nil, err
		}
		return next(ctx, desc, cc, method, opts...)
	}
}

// find returns what an RPC is charged to.
func (c *Config) find(ctx context.Context, method string) (*limit.Class, limit.Call, error) {
	class, call := c.Class, limit.Call{}
	if c.Classify != nil {
		var other *limit.Class
		if other, call = c.Classify(ctx, method); other != nil {
			class = other
		}
	}
	if class == nil {
		return nil, call, status.Error(codes.PermissionDenied, "subak: no class is meant for this call")
	}
	return class, call, nil
}

// judge decides on an RPC at once.
func (c *Config) judge(ctx context.Context, method string) error {
	class, call, err := c.find(ctx, method)
	if err != nil {
		return err
	}
	if d := class.Decide(call); !d.OK {
		return Refusal(class, d)
	}
	return nil
}

// spend waits for the tokens of a client's RPC, or decides at once.
func (c *Config) spend(ctx context.Context, method string) error {
	if c.Refuse {
		return c.judge(ctx, method)
	}
	class, call, err := c.find(ctx, method)
	if err != nil {
		return err
	}
	n := max(call.Cost, 1)
	if call.Tenant != "" {
		err = class.For(call.Tenant).WaitN(ctx, n)
	} else {
		err = class.WaitN(ctx, n)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled):
		return status.Error(codes.Canceled, err.Error())
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil:
		return status.Error(codes.DeadlineExceeded, err.Error())
	}
	return status.Error(codes.ResourceExhausted, err.Error())
}

// Refusal is the error of a refused call: RESOURCE_EXHAUSTED with
// google.rpc.RetryInfo, which says when to come again, and with
// google.rpc.QuotaFailure, which names budget and class. What no wait would help,
// a cost above what the bucket can hold or a class that is gone, has no RetryInfo.
func Refusal(class *limit.Class, d limit.Decision) error {
	name := class.Budget() + "/" + class.Name()
	s := status.Newf(codes.ResourceExhausted, "subak: no capacity left for %s at this node: %s", name, d.Reason)
	quota := &errdetails.QuotaFailure{Violations: []*errdetails.QuotaFailure_Violation{{
		Subject: name, Description: d.Reason.String(),
	}}}
	var with *status.Status
	var err error
	if d.Reason == enforce.CostOverBurst || class.Err() != nil {
		with, err = s.WithDetails(quota)
	} else {
		with, err = s.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(d.RetryAfter())}, quota)
	}
	if err != nil { // details that cannot be marshalled: ours can
		return s.Err()
	}
	return with.Err()
}
