package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sync/errgroup"

	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/translators"
)

// together is how many submissions are written down at the same time: the disk makes them last in one go.
const together = 16

// Submit puts jobs into the queue. One that was submitted before is adopted, whatever became of it.
func (b *Backend) Submit(_ context.Context, subs []translators.Submission) []backend.SubmitResult {
	results := make([]backend.SubmitResult, len(subs))
	b.mu.Lock()
	err := b.open()
	b.mu.Unlock()
	if err != nil {
		for i := range results {
			results[i] = backend.SubmitResult{Outcome: backend.NotSent, Message: err.Error()}
		}
		return results
	}
	var writing errgroup.Group
	writing.SetLimit(together)
	for i, sub := range subs {
		writing.Go(func() error {
			results[i] = b.write(sub)
			return nil
		})
	}
	_ = writing.Wait() // each has its own result

	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range results {
		if results[i].Outcome != backend.Submitted || b.jobs[subs[i].Token] != nil {
			continue
		}
		j, err := b.recover(subs[i].Token)
		if err != nil {
			results[i] = backend.SubmitResult{Outcome: backend.Unknown, Message: fmt.Sprintf("the job was written down and cannot be read: %v", err)}
		} else if j != nil {
			b.enter(j)
		}
	}
	b.admit()
	b.changed()
	return results
}

// write makes a submission last, unless it is there already. The place in the queue goes first: without a spec it is nothing,
// and a spec without it would be forgotten.
func (b *Backend) write(sub translators.Submission) backend.SubmitResult {
	s, notices, faults := b.spec(sub)
	if len(faults) > 0 {
		return backend.SubmitResult{Outcome: backend.Refused, Message: faults.Error()}
	}
	f, _ := b.folder(sub.Token)
	err := os.MkdirAll(string(f), 0o700)
	if err == nil {
		err = os.WriteFile(b.queueFile(sub.Token), nil, 0o600)
	}
	if err == nil {
		err = writeOnce(f.spec(), s)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		outcome := backend.Busy
		if there, lookErr := exists(f.spec()); there || lookErr != nil { // it may last or not
			outcome = backend.Unknown
		}
		return backend.SubmitResult{Outcome: outcome, Message: fmt.Sprintf("the job cannot be written down: %v", err)}
	}
	result := backend.SubmitResult{
		Outcome: backend.Submitted, Ref: backend.NativeRef{ID: nativeID(sub.Token), Token: sub.Token},
		Digest: s.digest(f), Notes: notices,
	}
	if info, err := os.Stat(f.spec()); err == nil {
		result.Ref.SubmitTime = info.ModTime()
	}
	return result
}
