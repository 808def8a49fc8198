package engine

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// Of jobs that are cancelled together each is answered for, and what has ended or is unknown keeps no other from its end.
func TestCancelOfManyAnswersForEach(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ids := map[string]string{}
	for _, name := range []string{"finished", "running", "pending", "first"} {
		task := train(1, "u1", "true")
		task.Key.Task = name
		ids[name] = b.submit(&dagbridgev1.SubmitTaskRequest{Task: task}).GetId()
	}
	b.look()
	b.end(ids["finished"], 0)
	b.hpc.begin(b.hpc.jobs[1])
	b.look()
	require.Equal(t, dagbridgev1.Job_RUNNING, b.job(ids["running"]).GetState())

	results, err := b.Cancel(context.Background(), []string{ids["finished"], ids["running"], ids["pending"], "703", ids["first"]})
	require.NoError(t, err)
	var told []string
	for _, r := range results {
		told = append(told, r.GetStatus()+" "+r.GetJob().GetState().String())
	}
	require.Equal(t, []string{"OK SUCCEEDED", "OK RUNNING", "OK SUBMITTED", "NOT_FOUND STATE_UNSPECIFIED", "OK SUBMITTED"}, told)
	require.Nil(t, b.job(ids["finished"]).GetCancelRequestTime())
	require.NotNil(t, b.job(ids["running"]).GetCancelRequestTime(), "it is told until the scheduler confirms")

	b.end(ids["first"], 0)
	require.Equal(t, dagbridgev1.Job_SUCCEEDED, b.job(ids["first"]).GetState(), "it had ended before it could be cancelled")
	require.NotNil(t, b.job(ids["first"]).GetCancelRequestTime())
	require.Equal(t, dagbridgev1.Job_CANCELLED, b.job(ids["running"]).GetState())
	require.NotNil(t, b.job(ids["running"]).GetStartTime())
	pending := b.job(ids["pending"])
	require.Equal(t, dagbridgev1.Job_CANCELLED, pending.GetState())
	require.Nil(t, pending.GetStartTime(), "it never started")
	require.NotNil(t, pending.GetEndTime())
	require.Equal(t, dagbridgev1.Job_SUCCEEDED, b.job(ids["finished"]).GetState())
}
