package engine

import (
	"context"
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
	return parent, b.instances(parent)
}

// instances are the jobs of an array's instances, by index.
func (b *bench) instances(parent string) (kids []string) {
	b.t.Helper()
	require.NoError(b.t, b.store.View(func(tx *store.Tx) error {
		tx.Children(parent, func(id string) bool { kids = append(kids, id); return true })
		return nil
	}))
	return kids
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

// A further try of a run runs of an array what has failed of it; what takes all of it has one job with all results.
func TestOnlyWhatFailedOfAnArrayRunsAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := chain("simulate", "report")
	w.Tasks[0].Array = &dagbridgev1.Array{Items: []*dagbridgev1.Array_Item{{}, {}, {}}}
	first, err := b.SubmitWorkflow(context.Background(), "somebody", w)
	require.NoError(t, err)
	b.look()
	array := first.GetJobs()[0].GetId()
	kids := b.instances(array)
	b.end(kids[0], 0)
	b.end(kids[1], 3)
	b.end(kids[2], 0)
	require.Equal(t, dagbridgev1.Job_FAILED, b.job(array).GetState())
	require.Equal(t, dagbridgev1.Job_UPSTREAM_FAILED, b.job(first.GetJobs()[1].GetId()).GetState())
	before := len(b.hpc.jobs)

	w.Run.TryNumber, w.Run.Uid, w.Run.Mode = 2, "u2", dagbridgev1.Run_ONLY_FAILED
	again, err := b.SubmitWorkflow(context.Background(), "somebody", w)
	require.NoError(t, err)
	repeated, err := b.SubmitWorkflow(context.Background(), "somebody", w)
	require.NoError(t, err)
	for i := range w.Tasks {
		require.Equal(t, again.GetJobs()[i].GetId(), repeated.GetJobs()[i].GetId())
	}
	require.Equal(t, array, again.GetJobs()[0].GetId())
	require.NotEqual(t, first.GetJobs()[1].GetId(), again.GetJobs()[1].GetId())
	require.Equal(t, map[string]int32{"SUCCEEDED": 2, "ACCEPTED": 1}, again.GetJobs()[0].GetCounts())
	b.look()
	require.Len(t, b.hpc.jobs, before+2, "one instance and the report")
	b.end(kids[1], 0)
	require.Equal(t, dagbridgev1.Job_SUCCEEDED, b.job(array).GetState())
	b.look()
	b.end(again.GetJobs()[1].GetId(), 0)
	run, err := b.Run(again.GetRun().GetId())
	require.NoError(t, err)
	require.Equal(t, dagbridgev1.Run_SUCCEEDED, run.GetState())
	require.Equal(t, map[string]int32{"SUCCEEDED": 4}, run.GetCounts())
	named, err := b.store.Lookup(b.job(array).GetKey(), 2)
	require.NoError(t, err)
	require.Equal(t, array, named.GetId())
}

// What an array is has changed, or all of it has failed: then it is another job.
func TestAnArrayThatIsAnotherRunsWhole(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(*dagbridgev1.Task){
		"another program": func(task *dagbridgev1.Task) { task.Command.Argv = []string{"mended"} },
		"one item more": func(task *dagbridgev1.Task) {
			task.Array.Items = append(task.Array.Items, &dagbridgev1.Array_Item{})
		},
	} {
		b := newBench(t)
		w := chain("simulate")
		w.Tasks[0].Array = &dagbridgev1.Array{Items: []*dagbridgev1.Array_Item{{}, {}}}
		first, err := b.SubmitWorkflow(context.Background(), "somebody", w)
		require.NoError(t, err)
		b.look()
		kids := b.instances(first.GetJobs()[0].GetId())
		b.end(kids[0], 0)
		b.end(kids[1], 3)
		change(w.Tasks[0])
		w.Run.TryNumber, w.Run.Mode = 2, dagbridgev1.Run_ONLY_FAILED
		again, err := b.SubmitWorkflow(context.Background(), "somebody", w)
		require.NoError(t, err)
		require.NotEqual(t, first.GetJobs()[0].GetId(), again.GetJobs()[0].GetId(), what)
		require.Equal(t, map[string]int32{"ACCEPTED": int32(len(w.Tasks[0].Array.Items))}, again.GetJobs()[0].GetCounts(), what)
	}
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
