package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	storev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/store/v1"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/server/store"
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
			if known[i] = t.rec(id) != nil; known[i] {
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

// requestCancel notes that a user wants a job's end.
func (t *txn) requestCancel(id string) {
	mark := func(rec *storev1.JobRecord) {
		rec.Job.CancelRequestTime = stamp(t.now)
		rec.TryAgainUntil = nil
	}
	rec := t.rec(id)
	if job := rec.GetJob(); graph.IsTerminal(job.GetState()) || job.GetCancelRequestTime() != nil {
		return
	}
	t.change(id, mark)
	if len(rec.GetJob().GetCounts()) == 0 {
		return
	}
	t.Children(id, func(kid string) bool {
		if job := t.rec(kid).GetJob(); !graph.IsTerminal(job.GetState()) && job.GetCancelRequestTime() == nil {
			t.change(kid, mark)
		}
		return true
	})
}

// CancelRun asks for the end of every job of a run.
func (e *Engine) CancelRun(ctx context.Context, id string) (*dagbridgev1.Run, error) {
	err := e.update(ctx, func(t *txn) error {
		if t.Run(id) == nil {
			return errorf(NotFound, "there is no run %s", id)
		}
		var ids []string
		t.RunJobs(id, func(job string) bool { ids = append(ids, job); return true })
		for _, job := range ids {
			t.requestCancel(job)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return e.Run(id)
}

// Retry starts another attempt of a job that has ended without success.
func (e *Engine) Retry(ctx context.Context, id string) (*dagbridgev1.Job, error) {
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
			rec.Ready, rec.Native, rec.Job.CancelRequestTime = true, false, nil
		})
		return nil
	})
	if err != nil {
		return nil, err
	}
	return e.store.Job(id)
}

// PutOutputs stages outputs of a job that has not ended; they are visible once it has.
func (e *Engine) PutOutputs(ctx context.Context, id string, outputs map[string]*dagbridgev1.Json) (*dagbridgev1.Job, error) {
	for name, value := range outputs {
		if !json.Valid([]byte(value.GetText())) {
			return nil, errorf(FailedPrecondition, "output %q is not JSON: send one JSON value", name)
		}
	}
	err := e.update(ctx, func(t *txn) error {
		rec := t.rec(id)
		if rec == nil {
			return errorf(NotFound, "there is no job %s", id)
		}
		if graph.IsTerminal(rec.GetJob().GetState()) {
			return errorf(FailedPrecondition, "job %s has ended; outputs are put while it runs", id)
		}
		staged := maps.Clone(rec.GetStaged())
		if staged == nil {
			staged = map[string]*dagbridgev1.Json{}
		}
		maps.Copy(staged, outputs)
		if size := len(outputsText(staged)); size > e.outputLimit {
			return errorf(ResourceExhausted, "the outputs would be %d bytes, and a job may leave %d; put large results in a file and its path in the outputs", size, e.outputLimit)
		}
		t.change(id, func(rec *storev1.JobRecord) { rec.Staged = staged })
		return nil
	})
	if err != nil {
		return nil, err
	}
	return e.store.Job(id)
}

// Wait returns the jobs once all have reached a state, or as they are when the context ends.
func (e *Engine) Wait(ctx context.Context, ids []string, what dagbridgev1.WaitFor_Value) ([]*dagbridgev1.Job, error) {
	for {
		changed := e.store.Changed()
		jobs, err := e.jobs(ids)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(jobs, func(j *dagbridgev1.Job) bool { return !reached(j.GetState(), what) }) {
			return jobs, nil
		}
		select {
		case <-ctx.Done():
			return jobs, nil
		case <-changed:
		}
	}
}

func reached(state dagbridgev1.Job_State, what dagbridgev1.WaitFor_Value) bool {
	switch what {
	case dagbridgev1.WaitFor_TERMINAL:
		return graph.IsTerminal(state)
	case dagbridgev1.WaitFor_SUBMITTED:
		return state != dagbridgev1.Job_ACCEPTED
	default:
		return true
	}
}

func (e *Engine) jobs(ids []string) ([]*dagbridgev1.Job, error) {
	jobs := make([]*dagbridgev1.Job, len(ids))
	for i, id := range ids {
		job, err := e.store.Job(id)
		if err != nil {
			return nil, err
		}
		jobs[i] = job
	}
	return jobs, nil
}

// logChunk bounds what ReadLogs hands over at once.
const logChunk = 64 << 10

// logPause is how long ReadLogs waits at the end of a log that may still grow.
const logPause = 300 * time.Millisecond

// ReadLogs sends what a job wrote, from an offset or the last so many bytes, in chunks of at most 64 KiB; with follow until
// the job has ended. A job that has not started has written nothing, which is no error.
func (e *Engine) ReadLogs(ctx context.Context, req *dagbridgev1.ReadLogsRequest, send func(data []byte, offset int64) error) error {
	stream, offset := req.GetStream(), req.GetOffset()
	if stream == "" {
		stream = "stdout"
	}
	first := true
	for {
		job, err := e.store.Job(req.GetId())
		if err != nil {
			return err
		}
		ended := graph.IsTerminal(job.GetState())
		read, size, err := e.readLog(ctx, job, stream, offset, req.GetTail(), first, send)
		missing := errors.Is(err, backend.ErrNoFile)
		switch {
		case missing && ended && job.GetStartTime() != nil && e.now().Sub(job.GetEndTime().AsTime()) > e.grace:
			return errorf(NotFound, "job %s has ended and left no %s; it would be %s", job.GetId(), stream, logPath(job, stream))
		case err != nil && !missing:
			return err
		}
		if !missing {
			first = false
		}
		offset = max(offset, size)
		if !req.GetFollow() || ended && read == 0 {
			return nil
		}
		if read > 0 {
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(logPause):
		}
	}
}

func logPath(job *dagbridgev1.Job, stream string) string {
	if stream == "stderr" {
		return job.GetLogs().GetStderr()
	}
	return job.GetLogs().GetStdout()
}

// readLog sends what there is of a log now, and answers with how much that was and where it ended.
func (e *Engine) readLog(ctx context.Context, job *dagbridgev1.Job, stream string, offset, tail int64, first bool, send func([]byte, int64) error) (int64, int64, error) {
	c := e.byName[job.GetCluster()]
	if c == nil {
		return 0, offset, errorf(FailedPrecondition, "job %s ran on cluster %q, which is no longer configured", job.GetId(), job.GetCluster())
	}
	owner, position, at, err := e.logOwner(job)
	if err != nil || at.GetNativeId() == "" {
		return 0, offset, cmp.Or(err, backend.ErrNoFile)
	}
	ref := backend.NativeRef{ID: at.GetNativeId(), Token: at.GetToken(), SubmitTime: at.GetSubmitTime().AsTime()}
	r, size, err := c.Backend.Log(ctx, ref, owner, position, stream, offset)
	if err != nil {
		return 0, offset, err
	}
	defer func() { _ = r.Close() }() // only read from
	if first && tail > 0 && size-offset > tail {
		_ = r.Close()
		offset = size - tail
		if r, size, err = c.Backend.Log(ctx, ref, owner, position, stream, offset); err != nil {
			return 0, offset, err
		}
	}
	buf := make([]byte, logChunk)
	start := offset
	for ctx.Err() == nil {
		n, err := r.Read(buf)
		if n > 0 {
			if err := send(buf[:n], offset); err != nil {
				return 0, offset, err
			}
			offset += int64(n)
		}
		if err == io.EOF {
			return offset - start, offset, nil
		}
		if err != nil {
			return offset - start, offset, err
		}
	}
	return offset - start, offset, ctx.Err()
}

// logOwner is the job whose folder holds a job's log, the position in it, and the attempt: of an instance of a native array
// they are its parent's.
func (e *Engine) logOwner(job *dagbridgev1.Job) (*dagbridgev1.Job, int, *dagbridgev1.Attempt, error) {
	if len(job.GetAttempts()) == 0 {
		return job, -1, nil, nil
	}
	at := job.GetAttempts()[len(job.GetAttempts())-1]
	owner := jobOf(at.GetToken())
	if owner == job.GetId() {
		return job, -1, at, nil
	}
	parent, err := e.store.Job(owner)
	if err != nil {
		return nil, 0, nil, err
	}
	index := job.GetKey().GetMapIndex()
	position := int(index[len(index)-1])
	base, _ := cutInstance(at.GetNativeId())
	return parent, position, &dagbridgev1.Attempt{NativeId: base, Token: at.GetToken(), SubmitTime: at.GetSubmitTime()}, nil
}

// Run is a run with its state and counts, computed from its jobs: it runs while one of them lives, and ends as its leaves
// do, tear-downs left out.
func (e *Engine) Run(id string) (*dagbridgev1.Run, error) {
	var run *dagbridgev1.Run
	err := e.store.View(func(tx *store.Tx) error {
		stored := tx.Run(id)
		if stored == nil {
			return errorf(NotFound, "there is no run %s", id)
		}
		run = computeRun(tx, stored)
		return nil
	})
	return run, err
}

// Runs lists runs, newest first; a state filter leaves out those in other states.
func (e *Engine) Runs(req *dagbridgev1.ListRunsRequest) (*dagbridgev1.ListRunsResponse, error) {
	runs, next, err := e.store.ListRuns(req)
	if err != nil {
		return nil, err
	}
	resp := &dagbridgev1.ListRunsResponse{NextPageToken: next}
	err = e.store.View(func(tx *store.Tx) error {
		for _, run := range runs {
			run = computeRun(tx, run)
			if len(req.GetState()) == 0 || slices.Contains(req.GetState(), run.GetState()) {
				resp.Runs = append(resp.Runs, run)
			}
		}
		return nil
	})
	return resp, err
}

// computeRun reads a run's jobs; of each task only the newest counts.
func computeRun(tx *store.Tx, stored *dagbridgev1.Run) *dagbridgev1.Run {
	run := &dagbridgev1.Run{
		Deployment: stored.GetDeployment(), Orchestrator: stored.GetOrchestrator(), Workflow: stored.GetWorkflow(), Run: stored.GetRun(),
		TryNumber: stored.GetTryNumber(), Uid: stored.GetUid(), Mode: stored.GetMode(), Parent: stored.GetParent(), Id: stored.GetId(),
		Owner: stored.GetOwner(), CreateTime: stored.GetCreateTime(), Counts: map[string]int32{},
	}
	type member struct {
		job  *dagbridgev1.Job
		task *dagbridgev1.Task
	}
	var members []member
	upstream := map[string]bool{} // keys that somebody depends on
	tx.RunJobs(stored.GetId(), func(id string) bool {
		job := tx.Record(id).GetJob()
		if tx.Newest(job.GetKey()) != id {
			return true
		}
		m := member{job, tx.Task(id)}
		members = append(members, m)
		if m.task.GetTeardown() == nil {
			for _, edge := range m.task.GetUpstream() {
				upstream[graph.KeyString(graph.Upstream(m.task, edge))] = true
			}
		}
		return true
	})
	ended, failed := true, false
	var end *timestamppb.Timestamp
	for _, m := range members {
		if len(m.job.GetCounts()) > 0 {
			for word, n := range m.job.GetCounts() {
				run.Counts[word] += n
			}
		} else {
			run.Counts[m.job.GetState().String()]++
		}
		ended = ended && graph.IsTerminal(m.job.GetState())
		if end == nil || m.job.GetEndTime().AsTime().After(end.AsTime()) {
			end = m.job.GetEndTime()
		}
		leaf := !upstream[graph.KeyString(m.job.GetKey())] && m.task.GetTeardown() == nil
		bad := m.job.GetState() != dagbridgev1.Job_SUCCEEDED && m.job.GetState() != dagbridgev1.Job_SKIPPED
		failed = failed || leaf && bad
	}
	switch {
	case !ended || len(members) == 0:
		run.State = dagbridgev1.Run_RUNNING
	case failed:
		run.State, run.EndTime = dagbridgev1.Run_FAILED, end
	default:
		run.State, run.EndTime = dagbridgev1.Run_SUCCEEDED, end
	}
	return run
}
