package engine

import (
	"context"

	storev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/store/v1"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators/graph"
)

// Retry starts another attempt of a job that has ended without success.
func (e *Engine) Retry(ctx context.Context, id string) (*dagbridgev1.Job, error) {
	defer e.mem.unstage([]string{id})
	err := e.update(ctx, func(t *txn) error {
		rec := t.rec(id)
		if rec == nil {
			return errorf(NotFound, "there is no job %s", id)
		}
		job := rec.GetJob()
		switch state := job.GetState(); {
		case !graph.IsTerminal(state):
			return errorf(FailedPrecondition, "job %s is %s; only a job that has ended can be retried. Cancel it first.", id, state)
		case state == dagbridgev1.Job_SUCCEEDED:
			return errorf(FailedPrecondition, "job %s has succeeded; submit the task again with a higher tryNumber to run it again.", id)
		case job.GetParent() != "" || len(job.GetCounts()) > 0:
			return errorf(FailedPrecondition, "job %s is an array or an instance of one: retrying those is not supported yet. Submit the task again with a higher tryNumber.", id)
		case live(rec):
			return errorf(FailedPrecondition, "the native job of job %s is not yet proven dead; try again in a moment.", id)
		case t.Newest(job.GetKey()) != id:
			return errorf(FailedPrecondition, "job %s has been followed by another try of its task, job %s.", id, t.Newest(job.GetKey()))
		}
		n := &node{rec: rec, task: t.Task(id)}
		n.ups = newResolver(t.Tx).edges(n)
		t.e.mem.stage(n)
		t.again(n, id, "RETRY", "a user asked for another attempt", 0)
		t.change(id, func(rec *storev1.JobRecord) {
			rec.Ready, rec.Native, rec.Refused, rec.Job.CancelRequestTime = true, false, "", nil
		})
		return nil
	})
	if err != nil {
		return nil, err
	}
	return e.store.Job(id)
}
