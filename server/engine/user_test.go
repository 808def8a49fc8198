package engine

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators"
)

// actors are two users who may name each other, and nobody else.
func actors(owner, asked string) (string, error) {
	switch asked {
	case "":
		return owner, nil
	case "ann", "ben":
		return asked, nil
	}
	return "", fmt.Errorf("%s may not act as %s", owner, asked)
}

func newActing(t *testing.T) *bench {
	b := newBench(t)
	b.hpc.impersonates, b.userOf = true, actors
	return b
}

func runsAs(user string, task *dagbridgev1.Task) *dagbridgev1.Task {
	task.Slurm = &dagbridgev1.SlurmOptions{User: user}
	return task
}

func TestAJobRunsAsItsSubmitter(t *testing.T) {
	t.Parallel()
	b := newActing(t)
	w := chain("a", "b", "c")
	runsAs("ben", w.Tasks[1])
	w.Tasks[2].Cluster = "here"
	resp, err := b.SubmitWorkflow(context.Background(), "ann", w)
	require.NoError(t, err)
	jobs := resp.GetJobs()
	require.Equal(t, []string{"ann", "ben", ""}, []string{jobs[0].GetUser(), jobs[1].GetUser(), jobs[2].GetUser()})
	for _, job := range jobs {
		require.Equal(t, "ann", job.GetOwner())
	}
}

func TestAnArraysInstancesRunAsItsUser(t *testing.T) {
	t.Parallel()
	b := newActing(t)
	task := runsAs("ben", train(1, "u1", "true"))
	task.Array = &dagbridgev1.Array{Items: []*dagbridgev1.Array_Item{{}, {}}}
	job := b.submit(&dagbridgev1.SubmitTaskRequest{Task: task})
	require.Equal(t, "ben", job.GetUser())
	kids, err := b.kids(b.job(job.GetId()))
	require.NoError(t, err)
	require.Len(t, kids, 2)
	for _, kid := range kids {
		require.Equal(t, "ben", kid.GetJob().GetUser())
	}
}

func TestWhomAnOwnerMayNotActAsIsRefusedForEveryTaskAtOnce(t *testing.T) {
	t.Parallel()
	b := newActing(t)
	w := chain("a", "b", "c")
	runsAs("cid", w.Tasks[0])
	runsAs("root", w.Tasks[2])
	_, err := b.SubmitWorkflow(context.Background(), "ann", w)
	var faults translators.Faults
	require.ErrorAs(t, err, &faults)
	require.Equal(t, translators.Faults{
		{Field: "tasks[0].slurm.user", Description: "ann may not act as cid"},
		{Field: "tasks[2].slurm.user", Description: "ann may not act as root"},
	}, faults)
	require.Empty(t, b.mem.nodes)
}

// What one user's job leaves, another's does not see: neither the mark by which it would know that it may start, nor outputs.
func TestAnEdgeBetweenUsersIsHeldAndHandsTheOutputsOver(t *testing.T) {
	t.Parallel()
	b := newActing(t)
	w := chain("a", "b", "c")
	runsAs("ben", w.Tasks[1])
	runsAs("ben", w.Tasks[2])
	plan, err := b.Plan("ann", w)
	require.NoError(t, err)
	require.False(t, plan.GetEdges()[0].GetNative())
	require.Contains(t, plan.GetEdges()[0].GetWhy(), "another user")
	require.True(t, plan.GetEdges()[1].GetNative(), plan.GetEdges()[1].GetWhy())

	resp, err := b.SubmitWorkflow(context.Background(), "ann", w)
	require.NoError(t, err)
	jobs := resp.GetJobs()
	b.look()
	require.Empty(t, b.job(jobs[1].GetId()).GetNativeId())
	b.end(jobs[0].GetId(), 0)
	b.look()
	require.NotEmpty(t, b.job(jobs[1].GetId()).GetNativeId())

	// nor natively across two submissions
	later := chain("a", "d")
	later.Tasks = later.Tasks[1:]
	later.Tasks[0].Upstream[0].Task = "b"
	plan, err = b.Plan("ann", later)
	require.NoError(t, err)
	require.False(t, plan.GetEdges()[0].GetNative())
}
