package server

import (
	"bytes"
	"context"
	"log/slog"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/auth"
	"github.com/dagbridge/dagbridge/server/bridge"
	"github.com/dagbridge/dagbridge/server/config"
)

// A panic in a handler ends its call, not the gateway; what it was is in the log alone.
func TestPanic(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	service, err := bridge.New(nil, nil, slog.New(slog.NewTextHandler(&log, nil)))
	require.NoError(t, err)
	guard, err := auth.New(config.Auth{})
	require.NoError(t, err)
	c := newCalls(service, guard, nil)
	_, err = c.unary(t.Context(), &dagbridgev1.GetJobRequest{Id: "x"}, &grpc.UnaryServerInfo{FullMethod: "/s/GetJob"}, func(context.Context, any) (any, error) {
		panic("the secret reason")
	})
	require.Equal(t, codes.Internal, status.Code(err))
	require.NotContains(t, err.Error(), "secret")
	id := regexp.MustCompile(`internal error ([0-9a-f-]{36})`).FindStringSubmatch(err.Error())
	require.Len(t, id, 2)
	require.Contains(t, log.String(), id[1])
	require.Contains(t, log.String(), "the secret reason")
	require.Contains(t, log.String(), "calls_test.go", "the log says where")
}

// A request that cannot be decoded is its caller's fault.
func TestUndecodable(t *testing.T) {
	t.Parallel()
	for _, m := range serviceDesc().Methods {
		_, err := m.Handler(nil, t.Context(), func(any) error { return status.Error(codes.Internal, "grpc: string field contains invalid UTF-8") }, nil)
		require.Equal(t, codes.InvalidArgument, status.Code(err), m.MethodName)
		require.ErrorContains(t, err, "invalid UTF-8")
	}
}
