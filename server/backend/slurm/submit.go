package slurm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/translators"
	"github.com/dagbridge/dagbridge/translators/slurm"
)

const (
	// slowAnswer is an answer that took so long that slurmctld is better left alone for a moment. Where a site limits the rate
	// of calls (SlurmctldParameters=rl_enable), Slurm's own clients are told to come again, and sleep for a second, then two,
	// three and so on; they do not say so.
	slowAnswer = 2 * time.Second
	// slowPause is for how long.
	slowPause = time.Second
)

// Submit makes the jobs' folders and hands the jobs over, some at a time and each user's no faster than they may. Once the
// queue is full, or slurmctld slow, the rest is not tried.
func (b *Backend) Submit(ctx context.Context, submissions []translators.Submission) []backend.SubmitResult {
	defer b.order()
	results := make([]backend.SubmitResult, len(submissions))
	users := make([]string, len(submissions))
	for i, s := range submissions {
		users[i] = b.userOf(s.Job)
	}
	waits := b.submitRate.turns(users)
	var full, slow atomic.Bool
	parallel(ctx, len(submissions), func(ctx context.Context, i int) {
		switch {
		case waits[i] > 0:
			results[i] = backend.SubmitResult{Outcome: backend.Limited, RetryAfter: waits[i], Message: "limits.submitRate lets so many jobs of a user through in a second"}
			return
		case full.Load():
			results[i] = backend.SubmitResult{Outcome: backend.Busy, Message: "Slurm's queue is full"}
			return
		case slow.Load():
			results[i] = backend.SubmitResult{Outcome: backend.Limited, RetryAfter: slowPause, Message: "slurmctld answers slowly, as it does when it limits the rate of calls"}
			return
		}
		began := time.Now()
		var fullNow bool
		if results[i], fullNow = b.submit(ctx, submissions[i]); fullNow {
			full.Store(true)
		}
		if time.Since(began) >= slowAnswer {
			slow.Store(true)
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
	var err error
	if b.userOf(s.Job) != b.site.User {
		err = b.looks.seesAll(ctx)
	}
	if err == nil {
		err = b.makeFolder(ctx, s.Job)
	}
	if err == nil {
		err = b.writeFiles(s.Job, job.Files)
	}
	if err == nil && translators.Launches(s.Task) {
		err = b.bringLauncher(ctx, s.Job)
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
	case a.outcome == backend.Limited:
		result.RetryAfter = slowPause
	case a.outcome == backend.Refused && upstreamForgotten(s, a.message):
		result.Outcome, result.Message = backend.Busy, a.message+": Slurm does not know what it waits for; it is submitted again once that is found out"
	case a.outcome == backend.Submitted:
		result.Ref = backend.NativeRef{ID: a.id, Token: s.Token}
	}
	if a.ignored != "" {
		return b.takeBack(ctx, s, result, a.ignored), false
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

// takeBack ends a job that is not the one that was asked for. The mark that is left keeps its program from starting, even if
// the job cannot be cancelled.
func (b *Backend) takeBack(ctx context.Context, s translators.Submission, made backend.SubmitResult, ignored string) backend.SubmitResult {
	known := backend.Known{Ref: made.Ref, Job: s.Job}
	for _, instance := range s.Instances {
		known.Positions = append(known.Positions, instance.Position)
	}
	if err := errors.Join(b.Cancel(ctx, []backend.Known{known})...); err != nil {
		b.log.Warn("a job that Slurm took otherwise than it was asked for could not be cancelled; its program will not start", "id", made.Ref.ID, "error", err)
	}
	return backend.SubmitResult{
		Outcome: backend.Refused, Digest: made.Digest, Notes: made.Notes,
		Message: "slurmrestd ignored a part of the job, which was therefore cancelled at once: " + ignored,
	}
}

// heldSentence is what slurmrestd says of a job that was submitted held, as was asked.
const heldSentence = "Job is in held state"
