package airflowtest

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var steps = []string{"preprocess", "train", "evaluate", "deploy"}

// chain: deferred tasks, each of which shows its job while it waits; results go from one to the next.
func (r *rig) chain(t *testing.T) {
	gates := r.gates(t)
	run := r.Trigger(t, "waiting", "manual__2026-01-01T00:00:00+00:00", map[string]any{"gate": string(gates) + "/open"})
	ti := run.AwaitTask(t, "preprocess", "deferred")
	job := r.awaitRunning(t, run, "preprocess")
	require.NotEmpty(t, job.GetNativeId())
	Eventually(t, func() bool {
		return strings.Contains(ti.XCom(t, "dagbridge_job"), `"native_id": "`+job.GetNativeId()+`"`) ||
			strings.Contains(ti.XCom(t, "dagbridge_job"), `"native_id":"`+job.GetNativeId()+`"`)
	}, "the native id %s is not shown while the task waits: %s", job.GetNativeId(), lazily(func() string { return ti.XCom(t, "dagbridge_job") }))
	require.JSONEq(t, `"hpc"`, field(t, ti.XCom(t, "dagbridge_job"), "cluster"))
	require.JSONEq(t, `"`+job.GetId()+`"`, field(t, ti.XCom(t, "dagbridge_job"), "id"))
	links := ti.Links(t)
	require.Len(t, links, 1)
	for _, link := range links {
		where, err := url.Parse(link)
		require.NoError(t, err)
		status, text := r.g.Get(t, where.Path)
		require.Equal(t, http.StatusOK, status, link)
		require.Contains(t, text, job.GetId())
	}
	Eventually(t, func() bool { return strings.Contains(ti.Log(t), "RUNNING") }, "the log of what waits does not tell that it runs: %s",
		lazily(func() string { return ti.Log(t) }))

	gates.open(t, "open")
	run.Await(t, "success")
	require.JSONEq(t, `{"rows": 9007199254740993, "ratio": 3.0}`, run.Task(t, "preprocess").XCom(t, "return_value"))
	require.Contains(t, run.Task(t, "preprocess").XCom(t, "return_value"), "9007199254740993")
	require.JSONEq(t, `{"auc": "0.91"}`, run.Task(t, "train").XCom(t, "return_value"))
	require.Contains(t, run.Task(t, "evaluate").Log(t), "evaluating 9007199254740993")
	for _, step := range steps {
		job := r.job(t, run, step)
		require.Equal(t, "manual__2026-01-01T00:00:00+00:00", job.GetKey().GetRun())
		told := run.Task(t, step).XCom(t, "dagbridge_job")
		require.JSONEq(t, `"SUCCEEDED"`, field(t, told, "state"), step)
		require.JSONEq(t, `"`+job.GetNativeId()+`"`, field(t, told, "native_id"), step)
		require.JSONEq(t, `0`, field(t, told, "exit_code"), step)
	}
}

// chained: all four jobs stand in Slurm's queue, chained, before the first has ended; Airflow's tasks are over, and a sensor waits.
func (r *rig) chained(t *testing.T) {
	gates := r.gates(t)
	run := r.Trigger(t, "chained", "chained", map[string]any{"gate": string(gates) + "/open"})
	for _, step := range steps {
		run.AwaitTask(t, step, "success")
	}
	require.Len(t, r.jobs(t, run), len(steps))
	r.awaitRunning(t, run, "preprocess")
	var before string
	for i, step := range steps {
		var id string
		Eventually(t, func() bool { id = r.job(t, run, step).GetNativeId(); return id != "" }, "%s is not in Slurm", step)
		line := r.g.Slurm.Run(t, "squeue", "-h", "-o", "%i %T %E", "-j", id)
		if i == 0 {
			require.Equal(t, id+" RUNNING (null)", line)
		} else {
			require.Equal(t, id+" PENDING afterok:"+before+"(unfulfilled)", line)
		}
		before = id
	}
	require.Contains(t, []string{"deferred", "scheduled", "queued", "running", ""}, run.Task(t, "ended").State)
	run.AwaitTask(t, "ended", "deferred")
	gates.open(t, "open")
	run.Await(t, "success")
	require.JSONEq(t, `{"auc": "0.91"}`, field(t, run.Task(t, "ended").XCom(t, "return_value"), "train"))
}
