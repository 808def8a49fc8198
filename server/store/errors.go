package store

import (
	"errors"
	"strings"
	"syscall"
)

// Errors on which callers act. What is returned wraps them in a sentence; compare with errors.Is.
var (
	// ErrInUse: another process has the file open.
	ErrInUse = errors.New("the store is in use by another process")
	// ErrNotFound: no such job.
	ErrNotFound = errors.New("there is no such job")
	// ErrFull: there is no room to write. Nothing of the update is there; look-ups go on, and updates once there is room.
	ErrFull = errors.New("the disk that holds the store is full")
	// ErrBadToken: a page or resume token that this store did not give for this request.
	ErrBadToken = errors.New("the token is not one that this list has given")
	// ErrOutOfRange: the change log does not reach back so far, or is another one.
	ErrOutOfRange = errors.New("the changes after this point are no longer known: list again")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("the store is closed")

	// errAbandoned answers a call whose batch ended without an outcome: the goroutine that led it has exited.
	errAbandoned = errors.New("the update was abandoned before it was committed")
)

// outOfSpace: the write failed for want of room, a quota or a limit on file sizes. bbolt wraps some of these as text.
func outOfSpace(err error) bool {
	for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG} {
		if errors.Is(err, errno) || strings.HasSuffix(err.Error(), errno.Error()) {
			return true
		}
	}
	return false
}
