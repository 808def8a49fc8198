package engine

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// A cancel that was on its way when the controller was killed meets the job that was given the id anew: that job was wanted, and goes
// in again. What somebody else cancels stays cancelled.
func TestACancelThatMeetsTheWrongJob(t *testing.T) {
	t.Parallel()
	for _, wanted := range []bool{true, false} {
		b := newBench(t)
		first := b.submit(&dagbridgev1.SubmitTaskRequest{Task: train(1, "u1", "true")}).GetId()
		b.look()
		if wanted {
			_, err := b.Cancel(context.Background(), []string{first})
			require.NoError(t, err)
		}
		b.hpc.jobs, b.hpc.nextID = nil, 1 // killed, it has forgotten
		other := train(1, "u1", "true")
		other.Key.Task = "other"
		second := b.submit(&dagbridgev1.SubmitTaskRequest{Task: other}).GetId()
		c := b.byName["hpc"]
		b.dispatch(context.Background(), c)
		require.Equal(t, "1", b.job(second).GetNativeId(), "the id is given anew")
		b.hpc.kill(b.hpc.jobs[0], dagbridgev1.Job_CANCELLED, "CANCELLED")
		b.look()
		if !wanted {
			require.Equal(t, dagbridgev1.Job_CANCELLED, b.job(second).GetState())
			continue
		}
		b.look()
		require.Equal(t, dagbridgev1.Job_SUBMITTED, b.job(second).GetState(), b.job(second).GetMessage())
		require.Len(t, b.job(second).GetAttempts(), 2)
	}
}
