package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
)

// Alter releases. There are no dependencies to be rewritten.
func (b *Backend) Alter(_ context.Context, changes []backend.Change) []error {
	b.mu.Lock()
	defer b.mu.Unlock()
	errs := make([]error, len(changes))
	err := b.open()
	for i, change := range changes {
		if err != nil {
			errs[i] = err
			continue
		}
		if j := b.jobs[change.Ref.Token]; change.Release && own(change.Ref) && j != nil {
			errs[i] = b.release(j)
		}
	}
	b.admit()
	b.changed()
	return errs
}

func (b *Backend) release(j *job) error {
	if j.phase != held {
		return nil
	}
	err := os.WriteFile(j.folder.release(), nil, 0o600)
	if errors.Is(err, fs.ErrNotExist) { // its folder has vanished
		delete(b.jobs, j.token)
		return b.leave(j.token)
	}
	if err != nil {
		return fmt.Errorf("the job %s cannot be released: %w", nativeID(j.token), err)
	}
	j.phase = queued
	b.queue = append(b.queue, j)
	return nil
}

// Cancel ends jobs: what has not started at once, what runs through its supervisor.
func (b *Backend) Cancel(_ context.Context, jobs []backend.Known) []error {
	b.mu.Lock()
	defer b.mu.Unlock()
	errs := make([]error, len(jobs))
	err := b.open()
	for i, known := range jobs {
		if err != nil {
			errs[i] = err
			continue
		}
		if j := b.jobs[known.Ref.Token]; own(known.Ref) && j != nil {
			errs[i] = b.cancel(j)
		}
	}
	b.admit()
	b.changed()
	return errs
}

// cancel leaves its marker first: a supervisor looks for it after its own start marker, so that one of both sees the other.
func (b *Backend) cancel(j *job) error {
	err := os.WriteFile(j.folder.cancel(), nil, 0o600)
	switch {
	case errors.Is(err, fs.ErrNotExist) && j.phase != running: // as above
		delete(b.jobs, j.token)
		return b.leave(j.token)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the job %s cannot be cancelled: %w", nativeID(j.token), err)
	case j.phase == running:
		// Of two supervisors, one an earlier gateway's, the start marker tells which has the program.
		var began start
		_, err := readMarker(j.folder.start(), &began)
		return errors.Join(err, began.Supervisor.signal(unix.SIGTERM), j.supervisor.signal(unix.SIGTERM))
	}
	delete(b.jobs, j.token)
	return b.endUnstarted(j)
}

// endUnstarted ends a job that was cancelled before it started.
func (b *Backend) endUnstarted(j *job) error {
	err := writeOnce(j.folder.end(), end{
		State: dagbridgev1.Job_CANCELLED, Message: "cancelled before it started", EndTime: time.Now(),
	})
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return b.leave(j.token)
}
