package slurm

import (
	"context"
	"errors"
	"time"

	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/translators/slurm"
)

// way is one way to slurmctld and to its accounting. Every call ends by a deadline of the way's own. Answers are complete
// or an error; errors are sentences. Looks are the gateway's own, and tell of all users; an order is given as the user whose
// jobs it is about, so that Slurm itself keeps it off everybody else's.
type way interface {
	// submit hands one job over.
	submit(ctx context.Context, user string, job *slurm.Job) answer
	// jobs lists what the controller holds, live and recently ended: at least the jobs with these ids, or, without ids,
	// everything. Ids it does not know are no error.
	jobs(ctx context.Context, ids []string) ([]record, error)
	// watch is jobs for who looks again and again: what cannot have changed since the last look need not be asked for again. It
	// is no ground to act upon, since an id may be another job's by now.
	watch(ctx context.Context, ids []string) ([]record, error)
	// server is what answered last, for people: "slurmrestd v0.0.45 of Slurm 26.05.5"; "" when it is not told.
	server() string
	// accountedByID lists the allocations of these ids that accounting has, of all times; errNoAccounting when there is none.
	accountedByID(ctx context.Context, ids []string) ([]record, error)
	// accountedByName lists the allocations with these job names that were there since a moment. Jobs that never became
	// eligible are missing: the controller is to be asked first.
	accountedByName(ctx context.Context, names []string, since time.Time) ([]record, error)
	// untold is how many messages the controller has for accounting that accounting has not taken in yet.
	untold(ctx context.Context) (int, error)
	// seesAll is an error when the looks do not tell of every user's jobs: any of another's would seem lost.
	seesAll(context.Context) error
	// release lifts the hold of jobs and answers for each. An unknown or ended one is no error.
	release(ctx context.Context, user string, ids []string) []error
	// depend replaces a job's dependency. An unknown or ended one is no error.
	depend(ctx context.Context, user, id, expression string) error
	// cancel ends jobs and array elements ("77_3") and answers for each. An unknown or ended one is no error.
	cancel(ctx context.Context, user string, ids []string) []error
	close() error
}

// errNoAccounting: the site keeps no accounting, so that nothing can be learned from it.
var errNoAccounting = errors.New("Slurm accounting storage is disabled")

// answer is what a way heard upon a submission.
type answer struct {
	outcome backend.Outcome
	id      string
	message string
	notes   []string
	// ignored says what of the job was not taken, so that the job that was submitted is another one.
	ignored string
	// full: the whole queue is, so that the next submission would fare no better.
	full bool
}
