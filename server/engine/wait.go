package engine

import (
	"context"
	"slices"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators/graph"
)

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
		if jobs[i] = e.mem.job(id); jobs[i] != nil {
			continue
		}
		var err error
		if jobs[i], err = e.store.Job(id); err != nil {
			return nil, err
		}
	}
	return jobs, nil
}
