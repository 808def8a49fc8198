package bridge

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dagbridge/dagbridge/proto/jsoncodec"
	"github.com/dagbridge/dagbridge/server/engine"
	"github.com/dagbridge/dagbridge/server/store"
	"github.com/dagbridge/dagbridge/translators"
)

// kinds and sentinels are the one table of errors.
var (
	kinds = map[engine.Kind]codes.Code{
		engine.NotFound:           codes.NotFound,
		engine.AlreadyExists:      codes.AlreadyExists,
		engine.FailedPrecondition: codes.FailedPrecondition,
		engine.ResourceExhausted:  codes.ResourceExhausted,
		engine.Unavailable:        codes.Unavailable,
	}
	sentinels = []struct {
		err  error
		code codes.Code
	}{
		{store.ErrNotFound, codes.NotFound},
		{store.ErrFull, codes.ResourceExhausted},
		{store.ErrBadToken, codes.InvalidArgument},
		{store.ErrOutOfRange, codes.OutOfRange},
		{store.ErrClosed, codes.Unavailable},
		{context.Canceled, codes.Canceled},
		{context.DeadlineExceeded, codes.DeadlineExceeded},
	}
)

// Status is an error as its caller shall see it: a gRPC status with a sentence. Faults of an input come all at once, each
// also as a field violation. What is in no table is the gateway's own fault: it is logged whole under an id, and only the
// id is told.
func (b *Bridge) Status(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if s, ok := status.FromError(err); ok {
		return s.Err()
	}
	var faults translators.Faults
	if errors.As(err, &faults) {
		violations := make([]*errdetails.BadRequest_FieldViolation, len(faults))
		for i, fault := range faults {
			violations[i] = &errdetails.BadRequest_FieldViolation{Field: fault.Field, Description: fault.Description}
		}
		return InvalidArgument(violations)
	}
	var document *jsoncodec.Error
	if errors.As(err, &document) {
		return InvalidArgument(document.Violations)
	}
	var refused *engine.Error
	if errors.As(err, &refused) {
		if code, ok := kinds[refused.Kind]; ok {
			return status.Error(code, refused.Message)
		}
	}
	for _, s := range sentinels {
		if errors.Is(err, s.err) {
			return status.Error(s.code, err.Error())
		}
	}
	id := uuid.NewString()
	b.log.ErrorContext(ctx, "internal error", "id", id, "err", err)
	return status.Errorf(codes.Internal, "internal error %s: the gateway's log says more under this id", id)
}

const (
	// maxViolations and maxLines bound what a request with thousands of faults is answered: gRPC sends it as headers.
	maxViolations = 100
	maxLines      = 20
)

// InvalidArgument is the status of a request with faults: a line for each, and each as a field violation.
func InvalidArgument(violations []*errdetails.BadRequest_FieldViolation) error {
	var lines []string
	for _, v := range violations[:min(len(violations), maxLines)] {
		line := strings.ToValidUTF8(v.GetDescription(), "\uFFFD")
		if v.GetField() != "" {
			line = v.GetField() + ": " + line
		}
		lines = append(lines, line)
	}
	if more := len(violations) - len(lines); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	s := status.New(codes.InvalidArgument, strings.Join(lines, "\n"))
	detailed, err := s.WithDetails(&errdetails.BadRequest{FieldViolations: violations[:min(len(violations), maxViolations)]})
	if err != nil {
		return s.Err()
	}
	return detailed.Err()
}
