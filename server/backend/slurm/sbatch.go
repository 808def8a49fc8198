package slurm

import (
	"context"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/translators/slurm"
)

func (c *cli) submit(ctx context.Context, user string, job *slurm.Job) answer {
	// sbatch hands its own environment to the job
	var environment []string
	for _, name := range slices.Sorted(maps.Keys(job.Environment)) {
		environment = append(environment, name+"="+job.Environment[name])
	}
	o, err := c.call(ctx, 4*c.timeout, command{
		user: user, environment: environment, stdin: job.Text(), name: "sbatch", arguments: job.Arguments(),
	})
	return classifySbatch(o, err)
}

// batchID is a line of `sbatch --parsable`, or of an sbatch that a site has wrapped: "88", "88;cluster", "Submitted batch job 88".
var batchID = regexp.MustCompile(`(?m)^(?:Submitted batch job )?([0-9]+)(?:;[^;\s]+| on cluster \S+)?\r?$`)

// unheard are sentences of sbatch's after which slurmctld may have taken the job all the same: those of Slurm's library on its
// connection (slurm_errno.c), and of the system on its own.
var unheard = regexp.MustCompile(`(?i)unable to contact slurm controller|timed out|communication|connection|zero bytes|unexpected message|protocol|` +
	`unspecified error|missing socket|message (send|receive) failure|message length|stream version|transport endpoint|broken pipe|no route|network is|host is`)

// countLimit are the limits on how many jobs there may be, in a sentence that otherwise is the same as of those on how large.
var countLimit = regexp.MustCompile(`(?:QOS|Assoc)\w*SubmitJob`)

// classifySbatch reads what sbatch printed. Only whole lines of standard output count as an id: submit plug-ins print lines
// of their own. Standard error of an accepted job is a note.
func classifySbatch(o output, err error) answer {
	ids := batchID.FindAllStringSubmatch(o.stdout, -1)
	a := answer{notes: o.sentences()}
	switch {
	case len(ids) == 1 && err == nil && ids[0][1] != "0":
		a.outcome, a.id = backend.Submitted, ids[0][1]
		return a
	case len(ids) > 1:
		a.outcome, a.message = backend.Unknown, "sbatch printed more than one line that is a job id: "+strings.TrimSpace(o.stdout)
		return a
	case err == nil:
		a.outcome, a.message = backend.Unknown, "sbatch succeeded and printed no job id"
		return a
	}
	a.message, a.notes = err.Error(), nil
	var notStarted errNotStarted
	switch {
	case errors.As(err, &notStarted):
		a.outcome = backend.NotSent
	case len(ids) > 0 || len(o.sentences()) == 0 || unheard.MatchString(a.message) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled):
		a.outcome = backend.Unknown
	case isSentence(limiting, a.message):
		a.outcome = backend.Limited
	case isSentence(full, a.message):
		a.outcome, a.full = backend.Busy, true
	case isSentence(passing, a.message), countLimit.MatchString(a.message):
		a.outcome = backend.Busy
	default:
		a.outcome = backend.Refused
	}
	return a
}
