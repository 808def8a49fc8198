package engine

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// As in Airflow: what was set up is torn down, also when the run is cancelled in between.
func TestACancelledRunIsTornDown(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := chain("make", "work", "remove")
	w.Tasks[0].Setup = true
	w.Tasks[2].Teardown = &dagbridgev1.Teardown{Of: []string{"make"}}
	resp, err := b.SubmitWorkflow(context.Background(), "somebody", w)
	require.NoError(t, err)
	state := func(i int) dagbridgev1.Job_State { return b.job(resp.GetJobs()[i].GetId()).GetState() }
	b.look()
	b.end(resp.GetJobs()[0].GetId(), 0)
	_, err = b.CancelRun(context.Background(), resp.GetRun().GetId())
	require.NoError(t, err)
	b.look()
	b.look()
	require.Equal(t, dagbridgev1.Job_CANCELLED, state(1))
	require.Nil(t, b.job(resp.GetJobs()[2].GetId()).GetCancelRequestTime())
	b.end(resp.GetJobs()[2].GetId(), 0)
	require.Equal(t, dagbridgev1.Job_SUCCEEDED, state(2))
	run, err := b.Run(resp.GetRun().GetId())
	require.NoError(t, err)
	require.Equal(t, dagbridgev1.Run_FAILED, run.GetState(), "the tear-down's success is not the run's")
}
