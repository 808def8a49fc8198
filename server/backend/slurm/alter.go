package slurm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/translators/slurm"
)

// Alter rewrites dependencies, then lifts holds, of the jobs that still wait.
func (b *Backend) Alter(ctx context.Context, changes []backend.Change) []error {
	defer b.order()
	errs := make([]error, len(changes))
	ids := make([]string, len(changes))
	for i, change := range changes {
		ids[i] = change.Ref.ID
	}
	x, err := b.look(ctx, ids)
	if err != nil {
		return everyError(errs, err)
	}
	waits := func(i int) bool { return x.waits(changes[i]) }
	parallel(ctx, len(changes), func(ctx context.Context, i int) {
		if depends := changes[i].Depends; depends != nil && waits(i) {
			errs[i] = b.orders.depend(ctx, b.userOf(changes[i].Job), ids[i], slurm.Expression(*depends))
		}
	})
	held := map[string][]int{}
	for i, change := range changes {
		// a job whose dependency could not be set must not be let go without it
		if change.Release && errs[i] == nil && waits(i) {
			user := b.userOf(change.Job)
			held[user] = append(held[user], i)
		}
	}
	for user, of := range held {
		for n, err := range b.orders.release(ctx, user, pick(ids, of)) {
			errs[of[n]] = err
		}
	}
	for i, err := range errs {
		if err != nil && (strings.Contains(err.Error(), withoutIndex) || strings.Contains(err.Error(), unexpected)) {
			errs[i] = fmt.Errorf("%w: %w", backend.ErrStuck, err)
		}
	}
	return errs
}

// withoutIndex is what slurmctld says of a job that has no number in slurmdbd yet. It asks for that by itself, but one of 22.05
// that was killed meanwhile never does again, and the job, across all restarts, can be cancelled only.
const withoutIndex = "the DB index is being set"

// unexpected is what the same slurmctld mostly says of the same job, since its library does not know the answer. It may also
// have died in the middle of one.
const unexpected = "Unexpected message received"

// waits says whether a job has something that is not running yet.
func (x index) waits(c backend.Change) bool {
	job := x.job(c.Ref, c.Job)
	if job == nil {
		return false
	}
	if job.single != nil && job.single.waiting() || job.rest != nil && job.rest.waiting() {
		return true
	}
	for _, r := range job.elements {
		if r.waiting() {
			return true
		}
	}
	return false
}

// Cancel leaves the marks first, then ends what is still live of the jobs, a whole array by its id and some of its elements
// by theirs.
func (b *Backend) Cancel(ctx context.Context, jobs []backend.Known) []error {
	defer b.order()
	errs := make([]error, len(jobs))
	parallel(ctx, len(jobs), func(_ context.Context, i int) {
		if !jobs[i].Double {
			errs[i] = b.leaveMarks(jobs[i])
		}
	})
	var ids []string
	for _, job := range jobs {
		if job.Ref.ID != "" {
			ids = append(ids, job.Ref.ID)
		}
	}
	x, err := b.look(ctx, ids)
	if err != nil {
		return everyError(errs, err)
	}
	// by user: what to cancel, and which of the jobs each is of
	targets, of := map[string][]string{}, map[string][]int{}
	for i, job := range jobs {
		user := b.userOf(job.Job)
		for _, target := range x.targets(job) {
			targets[user], of[user] = append(targets[user], target), append(of[user], i)
		}
	}
	for user := range targets {
		for n, err := range b.orders.cancel(ctx, user, targets[user]) {
			errs[of[user][n]] = errors.Join(errs[of[user][n]], err)
		}
	}
	return errs
}

// targets are what to cancel of a job.
func (x index) targets(k backend.Known) []string {
	job := x.job(k.Ref, k.Job)
	if job == nil {
		return nil
	}
	if len(k.Positions) == 0 {
		if job.single != nil && job.single.ended() {
			return nil
		}
		return []string{k.Ref.ID}
	}
	wanted := map[int]bool{}
	var elements []string
	for _, position := range k.Positions {
		wanted[position] = true
		if job.live(position) {
			elements = append(elements, k.Ref.ID+"_"+strconv.Itoa(position))
		}
	}
	others := false
	for position, r := range job.elements {
		others = others || !wanted[position] && !r.ended()
	}
	if len(elements) > 1 && !others && job.rest == nil {
		return []string{k.Ref.ID}
	}
	return elements
}

// look asks the controller for some jobs; nothing when there are none to ask for.
func (b *Backend) look(ctx context.Context, ids []string) (index, error) {
	if len(ids) == 0 {
		return b.index(nil), nil
	}
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	records, err := b.looks.jobs(ctx, ids)
	if err != nil {
		return index{}, err
	}
	return b.index(records), nil
}

func everyError(errs []error, err error) []error {
	for i := range errs {
		errs[i] = err
	}
	return errs
}

func pick(ids []string, positions []int) []string {
	picked := make([]string, len(positions))
	for n, i := range positions {
		picked[n] = ids[i]
	}
	return picked
}
