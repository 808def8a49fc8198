package slurm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"sync/atomic"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/translators"
	"github.com/dagbridge/dagbridge/translators/slurm"
)

// Submit makes the jobs' folders and hands the jobs over, some at a time. Once the queue is full the rest is not tried.
func (b *Backend) Submit(ctx context.Context, submissions []translators.Submission) []backend.SubmitResult {
	results := make([]backend.SubmitResult, len(submissions))
	var full atomic.Bool
	parallel(ctx, len(submissions), func(ctx context.Context, i int) {
		if full.Load() {
			results[i] = backend.SubmitResult{Outcome: backend.Busy, Message: "Slurm's queue is full"}
			return
		}
		var fullNow bool
		if results[i], fullNow = b.submit(ctx, submissions[i]); fullNow {
			full.Store(true)
		}
	})
	return results
}

func (b *Backend) submit(ctx context.Context, s translators.Submission) (result backend.SubmitResult, full bool) {
	job, faults := slurm.Translate(b.siteOf(s.Job), s)
	if len(faults) > 0 {
		return backend.SubmitResult{Outcome: backend.Refused, Message: faults.Error()}, false
	}
	digest := sha256.Sum256([]byte(job.Text()))
	result.Digest = hex.EncodeToString(digest[:])
	err := b.makeFolder(ctx, s.Job)
	if err == nil {
		err = b.writeFiles(s.Job, job.Files)
	}
	if err != nil {
		result.Outcome, result.Message = backend.NotSent, err.Error()
		return result, false
	}
	if err := ctx.Err(); err != nil {
		result.Outcome, result.Message = backend.NotSent, err.Error()
		return result, false
	}
	a := b.orders.submit(ctx, b.userOf(s.Job), job)
	result.Outcome, result.Message, result.Notes = a.outcome, a.message, a.notes
	if s.Hold {
		result.Notes = slices.DeleteFunc(result.Notes, func(note string) bool { return strings.Contains(note, heldSentence) })
	}
	switch {
	case a.outcome == backend.Refused && upstreamForgotten(s, a.message):
		result.Outcome, result.Message = backend.Busy, a.message+": Slurm does not know what it waits for; it is submitted again once that is found out"
	case a.outcome == backend.Submitted:
		result.Ref = backend.NativeRef{ID: a.id, Token: s.Token}
	}
	return result, a.full
}

// upstreamForgotten: newer releases refuse to wait for a job that they do not know (22.05 takes it for satisfied). It has been
// purged, or lost by a slurmctld that was killed: the next look tells which, unless the job is not the gateway's.
func upstreamForgotten(s translators.Submission, message string) bool {
	foreign := func(e *dagbridgev1.Edge) bool { return e.GetNative() != nil }
	return strings.Contains(message, dependencySentence) && len(s.Depends.Terms) > 0 && !slices.ContainsFunc(s.Task.GetUpstream(), foreign)
}

// dependencySentence is that of Slurm's errno 2038.
const dependencySentence = "Job dependency problem"

// heldSentence is what slurmrestd says of a job that was submitted held, as was asked.
const heldSentence = "Job is in held state"
