package engine

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// What comes while a cluster does not answer, with jobs there that have to be verified first, says that this is what it waits
// for; and no more once it is submitted. The log has a line for each of the two turns.
func TestAJobSaysThatItsClusterDoesNotAnswer(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var log bytes.Buffer
	b.log = slog.New(slog.NewTextHandler(&log, nil))
	b.submit(&dagbridgev1.SubmitTaskRequest{Task: train(1, "u1", "true")})
	b.look()
	b.hpc.down = true
	b.look()
	task := train(1, "u1", "true")
	task.Key.Task = "later"
	later := b.submit(&dagbridgev1.SubmitTaskRequest{Task: task})
	array := train(1, "u1", "true")
	array.Key.Task, array.Array = "array", &dagbridgev1.Array{Items: []*dagbridgev1.Array_Item{{}, {}}}
	b.submit(&dagbridgev1.SubmitTaskRequest{Task: array})
	b.look()
	for _, n := range b.mem.nodes {
		job := n.rec.GetJob()
		if job.GetKey().GetTask() == "train" {
			continue // which is submitted
		}
		require.Equal(t, dagbridgev1.Job_ACCEPTED, job.GetState())
		require.Equal(t, "CLUSTER_UNREACHABLE", job.GetReason())
		require.Equal(t, errDown.Error(), job.GetMessage())
	}
	require.Equal(t, 1, strings.Count(log.String(), "a cluster does not answer"), log.String())
	require.NotContains(t, log.String(), "answers again")

	b.hpc.down = false
	b.look()
	b.look()
	job := b.job(later.GetId())
	require.Equal(t, dagbridgev1.Job_SUBMITTED, job.GetState())
	require.Empty(t, job.GetReason())
	require.Equal(t, 1, strings.Count(log.String(), "a cluster answers again"), log.String())
	require.Equal(t, 1, strings.Count(log.String(), "a cluster does not answer"), log.String())
}
