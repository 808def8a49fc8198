package backend

import "errors"

// ErrNoFile: the file is not there (yet).
var ErrNoFile = errors.New("the job has written no such file yet")

// OutputError: what the program wrote as its outputs is refused; the sentence says why.
type OutputError struct{ Sentence string }

func (e *OutputError) Error() string { return e.Sentence }
