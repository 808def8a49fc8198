package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/store"
)

// array submits an array of n instances, which the scheduler has as native job "1".
func (b *bench) array(n int, change func(*dagbridgev1.Task)) (parent string, kids []string) {
	b.t.Helper()
	task := train(1, "u1", "python", "train.py")
	task.Array = &dagbridgev1.Array{}
	for range n {
		task.Array.Items = append(task.Array.Items, &dagbridgev1.Array_Item{})
	}
	change(task)
	parent = b.submit(&dagbridgev1.SubmitTaskRequest{Task: task}).GetId()
	b.look()
	require.Len(b.t, b.hpc.jobs, n)
	require.NoError(b.t, b.store.View(func(tx *store.Tx) error {
		tx.Children(parent, func(id string) bool { kids = append(kids, id); return true })
		return nil
	}))
	return parent, kids
}

func TestARetriedArrayHasOneMoreAttempt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	parent, kids := b.array(2, func(task *dagbridgev1.Task) {
		task.Retry = &dagbridgev1.Retry{MaxRetries: 1, Backoff: durationpb.New(0), MaxBackoff: durationpb.New(0)}
	})
	for _, code := range []int32{3, 0} {
		for _, kid := range kids {
			b.end(kid, code)
		}
	}
	for _, kid := range kids {
		require.Equal(t, dagbridgev1.Job_SUCCEEDED, b.job(kid).GetState())
		require.Len(t, b.job(kid).GetAttempts(), 2)
	}
	require.Len(t, b.job(parent).GetAttempts(), 2)
}

func TestALostInstanceLeavesTheOthersAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	_, kids := b.array(2, func(*dagbridgev1.Task) {})
	for i := range kids {
		b.hpc.begin(b.element("1", i))
	}
	b.look()
	b.hpc.jobs = b.hpc.jobs[1:]
	for range 10 {
		b.hpc.w.now = b.hpc.w.now.Add(simGrace)
		b.look()
	}
	require.Equal(t, dagbridgev1.Job_LOST, b.job(kids[0]).GetState())
	require.Equal(t, dagbridgev1.Job_RUNNING, b.job(kids[1]).GetState())
	b.succeeds(b.element("1", 1))
	b.look()
	require.Equal(t, dagbridgev1.Job_SUCCEEDED, b.job(kids[1]).GetState())
}

func TestACancelOfARunningArrayIsOrderedUntilItIsDone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	parent, kids := b.array(2, func(*dagbridgev1.Task) {})
	for i := range kids {
		b.hpc.begin(b.element("1", i))
	}
	b.look()
	_, err := b.Cancel(t.Context(), []string{parent})
	require.NoError(t, err)
	b.hpc.down = true
	b.pass(t.Context(), b.byName["hpc"])
	b.hpc.down = false
	b.look()
	b.look()
	for _, kid := range kids {
		require.Equal(t, dagbridgev1.Job_CANCELLED, b.job(kid).GetState())
	}
}

// While other instances still run, an instance that failed waits for its next attempt, and uses up no more of its retries.
func TestAnInstanceIsRetriedOnceTheOthersHaveEnded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	_, kids := b.array(2, func(task *dagbridgev1.Task) {
		task.Retry = &dagbridgev1.Retry{MaxRetries: 1, Backoff: durationpb.New(0), MaxBackoff: durationpb.New(0)}
	})
	b.hpc.begin(b.element("1", 1))
	b.end(kids[0], 3)
	for range 5 {
		b.look()
	}
	require.Equal(t, dagbridgev1.Job_ACCEPTED, b.job(kids[0]).GetState())
	b.succeeds(b.element("1", 1))
	b.look()
	b.end(kids[0], 0)
	require.Equal(t, dagbridgev1.Job_SUCCEEDED, b.job(kids[0]).GetState())
	require.Len(t, b.job(kids[0]).GetAttempts(), 2)
	require.Len(t, b.job(kids[1]).GetAttempts(), 1)
}

// A scheduler that is killed may forget that it cancelled an array.
func TestACancelledArrayIsWatchedForAWhile(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	parent, kids := b.array(2, func(*dagbridgev1.Task) {})
	b.hpc.save()
	_, err := b.Cancel(t.Context(), []string{parent})
	require.NoError(t, err)
	b.look()
	b.look()
	require.Equal(t, dagbridgev1.Job_CANCELLED, b.job(kids[0]).GetState())
	b.hpc.w.now = b.hpc.w.now.Add(simGrace / 2)
	b.look()
	for _, j := range b.hpc.jobs {
		j.state, j.ended = dagbridgev1.Job_SUBMITTED, time.Time{} // as it was
	}
	for range 5 {
		b.hpc.w.now = b.hpc.w.now.Add(simGrace / 2)
		b.look()
	}
	for _, j := range b.hpc.jobs {
		require.Equal(t, dagbridgev1.Job_CANCELLED, j.state)
	}
	require.True(t, b.mem.empty(), "not for ever")
}

// A gateway that starts anew knows the instances of an array that has ended for those who wait for them one by one, whoever
// else waits for the whole.
func TestAnEndedArrayIsLoadedForAllWhoWaitForIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := chain("list", "all", "each")
	for _, i := range []int{0, 2} {
		w.Tasks[i].Array = &dagbridgev1.Array{Items: []*dagbridgev1.Array_Item{{}, {}}}
	}
	w.Tasks[0].MaxTries = 2
	w.Tasks[2].Upstream = []*dagbridgev1.Edge{{Task: "list", Instances: dagbridgev1.Edge_SAME_INDEX}}
	resp, err := b.SubmitWorkflow(t.Context(), "somebody", w)
	require.NoError(t, err)
	b.look()
	for _, j := range b.hpc.jobs[:2] {
		b.end(j.jobID, 3)
	}
	require.Equal(t, dagbridgev1.Job_FAILED, b.job(resp.GetJobs()[0].GetId()).GetState())
	anew, err := New(Options{Store: b.store, Clusters: []Cluster{{Name: "hpc", Backend: b.hpc}, {Name: "here", Backend: b.here}}, Now: b.now})
	require.NoError(t, err)
	require.Len(t, anew.mem.node(resp.GetJobs()[2].GetId()).ups[0].kids, 2)
}
