package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// Exit codes of the tool itself.
const (
	exitFailed   = 1
	exitUsage    = 2
	exitNotFound = 4
	exitGateway  = 125
)

// exitError ends the program with a code of its own. Without an error there is nothing more to say.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// exitf is an exitError with a sentence.
func exitf(code int, format string, args ...any) error {
	return &exitError{code: code, err: fmt.Errorf(format, args...)}
}

// report prints an error and returns its exit code. An error that says nothing of a code is one of usage: it comes from
// reading flags and files.
func report(w io.Writer, err error) int {
	if err == nil {
		return 0
	}
	code := exitUsage
	var exit *exitError
	if errors.As(err, &exit) {
		if exit.err == nil {
			return exit.code
		}
		code = exit.code
	} else if s, ok := status.FromError(err); ok {
		code = codeOf(s.Code())
		err = errors.New(sentences(s))
	}
	fmt.Fprintf(w, "dagbridge: %s\n", err)
	return code
}

// codeOf is the exit code for what a gateway answered.
func codeOf(c codes.Code) int {
	switch c {
	case codes.InvalidArgument, codes.AlreadyExists, codes.FailedPrecondition, codes.OutOfRange, codes.Unimplemented:
		return exitUsage
	case codes.NotFound:
		return exitNotFound
	}
	return exitGateway
}

// sentences are what a gateway answered: all faults of the request, one a line, where it names them.
func sentences(s *status.Status) string {
	var lines string
	for _, detail := range s.Details() {
		bad, ok := detail.(*errdetails.BadRequest)
		if !ok {
			continue
		}
		for _, v := range bad.GetFieldViolations() {
			lines += fmt.Sprintf("\n  %s: %s", v.GetField(), v.GetDescription())
		}
	}
	if lines != "" {
		return "the request is refused:" + lines
	}
	// Of a connection that did not come about, what is behind gRPC's layers.
	if _, why, ok := strings.Cut(s.Message(), "transport: "); ok {
		return "the gateway cannot be reached: " + strings.TrimPrefix(strings.Trim(why, `"`), "Error while dialing: ") +
			"; --server names another one, dagbridge serve starts one here"
	}
	if s.Code() == codes.Unauthenticated {
		return s.Message() + "; --token-file names the file with the token"
	}
	return s.Message()
}

// jobExit is the exit code that a job ends the program with under --wait; nil for success.
func jobExit(job *dagbridgev1.Job) error {
	if job.GetState() == dagbridgev1.Job_SUCCEEDED {
		return nil
	}
	switch {
	case job.Signal != nil:
		return &exitError{code: 128 + int(job.GetSignal())}
	case job.GetExitCode()&0xff != 0: // no more of it fits in this program's own
		return &exitError{code: int(job.GetExitCode() & 0xff)}
	}
	return &exitError{code: exitFailed}
}
