package engine

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// What has nothing to run ends as its rule says, at once, without a native job; and what comes after it goes on.
func TestEmptyTasksEndByTheirRule(t *testing.T) {
	t.Parallel()
	const succeeded, failed, upstreamFailed = dagbridgev1.Job_SUCCEEDED, dagbridgev1.Job_FAILED, dagbridgev1.Job_UPSTREAM_FAILED
	for name, c := range map[string]struct {
		exit       int32
		join, last dagbridgev1.Job_State
	}{
		"after success": {0, succeeded, dagbridgev1.Job_SUBMITTED},
		"after failure": {1, upstreamFailed, upstreamFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			w := chain("begin", "work", "join", "last")
			for _, i := range []int{0, 2} {
				w.Tasks[i].Command, w.Tasks[i].Empty = nil, true
			}
			resp, err := b.SubmitWorkflow(context.Background(), "somebody", w)
			require.NoError(t, err)
			state := func(i int) dagbridgev1.Job_State { return b.job(resp.GetJobs()[i].GetId()).GetState() }
			require.Equal(t, succeeded, state(0))
			b.look()
			require.Equal(t, dagbridgev1.Job_SUBMITTED, state(1))
			b.end(resp.GetJobs()[1].GetId(), c.exit)
			b.look()
			require.Equal(t, c.join, state(2))
			require.Equal(t, c.last, state(3))
			join := b.job(resp.GetJobs()[2].GetId())
			require.Empty(t, join.GetNativeId())
			require.NotNil(t, join.GetEndTime())
			if c.exit == 0 {
				return
			}
			require.Equal(t, failed, state(1))
			_, err = b.Retry(context.Background(), join.GetId())
			require.NoError(t, err)
			require.Equal(t, succeeded, state(2), "a person wants it run whatever came before")
		})
	}
}

// A run of nothing but marks ends in the moment in which it is submitted.
func TestARunOfEmptyTasksEnds(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := chain("a", "b", "c")
	for _, task := range w.GetTasks() {
		task.Command, task.Empty = nil, true
	}
	resp, err := b.SubmitWorkflow(context.Background(), "somebody", w)
	require.NoError(t, err)
	run, err := b.Run(resp.GetRun().GetId())
	require.NoError(t, err)
	require.Equal(t, dagbridgev1.Run_SUCCEEDED, run.GetState())
}
