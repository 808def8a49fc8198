package engine

import (
	"slices"

	"google.golang.org/protobuf/types/known/timestamppb"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/store"
	"github.com/dagbridge/dagbridge/translators/graph"
)

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
	var jobs []*dagbridgev1.Job
	tx.RunJobs(stored.GetId(), func(id string) bool {
		if job := tx.Record(id).GetJob(); tx.Newest(job.GetKey()) == id {
			jobs = append(jobs, job)
		}
		return true
	})
	ended := len(jobs) > 0
	var end *timestamppb.Timestamp
	for _, job := range jobs {
		if len(job.GetCounts()) > 0 {
			for word, n := range job.GetCounts() {
				run.Counts[word] += n
			}
		} else {
			run.Counts[job.GetState().String()]++
		}
		ended = ended && graph.IsTerminal(job.GetState())
		if end == nil || job.GetEndTime().AsTime().After(end.AsTime()) {
			end = job.GetEndTime()
		}
	}
	switch {
	case !ended:
		run.State = dagbridgev1.Run_RUNNING
	case leafFailed(tx, jobs):
		run.State, run.EndTime = dagbridgev1.Run_FAILED, end
	default:
		run.State, run.EndTime = dagbridgev1.Run_SUCCEEDED, end
	}
	return run
}

// leafFailed: one of a run's jobs that nobody but tear-downs waits for, and that is none itself, has not succeeded.
func leafFailed(tx *store.Tx, jobs []*dagbridgev1.Job) bool {
	upstream := map[string]bool{} // keys that somebody depends on
	var failed []string
	for _, job := range jobs {
		task := tx.Task(job.GetId())
		if task.GetTeardown() != nil {
			continue
		}
		for _, edge := range task.GetUpstream() {
			upstream[graph.KeyString(graph.Upstream(task, edge))] = true
		}
		if job.GetState() != dagbridgev1.Job_SUCCEEDED && job.GetState() != dagbridgev1.Job_SKIPPED {
			failed = append(failed, graph.KeyString(job.GetKey()))
		}
	}
	return slices.ContainsFunc(failed, func(key string) bool { return !upstream[key] })
}
