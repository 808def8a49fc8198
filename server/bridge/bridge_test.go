package bridge_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	validatepb "buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"buf.build/go/protovalidate"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/proto/jsoncodec"
	"github.com/dagbridge/dagbridge/server/bridge"
	"github.com/dagbridge/dagbridge/server/engine"
	"github.com/dagbridge/dagbridge/server/store"
	"github.com/dagbridge/dagbridge/translators"
)

func TestStatus(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	b, err := bridge.New(nil, nil, slog.New(slog.NewTextHandler(&log, nil)))
	require.NoError(t, err)
	notJSON := jsoncodec.Unmarshal([]byte("{"), &dagbridgev1.Task{})
	for name, c := range map[string]struct {
		err  error
		code codes.Code
		want string
	}{
		"none":                {nil, codes.OK, ""},
		"a status":            {status.Error(codes.Aborted, "as it is"), codes.Aborted, "as it is"},
		"faults":              {translators.Faults{{Field: "a", Description: "is bad"}, {Description: "so is all"}}, codes.InvalidArgument, "a: is bad\nso is all"},
		"a document":          {notJSON, codes.InvalidArgument, "the document is not JSON"},
		"not found":           {&engine.Error{Kind: engine.NotFound, Message: "m"}, codes.NotFound, "m"},
		"already there":       {&engine.Error{Kind: engine.AlreadyExists, Message: "m"}, codes.AlreadyExists, "m"},
		"not now":             {&engine.Error{Kind: engine.FailedPrecondition, Message: "m"}, codes.FailedPrecondition, "m"},
		"a limit":             {&engine.Error{Kind: engine.ResourceExhausted, Message: "m"}, codes.ResourceExhausted, "m"},
		"a cluster away":      {&engine.Error{Kind: engine.Unavailable, Message: "m"}, codes.Unavailable, "m"},
		"no job":              {fmt.Errorf("%w: x", store.ErrNotFound), codes.NotFound, "there is no such job: x"},
		"disk full":           {store.ErrFull, codes.ResourceExhausted, "disk"},
		"too old":             {store.ErrOutOfRange, codes.OutOfRange, "list again"},
		"a foreign token":     {store.ErrBadToken, codes.InvalidArgument, "token"},
		"closed":              {store.ErrClosed, codes.Unavailable, "closed"},
		"the caller has gone": {context.Canceled, codes.Canceled, "canceled"},
		"too late":            {context.DeadlineExceeded, codes.DeadlineExceeded, "deadline"},
	} {
		t.Run(name, func(t *testing.T) {
			got := b.Status(t.Context(), c.err)
			require.Equal(t, c.code, status.Code(got))
			require.Contains(t, status.Convert(got).Message(), c.want)
		})
	}
	require.Empty(t, log.String())
	got := b.Status(t.Context(), errors.New("open /secret/path: permission denied"))
	require.Equal(t, codes.Internal, status.Code(got))
	require.NotContains(t, got.Error(), "secret")
	require.Contains(t, log.String(), "/secret/path")
}

func TestManyFaultsAreCounted(t *testing.T) {
	t.Parallel()
	b, err := bridge.New(nil, nil, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	var faults translators.Faults
	for i := range 5000 {
		faults.Add(fmt.Sprintf("tasks[%d]", i), "is bad")
	}
	got := status.Convert(b.Status(t.Context(), faults))
	require.Contains(t, got.Message(), "tasks[19]: is bad\nand 4980 more")
	require.Less(t, proto.Size(got.Proto()), 8<<10, "gRPC sends it as headers")
}

// Whatever pattern the protocol demands is said in words.
func TestEveryPatternHasASentence(t *testing.T) {
	t.Parallel()
	b, err := bridge.New(nil, nil, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	patterns := make(map[string]bool)
	var walk func(protoreflect.MessageDescriptor)
	note := func(rules *validatepb.FieldRules) {
		for _, s := range []*validatepb.StringRules{
			rules.GetString(), rules.GetRepeated().GetItems().GetString(), rules.GetMap().GetKeys().GetString(), rules.GetMap().GetValues().GetString(),
		} {
			if s.GetPattern() != "" {
				patterns[s.GetPattern()] = true
			}
		}
	}
	walk = func(md protoreflect.MessageDescriptor) {
		for i := range md.Fields().Len() {
			rules, err := protovalidate.ResolveFieldRules(md.Fields().Get(i))
			require.NoError(t, err)
			note(rules)
		}
		for i := range md.Messages().Len() {
			walk(md.Messages().Get(i))
		}
	}
	for _, file := range []protoreflect.FileDescriptor{
		dagbridgev1.File_dagbridge_v1_task_proto, dagbridgev1.File_dagbridge_v1_job_proto,
		dagbridgev1.File_dagbridge_v1_workflow_proto, dagbridgev1.File_dagbridge_v1_bridge_proto,
	} {
		for i := range file.Messages().Len() {
			walk(file.Messages().Get(i))
		}
	}
	require.Greater(t, len(patterns), 5)
	for pattern := range patterns {
		require.NotEmpty(t, bridge.Sentences[pattern], pattern)
	}
	err = b.Check(t.Context(), &dagbridgev1.ListJobsRequest{Label: []string{"x"}})
	require.EqualError(t, err, `label[0]: must be of the form "name=value"`)
}
