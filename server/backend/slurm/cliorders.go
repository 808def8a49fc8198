package slurm

import (
	"context"
	"errors"
	"regexp"
	"strings"
)

// ordersAtOnce is how many jobs one command is given: far fewer than a command line takes, and one command's time-out does for
// them on a slurmctld that is busy.
const ordersAtOnce = 1000

func (c *cli) release(ctx context.Context, user string, ids []string) []error {
	return c.chunks(ctx, ids, func(ctx context.Context, ids []string) (output, error) {
		return c.order(ctx, user, "scontrol", "release", strings.Join(ids, ","))
	})
}

func (c *cli) cancel(ctx context.Context, user string, ids []string) []error {
	return c.chunks(ctx, ids, func(ctx context.Context, ids []string) (output, error) {
		return c.order(ctx, user, "scancel", ids...)
	})
}

func (c *cli) depend(ctx context.Context, user, id, expression string) error {
	_, err := c.order(ctx, user, "scontrol", "update", "JobId="+id, "Dependency="+expression)
	if err != nil && isSentence(over, err.Error()) {
		return nil
	}
	return err
}

// chunks gives many jobs to one command, which goes on after a complaint; a complaint names the job it is about.
func (c *cli) chunks(ctx context.Context, ids []string, order func(context.Context, []string) (output, error)) []error {
	errs := make([]error, len(ids))
	parallel(ctx, (len(ids)+ordersAtOnce-1)/ordersAtOnce, func(ctx context.Context, i int) {
		from := i * ordersAtOnce
		chunk := ids[from:min(from+ordersAtOnce, len(ids))]
		o, err := order(ctx, chunk)
		if err == nil {
			return
		}
		complaints(o, err, chunk, errs[from:])
	})
	return errs
}

// jobID in a complaint, of an array's element too.
var jobID = regexp.MustCompile(`\b[0-9]+(?:_[0-9]+)?\b`)

// complaints assigns what a command complained about to the jobs it was given.
func complaints(o output, err error, ids []string, errs []error) {
	at := make(map[string]int, len(ids))
	for i, id := range ids {
		at[id] = i
	}
	var unassigned []string
	for _, sentence := range o.sentences() {
		// after a job that is not there scontrol goes on, and in the end says that there was no error, or of 26.05 nothing
		if isSentence(over, sentence) || strings.HasSuffix(sentence, "No error") || sentence == "slurm_suspend error" {
			continue
		}
		assigned := false
		for _, id := range jobID.FindAllString(sentence, -1) {
			if i, ours := at[id]; ours {
				errs[i], assigned = errors.New(sentence), true
			}
		}
		if !assigned {
			unassigned = append(unassigned, sentence)
		}
	}
	if len(o.sentences()) == 0 {
		unassigned = []string{err.Error()}
	}
	if len(unassigned) == 0 {
		return
	}
	for i := range ids {
		if errs[i] == nil {
			errs[i] = errors.New(strings.Join(unassigned, "; "))
		}
	}
}
