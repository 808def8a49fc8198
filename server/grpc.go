package server

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// newGRPC makes the gRPC door: the service, health and reflection.
func (s *Server) newGRPC() *grpc.Server {
	options := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(MaxMessage),
		// Calls reuse the stacks of a few goroutines; a tenth of a get's processor time is else spent on growing new ones. When all
		// are taken, by watches perhaps, a call gets a goroutine of its own.
		grpc.NumStreamWorkers(16),
		grpc.UnaryInterceptor(s.calls.unary),
		grpc.StreamInterceptor(s.calls.stream),
		// Long watches: notice clients that are gone, and let clients ask often whether we are.
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 30 * time.Second, Timeout: 20 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
	}
	if s.tls != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(s.tls)))
	}
	g := grpc.NewServer(options...)
	desc := serviceDesc()
	g.RegisterService(&desc, s.calls.bridge)
	healthpb.RegisterHealthServer(g, s.health)
	reflection.Register(g)
	return g
}

// serviceDesc is the service, except that a request which cannot be decoded is the caller's fault: gRPC itself calls it
// INTERNAL.
func serviceDesc() grpc.ServiceDesc {
	desc := dagbridgev1.BridgeService_ServiceDesc
	desc.Methods = slices.Clone(desc.Methods)
	for i, m := range desc.Methods {
		desc.Methods[i].Handler = func(srv any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
			return m.Handler(srv, ctx, func(req any) error {
				if err := decode(req); err != nil {
					return status.Errorf(codes.InvalidArgument, "the request of %s cannot be decoded: %s", m.MethodName, status.Convert(err).Message())
				}
				return nil
			}, intercept)
		}
	}
	return desc
}
