package airflowtest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// killed: the gateway, a worker, the triggerer and the scheduler with all its workers die by SIGKILL while tasks wait, in the
// triggerer, in a worker, and on the way from one to the other, and the triggerer is stopped as well. Every task has one native
// job, and ends as that does.
func (r *rig) killed(t *testing.T) {
	gates := r.gates(t)
	run := r.Trigger(t, "killed", "killed", map[string]any{"gates": string(gates)})
	natives := map[string]string{}
	for task, state := range map[string]string{
		"killed_before": "deferred", "killed_meanwhile": "deferred", "killed_working": "running", "killed_submitting": "running",
	} {
		natives[task] = r.awaitRunning(t, run, task).GetNativeId()
		run.AwaitTask(t, task, state)
	}
	// goesOn waits until a try, which runs in a worker, has gone on with the job of the first.
	goesOn := func(task string, try int) {
		Eventually(t, func() bool {
			ti := run.Task(t, task)
			return ti.TryNumber == try && ti.State == "running" && ti.PID != 0 && r.try(t, run, task, try).GetNativeId() == natives[task]
		}, "%s has no try %d that goes on with job %s: %v", task, try, natives[task], lazily(func() string { return run.told(t) }))
	}

	r.g.Kill()
	r.g.Launch(t)
	run.Task(t, "killed_working").KillWorker(t)
	run.Task(t, "killed_submitting").KillWorker(t)
	goesOn("killed_working", 2)
	goesOn("killed_submitting", 2)

	// A job ends while nobody is there to hear it; a task resumes while the scheduler is away.
	r.Kill(t, "triggerer")
	gates.open(t, "killed_before")
	r.Launch(t, "triggerer")
	run.AwaitTask(t, "killed_before", "success")
	natives["killed_after"] = r.awaitRunning(t, run, "killed_after").GetNativeId()
	run.AwaitTask(t, "killed_after", "deferred")
	r.Kill(t, "scheduler")
	r.Stop(t, "triggerer") // as when a new version is rolled out: what it waits for is left alone
	gates.open(t, "killed_meanwhile")
	r.Launch(t, "triggerer")
	r.Launch(t, "scheduler")
	goesOn("killed_working", 3)
	goesOn("killed_submitting", 3)

	for task := range natives {
		gates.open(t, task)
	}
	run.Await(t, "success")
	for task, native := range natives {
		r.awaitAccounted(t, task, map[string]string{native: "COMPLETED"})
		require.JSONEq(t, `{"try": 1}`, run.Task(t, task).XCom(t, "return_value"), task)
	}
}
