package main

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

func TestReport(t *testing.T) {
	t.Parallel()
	refused, err := status.New(codes.InvalidArgument, "2 faults").WithDetails(&errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{
		{Field: "tasks[0].resources.cpu", Description: "is no number"}, {Field: "tasks[1].upstream[0].task", Description: "is unknown"},
	}})
	require.NoError(t, err)
	for name, c := range map[string]struct {
		err  error
		code int
		text string
	}{
		"a conflict":         {status.Error(codes.AlreadyExists, "it differs"), 2, "dagbridge: it differs\n"},
		"all faults":         {refused.Err(), 2, "dagbridge: the request is refused:\n  tasks[0].resources.cpu: is no number\n  tasks[1].upstream[0].task: is unknown\n"},
		"an error of usage":  {errors.New("no such flag"), 2, "dagbridge: no such flag\n"},
		"internal":           {status.Error(codes.Internal, "internal error 17"), 125, "dagbridge: internal error 17\n"},
		"not found":          {status.Error(codes.NotFound, "no such job"), 4, "dagbridge: no such job\n"},
		"nothing":            {nil, 0, ""},
		"the job's own code": {&exitError{code: 3}, 3, ""},
		"unauthenticated":    {status.Error(codes.Unauthenticated, "a token is needed"), 125, "dagbridge: a token is needed; --token-file names the file with the token\n"},
		"unreachable":        {status.Error(codes.Unavailable, "connection refused"), 125, "dagbridge: connection refused\n"},
		"no connection": {
			status.Error(codes.Unavailable, `failed after 4 attempts: connection error: desc = "transport: Error while dialing: dial tcp 127.0.0.1:1: connect: connection refused"`),
			125, "dagbridge: the gateway cannot be reached: dial tcp 127.0.0.1:1: connect: connection refused; --server names another one, dagbridge serve starts one here\n",
		},
		"with a code of its own": {exitf(exitNotFound, "no output %q", "auc"), 4, "dagbridge: no output \"auc\"\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			require.Equal(t, c.code, report(&out, c.err))
			require.Equal(t, c.text, out.String())
		})
	}
}

func TestJobExit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		job  *dagbridgev1.Job
		code int
	}{
		"cancelled before it ran":     {&dagbridgev1.Job{State: dagbridgev1.Job_CANCELLED}, 1},
		"exit code":                   {&dagbridgev1.Job{State: dagbridgev1.Job_FAILED, ExitCode: new(int32(7))}, 7},
		"exit code above 255":         {&dagbridgev1.Job{State: dagbridgev1.Job_FAILED, ExitCode: new(int32(300))}, 44},
		"exit code that would be 0":   {&dagbridgev1.Job{State: dagbridgev1.Job_FAILED, ExitCode: new(int32(256))}, 1},
		"failed with exit code 0":     {&dagbridgev1.Job{State: dagbridgev1.Job_FAILED, ExitCode: new(int32(0))}, 1},
		"lost":                        {&dagbridgev1.Job{State: dagbridgev1.Job_LOST}, 1},
		"signal":                      {&dagbridgev1.Job{State: dagbridgev1.Job_FAILED, ExitCode: new(int32(137)), Signal: new(int32(9))}, 137},
		"skipped by its exit code":    {&dagbridgev1.Job{State: dagbridgev1.Job_SKIPPED, ExitCode: new(int32(99))}, 99},
		"succeeded":                   {&dagbridgev1.Job{State: dagbridgev1.Job_SUCCEEDED, ExitCode: new(int32(0))}, 0},
		"succeeded without exit code": {&dagbridgev1.Job{State: dagbridgev1.Job_SUCCEEDED}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.code, report(&bytes.Buffer{}, jobExit(c.job)))
		})
	}
}
