package engine

import (
	"context"
	"slices"

	storev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/store/v1"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators/graph"
)

// Retry starts another attempt of a job that has ended without success; of an array those instances of it that have.
func (e *Engine) Retry(ctx context.Context, id string) (*dagbridgev1.Job, error) {
	r := &revival{}
	defer func() { e.mem.unstage(r.staged) }()
	err := e.update(ctx, func(t *txn) error {
		rec := t.rec(id)
		if rec == nil || isCarrier(rec) {
			return errorf(NotFound, "there is no job %s", id)
		}
		job := rec.GetJob()
		switch state := job.GetState(); {
		case !graph.IsTerminal(state):
			return errorf(FailedPrecondition, "job %s is %s; only a job that has ended can be retried. Cancel it first.", id, state)
		case state == dagbridgev1.Job_SUCCEEDED:
			return errorf(FailedPrecondition, "job %s has succeeded; submit the task again with a higher tryNumber to run it again.", id)
		case live(rec):
			return errorf(FailedPrecondition, "the native job of job %s is not yet proven dead; try again in a moment.", id)
		case t.Newest(job.GetKey()) != id:
			return errorf(FailedPrecondition, "job %s has been followed by another try of its task, job %s.", id, t.Newest(job.GetKey()))
		}
		if instances := t.jobsIn(rec); len(instances) > 0 {
			again := t.unsuccessful(instances)
			if len(again) == 0 {
				return errorf(FailedPrecondition, "every instance of job %s has succeeded or was skipped; there is none to retry.", id)
			}
			return r.instances(t, id, again)
		}
		return r.again(t, id)
	})
	if err != nil {
		return nil, err
	}
	return e.store.Job(id)
}

// unsuccessful are those of an array's instances that have failed, or were kept from running by a failure or a cancel.
func (t *txn) unsuccessful(instances []string) (ids []string) {
	for _, id := range instances {
		state := t.rec(id).GetJob().GetState()
		if graph.IsTerminal(state) && state != dagbridgev1.Job_SUCCEEDED && state != dagbridgev1.Job_SKIPPED {
			ids = append(ids, id)
		}
	}
	return ids
}

// dead: no native job that an ended job was in can still run it.
func (t *txn) dead(rec *storev1.JobRecord) bool {
	return !live(rec) && !slices.ContainsFunc(owners(rec), func(owner string) bool { return t.rec(owner).GetCleanup() })
}

// stillWanted makes a job one that a person wants to run, whatever stood against it.
func stillWanted(rec *storev1.JobRecord) {
	rec.Refused, rec.Job.CancelRequestTime = "", nil
}

// revival brings jobs that have ended back to life.
type revival struct{ staged []string }

// node is a job in memory, or on its way there with the commit.
func (r *revival) node(t *txn, id string) *node {
	if n := t.e.mem.node(id); n != nil {
		return n
	}
	n := &node{rec: t.rec(id)}
	newResolver(t.Tx).load(n)
	t.e.mem.stage(n)
	r.staged = append(r.staged, id)
	return n
}

// instances starts another attempt of some of an array's.
func (r *revival) instances(t *txn, array string, again []string) error {
	r.node(t, array)
	t.change(array, stillWanted)
	for _, id := range again {
		if err := r.again(t, id); err != nil {
			return err
		}
	}
	return nil
}

// again starts another attempt of a job: of an array's instance in its native array, of any other by itself.
func (r *revival) again(t *txn, id string) error {
	rec := t.rec(id)
	if !t.dead(rec) {
		return errorf(FailedPrecondition, "the native job of job %s is not yet proven dead; try again in a moment.", id)
	}
	unit := id
	switch parent := rec.GetJob().GetParent(); {
	case parent != "":
		r.node(t, parent)
		t.change(parent, stillWanted)
		if rec.GetCarrier() != "" {
			unit = rec.GetCarrier()
		}
	case rec.GetCarrier() != "":
		t.leave(&node{rec: t.rec(rec.GetCarrier())}, id)
	}
	r.node(t, id)
	n := r.node(t, unit)
	if n.toExpand() {
		if count, _, why := t.countItems(n); count == 0 {
			return errorf(FailedPrecondition, "job %s cannot be retried: %s.", id, why)
		}
	}
	over := graph.IsTerminal(t.rec(unit).GetJob().GetState())
	t.change(id, stillWanted)
	t.renew(n, id, "RETRY", "a user asked for another attempt", 0)
	if n.task.GetEmpty() {
		t.endByRule(n, dagbridgev1.Job_SUCCEEDED, "", "")
		return nil
	}
	if n.toExpand() {
		t.expand(n)
		return nil
	}
	t.change(unit, func(rec *storev1.JobRecord) {
		stillWanted(rec)
		if over {
			rec.Ready, rec.Native = true, false
		}
	})
	return nil
}
