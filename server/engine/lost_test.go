package engine

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// A job that had started, and that neither the controller nor accounting has any more, is lost once that has been so for the
// grace; until then it is what it was. The others that the same looks tell of are none the worse.
func TestAJobWithoutATraceIsLostAfterTheGrace(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.hpc.accounting = false
	gone := b.submit(&dagbridgev1.SubmitTaskRequest{Task: train(1, "u1", "true")})
	other := train(1, "u1", "true")
	other.Key.Task = "other"
	there := b.submit(&dagbridgev1.SubmitTaskRequest{Task: other})
	b.look()
	b.hpc.begin(b.hpc.jobs[0])
	b.look()
	require.Equal(t, dagbridgev1.Job_RUNNING, b.job(gone.GetId()).GetState())
	b.hpc.jobs = slices.Delete(b.hpc.jobs, 0, 1)
	b.look()
	b.end(there.GetId(), 0)
	require.Equal(t, dagbridgev1.Job_SUCCEEDED, b.job(there.GetId()).GetState())
	require.Equal(t, dagbridgev1.Job_RUNNING, b.job(gone.GetId()).GetState(), "no news is not news")

	for range 4 { // at each it is looked for once more
		b.hpc.w.now = b.hpc.w.now.Add(simGrace)
		b.look()
	}
	job := b.job(gone.GetId())
	require.Equal(t, dagbridgev1.Job_LOST, job.GetState())
	require.Equal(t, "LOST", job.GetReason())
	require.Contains(t, job.GetMessage(), "gone without a trace of its end")
	require.Len(t, job.GetAttempts(), 1, "it may have run: it is not run again")
}
