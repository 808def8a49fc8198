// Package backend is the contract between the engine and a native scheduler, and nothing else.
//
// The engine knows jobs, attempts and what each attempt should look like in the scheduler; a Backend knows how to ask for
// it and what is there. A Backend keeps no state that matters: everything it needs to recognise a native job travels in
// the job itself (the token) or comes with the call (the NativeRef). It never decides that a job has ended because there is
// no news of it: it says what the scheduler said, or that a complete answer has no trace of the job, or that it cannot tell.
//
// Every implementation passes backendtest.Run against the real scheduler.
package backend

import (
	"context"
	"errors"
	"io"
	"time"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators"
)

// Backend is one cluster. Constructors contact nothing; every call has a deadline of its own making beside its context's.
// Calls may be made concurrently, except that there is one Observe at a time.
type Backend interface {
	// Kind is "local", "slurm" or "kubernetes".
	Kind() string

	// Capabilities say what the cluster can do. They need no contact.
	Capabilities() Capabilities

	// Check says what the cluster's translator cannot say of a submission, contacting nothing. The engine calls it before a
	// task is admitted, with no native ids in Depends, so that this is refused before anything is submitted.
	Check(translators.Submission) translators.Faults

	// Render is the native text of a submission, for people, contacting nothing. Its faults are Check's; what
	// the cluster lacks for it, an image or a namespace, need not be one.
	Render(translators.Submission) (translators.Rendering, translators.Faults)

	// Submit makes native jobs, concurrently as far as the scheduler likes it, and answers for each in the same order. It is
	// handed submissions whose dependencies have native ids. It does not look for jobs that are already there.
	Submit(context.Context, []translators.Submission) []SubmitResult

	// Find looks for native jobs by token: those that are live, those that have ended, those that left a marker. It answers
	// for each in the same order. Absence counts only from a moment after the call began.
	Find(context.Context, []Want) []Finding

	// Observe calls emit with news of all that known returns, at once and then again whenever there is some, until the
	// context ends. It is one look per cluster, not per job, and none at all while known returns nothing. It reconnects by
	// itself; while the scheduler does not answer it emits News with Err, at each attempt.
	Observe(ctx context.Context, known func() []Known, emit func(News))

	// Alter releases, holds, and rewrites dependencies, and answers for each in the same order. The native job's token is
	// verified first. A job that is gone or at its end is no error: the next look tells.
	Alter(context.Context, []Change) []error

	// Cancel ends native jobs and answers for each in the same order. The native job's token is verified first. A job that is
	// finished or unknown is no error. That a job is dead is known from the next look, not from here. A mark is left
	// by which the token's program never starts from here on, since a request may arrive late, and a scheduler that is killed
	// may forget the cancel; not so for a Double. Whoever finds the mark ends as CANCELLED, with reason MARKED.
	// Without an id in the NativeRef there is only the mark to leave.
	Cancel(context.Context, []Known) []error

	// Log opens what the job wrote, stream "stdout" or "stderr", at an offset; position is the array's, -1 without. A file
	// that is not there yet is ErrNoFile. Reading ends at the present end of the file.
	Log(ctx context.Context, ref NativeRef, job *dagbridgev1.Job, position int, stream string, offset int64) (io.ReadCloser, int64, error)

	// Outputs reads what the attempt left as its outputs, a JSON object, normalised from whatever the program wrote; nil when
	// it left nothing. Output that is refused (no JSON object, too large) is an OutputError.
	Outputs(ctx context.Context, ref NativeRef, job *dagbridgev1.Job, position int) ([]byte, error)

	// Logs says where the output of a job is or will be, as the cluster sees it.
	Logs(job *dagbridgev1.Job, token string, position int) *dagbridgev1.Logs

	// Close ends connections. It ends no job.
	Close() error
}

// Tidier is a Backend whose native jobs stay when they have ended, with all that they wrote, until somebody removes them.
type Tidier interface {
	// Tidy removes what has ended long enough ago. Recorded says of a token whether the gateway has recorded its end; what is
	// another's, or nobody's, is left alone. An error is a sentence; what it left is for the next time.
	Tidy(ctx context.Context, recorded func(token string) bool) error
}

// Voucher is a Backend that gives the programs of its jobs tokens of their own, by which these can call the gateway.
type Voucher interface {
	// Caller says whose program has a bearer token: the token of its attempt, and its position in the array, -1 without. An empty
	// token: nobody's. Live is what the engine knows of an attempt that has not ended. The program must be where that native job
	// is: a pod may carry any label. An error is that the cluster did not answer.
	Caller(ctx context.Context, bearer string, live func(token string) (NativeRef, bool)) (token string, position int, err error)
}

// Capabilities say what a cluster can do.
type Capabilities struct {
	// Dependencies: afterok and its kin are kept by the scheduler.
	Dependencies bool
	// MaxArraySize is how many instances one native array takes; 0: no native arrays, the engine submits instances one by one.
	MaxArraySize int
	// Folds: instances of one native array may have programs of their own.
	Folds bool
	// Impersonates: a job runs as its Job.User, whoever the gateway is.
	Impersonates bool
	// Containers that the cluster runs by itself.
	Containers bool
	// Launcher: jobs find this program (translators.LauncherVariable), and a folder that the jobs of a pipeline share.
	Launcher bool
}

// NativeRef names a native job safely: its id may be somebody else's by now.
type NativeRef struct {
	// ID as the scheduler writes it; of an array the base id ("1234").
	ID string
	// Token that the native job must carry.
	Token string
	// SubmitTime as the scheduler told it; zero when it did not.
	SubmitTime time.Time
}

// Want is a native job to be looked for.
type Want struct {
	Token string
	// Job the token belongs to.
	Job *dagbridgev1.Job
	// Since is when the token was first submitted, or a moment before.
	Since time.Time
	// Positions of an array; nil for a single task.
	Positions []int
}

// Known is a native job that the engine holds to be live.
type Known struct {
	Ref NativeRef
	Job *dagbridgev1.Job
	// Positions of an array that have not ended; nil for a single task.
	Positions []int
	// Double: another native job carries the same token, and only this one is meant. In Cancel.
	Double bool
}

// Outcome of a submission.
type Outcome int

// Outcomes. Only Submitted and Unknown mean that something may be there.
const (
	// Submitted: the scheduler has it; Ref is set.
	Submitted Outcome = iota + 1
	// Refused for good: Message is the scheduler's sentence.
	Refused
	// Busy: refused for now (queue full, limit reached); Message is the scheduler's sentence.
	Busy
	// NotSent: the scheduler cannot have seen it (no connection, no credentials).
	NotSent
	// Unknown: it may or may not be there.
	Unknown
	// Limited: not handed over, or refused for now, since only so many may be in a time; RetryAfter says when its turn comes.
	Limited
)

// SubmitResult is what became of one submission.
type SubmitResult struct {
	Outcome Outcome
	Ref     NativeRef
	// Digest is the SHA-256, in hex, of the native text.
	Digest string
	// Message is a sentence for a person, of every outcome but Submitted.
	Message string
	// RetryAfter, of Limited, is more than 0.
	RetryAfter time.Duration
	// Notes are what the scheduler said beside: warnings, ignored fields.
	Notes []string
}

// Presence is what a look for a native job found.
type Presence int

// Presences.
const (
	// Found: it is there, live or ended; Ref is set.
	Found Presence = iota + 1
	// Absent: a complete answer, of all that could know it, has no trace of it.
	Absent
	// Uncertain: somebody who could know it did not answer.
	Uncertain
)

// Finding is what Find found for one token.
type Finding struct {
	Presence Presence
	// Refs of Found, oldest first: more than one when a late request doubled it. A native job that was cancelled before it
	// started has run nothing and never will: it is as good as absent, and left out.
	Refs []NativeRef
	// Held are the ids among them that are held now, so that they have not started.
	Held []string
	// Proof is a sentence: who said so.
	Proof string
	// Started: of Absent, its start marker is there all the same, so it did run. An array of which some instance has left a
	// marker is Found, by the id in it: a look tells of each.
	Started bool
}

// News is what one look told.
type News struct {
	// AsOf is when the look began: news of what was submitted later is no news.
	AsOf time.Time
	// Err: the scheduler did not answer; a sentence. Observations is empty.
	Err error
	// Server is what answered, for people ("slurmrestd v0.0.45 of Slurm 26.05.5"); "" when the cluster does not tell.
	Server       string
	Observations []Observation
}

// Observation is what one look told of one native job or one instance of an array. What a look did not tell is left out.
type Observation struct {
	Ref NativeRef
	// Position in the array; -1 for a single task.
	Position int
	// Gone: a complete answer of all that could know has no trace of the job. State is unset then, unless the exit marker is
	// there, which is evidence of an end.
	Gone bool
	// Started: of Gone, the start marker is there.
	Started bool
	// State is SUBMITTED, RUNNING, SUCCEEDED, FAILED, CANCELLED or LOST (an end that the scheduler itself does not know);
	// unset for a native word that no table knows, and of Unseen.
	State dagbridgev1.Job_State
	// Reason is one word, as in dagbridgev1.Job.
	Reason string
	// Infrastructure: the end is not the program's doing (NODE_FAIL, PREEMPTED, BOOT_FAIL).
	Infrastructure bool
	// Message is the scheduler's own sentence or word.
	Message string
	// Held: it will not start until released.
	Held bool
	// Refused: of an end by which nothing may have run, though nobody cancelled it: its node may not have started it, and its
	// markers have not shown a start.
	Refused bool
	// LaunchFailed: the scheduler holds it by itself, because its launch failed; it starts again once it is released.
	LaunchFailed bool
	// NeverSatisfied: its dependency cannot hold any more.
	NeverSatisfied bool
	// Dependencies are the native ids it still waits for, as the scheduler tells them; nil when a look does not tell.
	Dependencies []string
	// Failed are those of Dependencies that, by the scheduler's word, can hold no more.
	Failed []string
	// DependenciesKnown: the look told them, be they none.
	DependenciesKnown bool
	ExitCode          *int32
	Signal            *int32
	SubmitTime        time.Time
	StartTime         time.Time
	EndTime           time.Time
	Node              string
}

// Unseen is the reason of a native job that the scheduler does not let the gateway see, though it answers: the job stays what it
// was, and Message says what is to be done about it.
const Unseen = "UNSEEN"

// ErrStuck is the error of a change that the scheduler refuses for want of something of its own, which may never come: when it
// stays so, the native job can only be cancelled, and another be made.
var ErrStuck = errors.New("the scheduler cannot change this job")

// Change is how an attempt should look in the scheduler.
type Change struct {
	Ref NativeRef
	Job *dagbridgev1.Job
	// Release lifts the hold.
	Release bool
	// Depends, when not nil, replaces the dependencies.
	Depends *translators.Dependencies
}
