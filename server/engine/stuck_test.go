package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// A native job that the scheduler can release no more gives way to another, after the grace; nothing is called cancelled.
func TestANativeJobThatCannotBeReleasedGivesWay(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first, second := train(1, "u1", "true"), train(1, "u1", "true")
	first.Key, second.Key = &dagbridgev1.TaskKey{Task: "first"}, &dagbridgev1.TaskKey{Task: "second"}
	second.Upstream = []*dagbridgev1.Edge{{Task: "first"}}
	resp, err := b.SubmitWorkflow(t.Context(), "somebody", &dagbridgev1.Workflow{
		Run: &dagbridgev1.Run{Orchestrator: "airflow", Workflow: "w", Run: "r", TryNumber: 1}, Tasks: []*dagbridgev1.Task{first, second},
	})
	require.NoError(t, err)
	id := resp.GetJobs()[0].GetId()
	b.dispatch(t.Context(), b.byName["hpc"])
	held := b.hpc.jobs[0]
	require.True(t, held.held, "a root with native children goes in held")
	held.stuck = true
	b.look()
	require.Len(t, b.job(id).GetAttempts(), 1, "it is waited for")
	for i := range 6 {
		b.hpc.down = i == 1 // an outage meanwhile says nothing of the job
		b.hpc.w.now = b.hpc.w.now.Add(simGrace / 2)
		b.look()
	}
	require.Equal(t, dagbridgev1.Job_CANCELLED, held.state)
	job := b.job(id)
	require.Equal(t, dagbridgev1.Job_SUBMITTED, job.GetState(), job.GetMessage())
	require.Len(t, job.GetAttempts(), 2)
	require.Equal(t, dagbridgev1.Job_CANCELLED, job.GetAttempts()[0].GetState())
}
