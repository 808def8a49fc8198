package engine

import "fmt"

// Kind classifies what went wrong with a request; server/bridge maps each to a gRPC code.
type Kind int

// Kinds.
const (
	// NotFound: no such job, run or output.
	NotFound Kind = iota + 1
	// AlreadyExists: the key is used by another content.
	AlreadyExists
	// FailedPrecondition: not in this state; repeating does not help.
	FailedPrecondition
	// ResourceExhausted: a limit of the gateway's (disk full, output too large).
	ResourceExhausted
	// Unavailable: a cluster does not answer; repeating may help.
	Unavailable
)

// Error is a refused request, as a sentence for the person who made it.
type Error struct {
	Kind    Kind
	Message string
}

func (e *Error) Error() string { return e.Message }

func errorf(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}
