package engine

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// Jobs beyond the rate wait here and say so; they go in their order, and nothing else waits with them.
func TestJobsWaitForTheirTurn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.hpc.rate = 2
	w := &dagbridgev1.Workflow{Run: &dagbridgev1.Run{Orchestrator: "airflow", Workflow: "ml", Run: "manual__1"}, Fold: "off"}
	for i := range 6 {
		w.Tasks = append(w.Tasks, &dagbridgev1.Task{Key: &dagbridgev1.TaskKey{Task: fmt.Sprintf("t%d", i)}, Command: &dagbridgev1.Command{Argv: []string{"true"}}})
	}
	resp, err := b.SubmitWorkflow(context.Background(), "somebody", w)
	require.NoError(t, err)
	in := func() (n int) {
		for _, job := range resp.GetJobs() {
			if b.job(job.GetId()).GetNativeId() != "" {
				n++
			}
		}
		return n
	}
	last := resp.GetJobs()[5].GetId()
	b.look()
	require.Equal(t, 2, in())
	require.Equal(t, dagbridgev1.Job_ACCEPTED, b.job(last).GetState())
	require.Equal(t, "RATE_LIMIT", b.job(last).GetReason())
	require.Equal(t, "so many a second", b.job(last).GetMessage())

	_, err = b.Cancel(context.Background(), []string{resp.GetJobs()[0].GetId(), last})
	require.NoError(t, err)
	b.look()
	require.Equal(t, 2, in(), "no time has passed")
	for _, i := range []int{0, 5} {
		require.Equal(t, dagbridgev1.Job_CANCELLED, b.job(resp.GetJobs()[i].GetId()).GetState())
	}
	for want := 3; want <= 5; want++ {
		b.hpc.w.now = b.hpc.w.now.Add(time.Second)
		b.look()
		require.Equal(t, want, in(), "one more each second")
		require.Empty(t, b.job(resp.GetJobs()[want-1].GetId()).GetReason())
	}
}

// A batch that has to wait is still released whole.
func TestABatchWaitsForItsTurnsTogether(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.hpc.rate = 1
	_, err := b.SubmitWorkflow(context.Background(), "somebody", chain("a", "b", "c"))
	require.NoError(t, err)
	for len(b.hpc.jobs) < 3 {
		b.look()
		require.Equal(t, len(b.hpc.jobs) < 3, b.hpc.jobs[0].held, "%d are in", len(b.hpc.jobs))
		b.hpc.w.now = b.hpc.w.now.Add(time.Second)
	}
}

// A scheduler that takes its time over a submission holds up no cancel.
func TestASlowSubmissionHoldsUpNoCancel(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	runs := b.submit(&dagbridgev1.SubmitTaskRequest{Task: train(1, "u1", "true")}).GetId()
	b.look()
	b.hpc.slow = make(chan struct{})
	other := train(1, "u1", "true")
	other.Key.Task = "other"
	waits := b.submit(&dagbridgev1.SubmitTaskRequest{Task: other}).GetId()
	c := b.byName["hpc"]
	submitted := make(chan struct{})
	go func() {
		defer close(submitted)
		b.dispatch(context.Background(), c)
	}()
	require.Eventually(t, func() bool { return b.mem.mayBeThere(waits) }, time.Minute, time.Millisecond, "it is on its way")
	_, err := b.Cancel(context.Background(), []string{runs, waits})
	require.NoError(t, err)
	b.order(context.Background(), c)
	require.True(t, ended(b.hpc.jobs[0].state))
	require.Equal(t, dagbridgev1.Job_ACCEPTED, b.job(waits).GetState(), "what is on its way is not called cancelled")
	close(b.hpc.slow)
	<-submitted
	b.look()
	require.Equal(t, dagbridgev1.Job_CANCELLED, b.job(runs).GetState())
}

// What is wrong with one job holds up no other.
func TestAJobThatCannotBeSentHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.hpc.unsent = map[string]bool{}
	submit := func(task string) string {
		one := train(1, "u1", "true")
		one.Key.Task = task
		return b.submit(&dagbridgev1.SubmitTaskRequest{Task: one}).GetId()
	}
	stuck := submit("stuck")
	b.hpc.unsent[stuck] = true
	for i := range 3 {
		other := submit(fmt.Sprintf("other%d", i))
		b.look()
		require.Equal(t, dagbridgev1.Job_SUBMITTED, b.job(other).GetState())
		require.Equal(t, "CLUSTER_UNREACHABLE", b.job(stuck).GetReason())
		require.True(t, b.Clusters()[0].GetReachable())
	}
	b.hpc.unsent = nil
	b.hpc.w.now = b.hpc.w.now.Add(30 * time.Second)
	b.look()
	require.Equal(t, dagbridgev1.Job_SUBMITTED, b.job(stuck).GetState())
}
