package engine

import (
	"context"
	"slices"

	storev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/store/v1"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators/graph"
)

// Cancel asks for the end of jobs and answers for each, in order. A job that has ended stays as it is; an array's parent
// stands for its instances. The end itself comes from the scheduler.
func (e *Engine) Cancel(ctx context.Context, ids []string) ([]*dagbridgev1.BatchCancelJobsResponse_Result, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	known := make([]bool, len(ids))
	err := e.update(ctx, func(t *txn) error {
		for i, id := range ids {
			if rec := t.rec(id); rec != nil && !isCarrier(rec) {
				known[i] = true
				t.requestCancel(id)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	results := make([]*dagbridgev1.BatchCancelJobsResponse_Result, len(ids))
	for i, id := range ids {
		results[i] = &dagbridgev1.BatchCancelJobsResponse_Result{Id: id, Status: "NOT_FOUND"}
		if !known[i] {
			continue
		}
		job, err := e.store.Job(id)
		if err != nil {
			return nil, err
		}
		results[i].Status, results[i].Job = "OK", job
	}
	return results, nil
}

// requestCancel notes that a user wants a job's end. Of one that has failed, and for another try of which others wait, that
// says that there will be none.
func (t *txn) requestCancel(id string) {
	mark := func(rec *storev1.JobRecord) { rec.Job.CancelRequestTime = stamp(t.now) }
	rec := t.rec(id)
	switch job := rec.GetJob(); {
	case graph.IsTerminal(job.GetState()):
		t.noMoreTries(id)
		return
	case job.GetCancelRequestTime() != nil:
		return
	}
	t.change(id, mark)
	t.thinned[rec.GetCarrier()] = true
	for _, kid := range t.jobsIn(rec) {
		if job := t.rec(kid).GetJob(); !graph.IsTerminal(job.GetState()) && job.GetCancelRequestTime() == nil {
			t.change(kid, mark)
			t.thinned[t.rec(kid).GetCarrier()] = true
		}
	}
}

// cancelArrays asks for the end of native arrays of which nobody wants any job any more.
func (t *txn) cancelArrays() {
	for id := range t.thinned {
		rec := t.rec(id)
		if rec == nil || graph.IsTerminal(rec.GetJob().GetState()) || rec.GetJob().GetCancelRequestTime() != nil {
			continue
		}
		if !slices.ContainsFunc(t.jobsIn(rec), func(kid string) bool {
			job := t.rec(kid).GetJob()
			return !graph.IsTerminal(job.GetState()) && job.GetCancelRequestTime() == nil
		}) {
			t.change(id, func(rec *storev1.JobRecord) { rec.Job.CancelRequestTime = stamp(t.now) })
		}
	}
}

// jobsIn are the jobs in an array's parent or in a carrier; none in any other job.
func (t *txn) jobsIn(rec *storev1.JobRecord) (ids []string) {
	switch {
	case isCarrier(rec):
		return slices.DeleteFunc(slices.Clone(rec.GetCarried()), func(id string) bool { return id == "" })
	case len(rec.GetJob().GetCounts()) > 0:
		t.Children(rec.GetJob().GetId(), func(kid string) bool { ids = append(ids, kid); return true })
	}
	return ids
}

// noMoreTries settles those who wait for another try of a job, or of an array's instances.
func (t *txn) noMoreTries(id string) {
	rec := t.rec(id)
	if rec.GetTryAgainUntil() != nil {
		t.change(id, func(rec *storev1.JobRecord) { rec.TryAgainUntil = nil })
		t.touched[graph.KeyString(rec.GetJob().GetKey())] = true
	}
	if len(rec.GetJob().GetCounts()) > 0 {
		t.Children(id, func(kid string) bool { t.noMoreTries(kid); return true })
	}
}

// CancelRun asks for the end of every job of a run but the tear-downs: what was set up is torn down, as in Airflow. They are
// cancelled one by one.
func (e *Engine) CancelRun(ctx context.Context, id string) (*dagbridgev1.Run, error) {
	err := e.update(ctx, func(t *txn) error {
		if t.Run(id) == nil {
			return errorf(NotFound, "there is no run %s", id)
		}
		var ids []string
		t.RunJobs(id, func(job string) bool { ids = append(ids, job); return true })
		for _, job := range ids {
			if t.Task(job).GetTeardown() == nil {
				t.requestCancel(job)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return e.Run(id)
}
