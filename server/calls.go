package server

import (
	"context"
	"errors"
	"fmt"
	"path"
	"runtime/debug"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/auth"
	"github.com/dagbridge/dagbridge/server/bridge"
	"github.com/dagbridge/dagbridge/server/telemetry"
)

// calls is the chain that every RPC goes through, whichever door it came by.
type calls struct {
	bridge  *bridge.Bridge
	guard   *auth.Guard
	metrics *telemetry.Metrics

	// Streams end when the gateway begins to stop, calls that wait a little later.
	streaming, calling   context.Context
	endStreams, endCalls context.CancelFunc
}

func newCalls(b *bridge.Bridge, guard *auth.Guard, metrics *telemetry.Metrics) *calls {
	c := &calls{bridge: b, guard: guard, metrics: metrics}
	c.streaming, c.endStreams = context.WithCancel(context.Background())
	c.calling, c.endCalls = context.WithCancel(context.Background())
	return c
}

var errStopping = status.Error(codes.Unavailable, "the gateway is stopping: connect again in a moment")

// until is a context that also ends when the gateway stops.
func until(ctx, stop context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	detach := context.AfterFunc(stop, func() { cancel(errStopping) })
	return ctx, func() {
		detach()
		cancel(nil)
	}
}

// waiting are the requests that may hold their call for long.
type waiting interface {
	GetWaitFor() dagbridgev1.WaitFor_Value
}

// unary is a grpc.UnaryServerInterceptor.
func (c *calls) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (resp any, err error) {
	if w, ok := req.(waiting); ok && w.GetWaitFor() > dagbridgev1.WaitFor_ACCEPTED {
		var done func()
		ctx, done = until(ctx, c.calling)
		defer done()
	}
	defer c.finish(ctx, info.FullMethod, time.Now(), &err)
	admitted, err := c.guard.Admit(ctx, info.FullMethod)
	if err != nil {
		return nil, err
	}
	if err := c.bridge.Check(admitted, req.(proto.Message)); err != nil {
		return nil, err
	}
	return handler(admitted, req)
}

// stream is a grpc.StreamServerInterceptor.
func (c *calls) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
	ctx, done := until(ss.Context(), c.streaming)
	defer done()
	defer c.finish(ctx, info.FullMethod, time.Now(), &err)
	admitted, err := c.guard.Admit(ctx, info.FullMethod)
	if err != nil {
		return err
	}
	defer c.metrics.StreamOpened(path.Base(info.FullMethod))()
	return handler(srv, &stream{ServerStream: ss, ctx: admitted, check: c.bridge.Check})
}

// stream is a stream whose requests are checked.
type stream struct {
	grpc.ServerStream
	ctx   context.Context
	check func(context.Context, proto.Message) error
}

func (s *stream) Context() context.Context { return s.ctx }

func (s *stream) RecvMsg(m any) error {
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	return s.check(s.ctx, m.(proto.Message))
}

// finish turns what came of a call, a panic included, into what its caller is told, and counts it. It is deferred.
func (c *calls) finish(ctx context.Context, method string, began time.Time, err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
	}
	told := c.bridge.Status(ctx, *err)
	if told != nil && errors.Is(context.Cause(ctx), errStopping) {
		if code := status.Code(told); code == codes.Canceled || code == codes.Internal {
			told = errStopping
		}
	}
	*err = told
	c.metrics.Requested(path.Base(method), status.Code(told).String(), time.Since(began))
}
