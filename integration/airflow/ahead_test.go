package airflowtest

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/proto/jsoncodec"
	"github.com/dagbridge/dagbridge/translators/graph"
)

// lookAhead: jobs that are handed in ahead of Airflow's turn, and what a person does meanwhile. The native jobs are counted.
func (r *rig) lookAhead(t *testing.T) {
	for name, test := range map[string]func(*testing.T){
		"claimed": r.ahead, "marked": r.aheadMarked, "cleared": r.aheadCleared, "paused": r.aheadPaused, "deleted": r.aheadDeleted, "changed": r.aheadChanged,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

// ahead: with the first job of a chain the others stand in Slurm's queue before that has ended, and each task claims its own.
func (r *rig) ahead(t *testing.T) {
	gates := r.gates(t)
	run := r.Trigger(t, "ahead", "ahead", map[string]any{"gates": string(gates)})
	natives := []string{r.awaitRunning(t, run, "ahead_first").GetNativeId()}
	for _, step := range []string{"ahead_second", "ahead_third"} {
		job := r.awaitReserved(t, run, step)
		require.Equal(t, job.GetNativeId()+" PENDING afterok:"+natives[len(natives)-1]+"(unfulfilled)", r.g.Slurm.Run(t, "squeue", "-h", "-o", "%i %T %E", "-j", job.GetNativeId()))
		require.Contains(t, []string{"", "none"}, run.Task(t, step).State, "Airflow has not come to it")
		natives = append(natives, job.GetNativeId())
	}
	for i, step := range []string{"ahead_first", "ahead_second", "ahead_third"} {
		gates.open(t, step)
		r.awaitAccounted(t, step, map[string]string{natives[i]: "COMPLETED"})
	}
	run.Await(t, "success")
	for i, step := range []string{"ahead_first", "ahead_second", "ahead_third"} {
		require.Equal(t, natives[i], r.job(t, run, step).GetNativeId())
		require.Nil(t, r.job(t, run, step).GetReserved())
		r.awaitAccounted(t, step, map[string]string{natives[i]: "COMPLETED"})
	}
}

// awaitReserved waits until a task's job stands in Slurm's queue, reserved.
func (r *rig) awaitReserved(t *testing.T, run *Run, task string) *dagbridgev1.Job {
	t.Helper()
	var job *dagbridgev1.Job
	Eventually(t, func() bool { job = r.try(t, run, task, 0); return job.GetNativeId() != "" }, "%s is not handed in ahead: %v", task,
		lazily(func() string { return run.told(t) }))
	require.NotNil(t, job.GetReserved())
	return job
}

// awaitNeverRun waits until a job has ended and left the queue that has never been eligible to run. Of such a one sacct has no line.
func (r *rig) awaitNeverRun(t *testing.T, job *dagbridgev1.Job) {
	t.Helper()
	was := &dagbridgev1.GetJobResponse{}
	Eventually(t, func() bool {
		status, text := r.g.Get(t, "/v1/jobs/"+job.GetId())
		require.Equal(t, http.StatusOK, status, text)
		require.NoError(t, jsoncodec.Unmarshal([]byte(text), was))
		return graph.IsTerminal(was.GetJob().GetState())
	}, "it has not ended: %v", was)
	require.Nil(t, was.GetJob().GetStartTime(), "%v", was)
	Eventually(t, func() bool {
		return !slices.Contains(strings.Fields(r.g.Slurm.Run(t, "squeue", "-h", "-a", "-o", "%i")), job.GetNativeId())
	}, "it is in the queue: %v", was)
}

// aheadOf is a run of a chain of two, whose first job runs and whose second is reserved.
func (r *rig) aheadOf(t *testing.T, dag string) (run *Run, g gates, first, second *dagbridgev1.Job) {
	t.Helper()
	g = r.gates(t)
	run = r.Trigger(t, dag, dag, map[string]any{"gates": string(g)})
	first = r.awaitRunning(t, run, dag+"_first")
	second = r.awaitReserved(t, run, dag+"_second")
	run.AwaitTask(t, dag+"_first", "deferred").AwaitTriggered(t)
	return run, g, first, second
}

// aheadMarked: a person says how the first ends. Its job ends, and with it what was reserved: a success has the second run anew.
func (r *rig) aheadMarked(t *testing.T) {
	for _, state := range []string{"success", "failed"} {
		dag := map[string]string{"success": "ahead_succeeded", "failed": "ahead_failed"}[state]
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			run, g, first, second := r.aheadOf(t, dag)
			g.open(t, dag+"_second")
			run.Task(t, dag+"_first").Mark(t, state)
			run.Await(t, state)
			r.awaitAccounted(t, dag+"_first", map[string]string{first.GetNativeId(): "CANCELLED"})
			r.awaitNeverRun(t, second)
			want := map[string]string{}
			if state == "success" {
				want[r.job(t, run, dag+"_second").GetNativeId()] = "COMPLETED"
			}
			r.awaitAccounted(t, dag+"_second", want)
		})
	}
}

// aheadCleared: what was reserved runs after the first's second try, and once.
func (r *rig) aheadCleared(t *testing.T) {
	run, g, first, _ := r.aheadOf(t, "ahead_cleared")
	run.Clear(t, "ahead_cleared_first")
	Eventually(t, func() bool { return r.job(t, run, "ahead_cleared_first").GetId() != first.GetId() }, "there is no second job: %v",
		lazily(func() string { return run.told(t) }))
	g.open(t, "ahead_cleared_first")
	g.open(t, "ahead_cleared_second")
	run.Await(t, "success")
	again := r.job(t, run, "ahead_cleared_first")
	r.awaitAccounted(t, "ahead_cleared_first", map[string]string{first.GetNativeId(): "CANCELLED", again.GetNativeId(): "COMPLETED"})
	second := r.job(t, run, "ahead_cleared_second")
	require.False(t, second.GetStartTime().AsTime().Before(again.GetEndTime().AsTime()), "%v runs before %v has ended", second, again)
	all := r.accounted(t, "ahead_cleared_second")
	require.Equal(t, "COMPLETED", all[second.GetNativeId()])
	delete(all, second.GetNativeId())
	require.NotContains(t, slices.Collect(maps.Values(all)), "COMPLETED")
}

// aheadPaused: while the DAG is paused nobody claims what has started by itself; its lease runs out, and later it runs anew.
func (r *rig) aheadPaused(t *testing.T) {
	run, g, first, second := r.aheadOf(t, "ahead_paused")
	r.Pause(t, "ahead_paused", true)
	g.open(t, "ahead_paused_first")
	r.awaitAccounted(t, "ahead_paused_first", map[string]string{first.GetNativeId(): "COMPLETED"})
	r.awaitAccounted(t, "ahead_paused_second", map[string]string{second.GetNativeId(): "CANCELLED"})
	Eventually(t, func() bool { return r.job(t, run, "ahead_paused_second").GetState() == dagbridgev1.Job_CANCELLED }, "the gateway does not know of it")
	require.Equal(t, "it was reserved, and nobody has claimed it", r.job(t, run, "ahead_paused_second").GetMessage())
	g.open(t, "ahead_paused_second")
	r.Pause(t, "ahead_paused", false)
	run.Await(t, "success")
	r.awaitAccounted(t, "ahead_paused_second", map[string]string{second.GetNativeId(): "CANCELLED", r.job(t, run, "ahead_paused_second").GetNativeId(): "COMPLETED"})
}

// aheadDeleted: of a run that is gone nothing goes on but what had started, and that not for long.
func (r *rig) aheadDeleted(t *testing.T) {
	run, _, first, second := r.aheadOf(t, "ahead_deleted")
	run.Mark(t, "failed") // Airflow deletes no run that is running
	r.awaitAccounted(t, "ahead_deleted_first", map[string]string{first.GetNativeId(): "CANCELLED"})
	run.Delete(t)
	r.awaitNeverRun(t, second)
	require.Empty(t, r.accounted(t, "ahead_deleted_second"))
}

// aheadChanged: a task that is another when its turn comes takes the place of what was reserved, and says so.
func (r *rig) aheadChanged(t *testing.T) {
	t.Run("pending", func(t *testing.T) {
		t.Parallel()
		run, g, first, second := r.aheadOf(t, "ahead_pending")
		g.open(t, "ahead_pending_second")
		run.Task(t, "ahead_pending_first").Mark(t, "success")
		run.Await(t, "success")
		r.awaitNeverRun(t, second)
		r.awaitAccounted(t, "ahead_pending_second", map[string]string{r.job(t, run, "ahead_pending_second").GetNativeId(): "COMPLETED"})
		require.Contains(t, run.Task(t, "ahead_pending_second").Log(t), "another job takes its place")
		require.Equal(t, map[string]string{first.GetNativeId(): "RUNNING"}, r.accounted(t, "ahead_pending_first"), "it was to be left")
		g.open(t, "ahead_pending_first")
		r.awaitAccounted(t, "ahead_pending_first", map[string]string{first.GetNativeId(): "COMPLETED"})
	})
	t.Run("started", func(t *testing.T) {
		t.Parallel()
		run, g, _, second := r.aheadOf(t, "ahead_started")
		r.Pause(t, "ahead_started", true)
		g.open(t, "ahead_started_first")
		r.awaitRunning(t, run, "ahead_started_second")
		r.Pause(t, "ahead_started", false)
		Eventually(t, func() bool { return r.job(t, run, "ahead_started_second").GetId() != second.GetId() }, "nobody claims it: %v",
			lazily(func() string { return run.told(t) }))
		g.open(t, "ahead_started_second")
		run.Await(t, "success")
		r.awaitAccounted(t, "ahead_started_second", map[string]string{second.GetNativeId(): "CANCELLED", r.job(t, run, "ahead_started_second").GetNativeId(): "COMPLETED"})
		require.Contains(t, run.Task(t, "ahead_started_second").Log(t), "it had started by then, is cancelled, and runs again")
	})
}
