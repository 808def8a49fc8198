package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/translators"
)

// Submit puts jobs into the queue. One that was submitted before is adopted, whatever became of it.
func (b *Backend) Submit(_ context.Context, subs []translators.Submission) []backend.SubmitResult {
	b.mu.Lock()
	defer b.mu.Unlock()
	results := make([]backend.SubmitResult, len(subs))
	err := b.open()
	for i, sub := range subs {
		if err != nil {
			results[i] = backend.SubmitResult{Outcome: backend.NotSent, Message: err.Error()}
			continue
		}
		results[i] = b.submit(sub)
	}
	b.admit()
	b.changed()
	return results
}

func (b *Backend) submit(sub translators.Submission) backend.SubmitResult {
	s, notices, faults := b.spec(sub)
	if len(faults) > 0 {
		return backend.SubmitResult{Outcome: backend.Refused, Message: faults.Error()}
	}
	f, _ := b.folder(sub.Token)
	if err := b.record(sub.Token, f, s); err != nil {
		return backend.SubmitResult{Outcome: backend.Busy, Message: fmt.Sprintf("the job cannot be written down: %v", err)}
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

// record makes a submission last, unless it is there already, and enters it. The place in the queue goes first: without a
// spec it is nothing, and a spec without it would be forgotten.
func (b *Backend) record(token string, f folder, s *spec) error {
	if b.jobs[token] != nil {
		return nil
	}
	err := os.MkdirAll(string(f), 0o700)
	if err == nil {
		err = os.WriteFile(b.queueFile(token), nil, 0o600)
	}
	if err == nil {
		err = writeOnce(f.spec(), s)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	j, err := b.recover(token)
	if err != nil || j == nil {
		return err
	}
	b.enter(j)
	return nil
}
