package server

import (
	"context"
	"path"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// inProcess is a connection to a service in this process: a call is a call of its handler, through the interceptor that calls
// by the network go through too. It costs a third of what dialling oneself does.
type inProcess struct {
	service   any
	intercept grpc.UnaryServerInterceptor
	methods   map[string]grpc.MethodDesc
}

func newInProcess(desc grpc.ServiceDesc, service any, intercept grpc.UnaryServerInterceptor) *inProcess {
	methods := make(map[string]grpc.MethodDesc)
	for _, m := range desc.Methods {
		methods[m.MethodName] = m
	}
	return &inProcess{service: service, intercept: intercept, methods: methods}
}

// Invoke calls a unary method. Call options mean nothing here.
func (c *inProcess) Invoke(ctx context.Context, method string, req, reply any, _ ...grpc.CallOption) error {
	m, ok := c.methods[path.Base(method)]
	if !ok {
		return status.Errorf(codes.Unimplemented, "there is no method %s", method)
	}
	md, _ := metadata.FromOutgoingContext(ctx)
	ctx = metadata.NewIncomingContext(ctx, md)
	resp, err := m.Handler(c.service, ctx, func(in any) error {
		share(in.(proto.Message), req.(proto.Message))
		return nil
	}, c.intercept)
	if err != nil {
		return err
	}
	share(reply.(proto.Message), resp.(proto.Message))
	return nil
}

// NewStream exists for the interface: streams over HTTP are not made from gRPC's (see streams.go).
func (c *inProcess) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, status.Error(codes.Unimplemented, "no streams in process")
}

// share sets the fields of a message from another one without copying what is below them: messages are immutable once they
// are handed on.
func share(to, from proto.Message) {
	dst := to.ProtoReflect()
	from.ProtoReflect().Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		dst.Set(fd, v)
		return true
	})
}
