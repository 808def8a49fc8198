package airflowtest

import (
	"testing"

	"github.com/stretchr/testify/require"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// marked: a task that a person marks failed takes its job with it, unless the job is to be left.
func (r *rig) marked(t *testing.T) {
	gates := r.gates(t)
	run := r.Trigger(t, "marked", "marked", map[string]any{"gates": string(gates)})
	natives := map[string]string{}
	for task, state := range map[string]string{"marked_deferred": "deferred", "marked_left": "deferred", "marked_running": "running"} {
		natives[task] = r.awaitRunning(t, run, task).GetNativeId()
		if ti := run.AwaitTask(t, task, state); state == "deferred" {
			ti.AwaitTriggered(t)
		}
	}
	for task := range natives {
		run.Task(t, task).Mark(t, "failed")
	}
	for _, task := range []string{"marked_deferred", "marked_running"} {
		r.awaitAccounted(t, task, map[string]string{natives[task]: "CANCELLED"})
		Eventually(t, func() bool { return r.job(t, run, task).GetState() == dagbridgev1.Job_CANCELLED }, "the gateway does not know that %s is cancelled", task)
		require.Equal(t, "failed", run.Task(t, task).State)
	}
	require.Equal(t, map[string]string{natives["marked_left"]: "RUNNING"}, r.accounted(t, "marked_left"))
	gates.open(t, "marked_left")
	r.awaitAccounted(t, "marked_left", map[string]string{natives["marked_left"]: "COMPLETED"})
	run.Await(t, "failed")
}

// torn: a run that a person marks failed takes the jobs of its work with it, and then runs its tear-down, which has a job.
func (r *rig) torn(t *testing.T) {
	gates := r.gates(t)
	gates.open(t, "torn_set_up")
	gates.open(t, "torn_down")
	run := r.Trigger(t, "torn", "torn", map[string]any{"gates": string(gates)})
	work := r.awaitRunning(t, run, "torn_work").GetNativeId()
	run.AwaitTask(t, "torn_work", "deferred").AwaitTriggered(t)
	run.Mark(t, "failed")
	r.awaitAccounted(t, "torn_work", map[string]string{work: "CANCELLED"})
	run.AwaitTask(t, "torn_down", "success")
	r.awaitAccounted(t, "torn_down", map[string]string{r.job(t, run, "torn_down").GetNativeId(): "COMPLETED"})
	require.Equal(t, "failed", run.Task(t, "torn_work").State)
}

// cleared: what has succeeded and what waits after it run once more, and what waited is cancelled first.
func (r *rig) cleared(t *testing.T) {
	gates := r.gates(t)
	gates.open(t, "cleared_first")
	run := r.Trigger(t, "cleared", "cleared", map[string]any{"gates": string(gates)})
	second := r.awaitRunning(t, run, "cleared_second")
	run.AwaitTask(t, "cleared_second", "deferred").AwaitTriggered(t)
	first := r.job(t, run, "cleared_first")
	run.Clear(t, "cleared_first")
	// The second try may come before the cancel, and find the job live; it has one of its own all the same.
	Eventually(t, func() bool { return r.job(t, run, "cleared_second").GetId() != second.GetId() }, "there is no second job: %v",
		lazily(func() string { return run.told(t) }))
	gates.open(t, "cleared_second")
	gates.open(t, "cleared_third")
	run.Await(t, "success")
	newFirst, newSecond := r.job(t, run, "cleared_first"), r.job(t, run, "cleared_second")
	r.awaitAccounted(t, "cleared_first", map[string]string{first.GetNativeId(): "COMPLETED", newFirst.GetNativeId(): "COMPLETED"})
	r.awaitAccounted(t, "cleared_second", map[string]string{second.GetNativeId(): "CANCELLED", newSecond.GetNativeId(): "COMPLETED"})
	r.awaitAccounted(t, "cleared_third", map[string]string{r.job(t, run, "cleared_third").GetNativeId(): "COMPLETED"})
	require.JSONEq(t, `{"try": 2}`, run.Task(t, "cleared_second").XCom(t, "return_value"))
}

// again: a run that is deleted and made again under the same name is another one, although DAG, run, task and try are the same.
func (r *rig) again(t *testing.T) {
	gates := r.gates(t)
	gates.open(t, "again_only")
	natives := map[string]string{}
	for range 2 {
		run := r.Trigger(t, "again", "again", map[string]any{"gates": string(gates)})
		run.Await(t, "success")
		require.Equal(t, 1, run.Task(t, "again_only").TryNumber)
		natives[r.job(t, run, "again_only").GetNativeId()] = "COMPLETED"
		// before that a scheduler takes what it hears of the first for news of the second
		r.AwaitLogged(t, "scheduler", "TaskInstance Finished: dag_id=again, task_id=again_only")
		run.Delete(t)
	}
	require.Len(t, natives, 2)
	r.awaitAccounted(t, "again_only", natives)
}
