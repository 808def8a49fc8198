package graph

import (
	"testing"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

func workflow(t testing.TB, text string) *dagbridgev1.Workflow {
	t.Helper()
	w := &dagbridgev1.Workflow{}
	require.NoError(t, protojson.Unmarshal([]byte(text), w))
	return w
}

func TestNormalize(t *testing.T) {
	t.Parallel()
	const defaults = `"maxTries": 1, "retryWindow": "3600s", "launch": "ONCE", "atMostOnce": true`
	const policies = `"waitFor": "ACCEPTED", "onConflict": "REFUSE", "ifLive": "ATTACH"`
	for _, test := range []struct{ name, in, want string }{
		{
			"a run left out",
			`{"name": "ml", "tasks": [{"key": {"task": "a"}}]}`,
			`{"name": "ml", "run": {"deployment": "default", "orchestrator": "cli", "workflow": "ml", "tryNumber": 1, "mode": "ALL"}, ` + policies + `,
			  "tasks": [{"key": {"deployment": "default", "orchestrator": "cli", "workflow": "ml", "task": "a"}, "tryNumber": 1,
			    "triggerRule": "all_success", "resources": {"nodes": 1, "tasksPerNode": 1}, ` + defaults + `}]}`,
		},
		{
			"a run left out by a task that is somebody's",
			`{"tasks": [{"key": {"orchestrator": "airflow", "workflow": "risk", "run": "r", "task": "a"}}]}`,
			`{"run": {"deployment": "default", "tryNumber": 1, "mode": "ALL"}, ` + policies + `,
			  "tasks": [{"key": {"deployment": "default", "orchestrator": "airflow", "workflow": "risk", "run": "r", "task": "a"}, "tryNumber": 1,
			    "triggerRule": "all_success", "resources": {"nodes": 1, "tasksPerNode": 1}, ` + defaults + `}]}`,
		},
		{
			"what a task lacks is the run's",
			`{"run": {"deployment": "d", "orchestrator": "airflow", "workflow": "risk", "run": "r1", "tryNumber": 2, "uid": "u", "parent": {"task": "p"}},
			  "cluster": "hpc", "waitFor": "TERMINAL", "onConflict": "ATTACH", "ifLive": "REPLACE", "tasks": [{"key": {"task": "a"}}]}`,
			`{"run": {"deployment": "d", "orchestrator": "airflow", "workflow": "risk", "run": "r1", "tryNumber": 2, "uid": "u", "mode": "ALL",
			    "parent": {"deployment": "default", "task": "p"}},
			  "cluster": "hpc", "waitFor": "TERMINAL", "onConflict": "ATTACH", "ifLive": "REPLACE",
			  "tasks": [{"key": {"deployment": "d", "orchestrator": "airflow", "workflow": "risk", "run": "r1", "task": "a"}, "tryNumber": 2, "uid": "u",
			    "cluster": "hpc", "triggerRule": "all_success", "resources": {"nodes": 1, "tasksPerNode": 1}, ` + defaults + `}]}`,
		},
		{
			"a pause is never capped below the first",
			`{"run": {"orchestrator": "o", "workflow": "w", "run": "r"}, "tasks": [{"key": {"task": "a"}, "retry": {}}, {"key": {"task": "b"}, "retry": {"backoff": "3600s"}}]}`,
			`{"run": {"deployment": "default", "orchestrator": "o", "workflow": "w", "run": "r", "tryNumber": 1, "mode": "ALL"}, ` + policies + `,
			  "tasks": [{"key": {"deployment": "default", "orchestrator": "o", "workflow": "w", "run": "r", "task": "a"}, "tryNumber": 1, "retry": {"backoff": "30s", "maxBackoff": "600s"},
			    "triggerRule": "all_success", "resources": {"nodes": 1, "tasksPerNode": 1}, ` + defaults + `},
			   {"key": {"deployment": "default", "orchestrator": "o", "workflow": "w", "run": "r", "task": "b"}, "tryNumber": 1, "retry": {"backoff": "3600s", "maxBackoff": "3600s"},
			    "triggerRule": "all_success", "resources": {"nodes": 1, "tasksPerNode": 1}, ` + defaults + `}]}`,
		},
		{
			"what is there stays",
			`{"run": {}, "tasks": [{"key": {"deployment": "d", "orchestrator": "o", "workflow": "w", "run": "r", "task": "a"}, "tryNumber": 3, "uid": "u",
			    "maxTries": 4, "retryWindow": "1s", "cluster": "c", "launch": "PER_TASK", "atMostOnce": false, "triggerRule": "one_done",
			    "resources": {"nodes": 2, "tasksPerNode": 3, "gpus": [{"count": 4}]}, "retry": {"maxRetries": 1, "backoff": "1s", "maxBackoff": "2s"},
			    "upstream": [{"key": {"deployment": "e", "task": "x"}, "instances": "SAME_INDEX"}]}]}`,
			`{"run": {"deployment": "default", "tryNumber": 1, "mode": "ALL"}, ` + policies + `,
			  "tasks": [{"key": {"deployment": "d", "orchestrator": "o", "workflow": "w", "run": "r", "task": "a"}, "tryNumber": 3, "uid": "u",
			    "maxTries": 4, "retryWindow": "1s", "cluster": "c", "launch": "PER_TASK", "atMostOnce": false, "triggerRule": "one_done",
			    "resources": {"nodes": 2, "tasksPerNode": 3, "gpus": [{"count": 4}]}, "retry": {"maxRetries": 1, "backoff": "1s", "maxBackoff": "2s"},
			    "upstream": [{"key": {"deployment": "e", "task": "x"}, "instances": "SAME_INDEX"}]}]}`,
		},
		{
			"inner parts",
			`{"run": {}, "tasks": [{"resources": {"gpus": [{"type": "a100"}]}, "retry": {"maxRetries": 1}, "teardown": {},
			    "upstream": [{"task": "b"}, {"key": {"task": "x"}}]}]}`,
			`{"run": {"deployment": "default", "tryNumber": 1, "mode": "ALL"}, ` + policies + `,
			  "tasks": [{"key": {"deployment": "default"}, "tryNumber": 1, ` + defaults + `, "triggerRule": "all_done_setup_success", "teardown": {},
			    "resources": {"nodes": 1, "tasksPerNode": 1, "gpus": [{"type": "a100", "count": 1}]},
			    "retry": {"maxRetries": 1, "backoff": "30s", "maxBackoff": "600s"},
			    "upstream": [{"task": "b", "instances": "ALL"}, {"key": {"deployment": "default", "task": "x"}, "instances": "ALL"}]}]}`,
		},
		{
			"selected tasks",
			`{"run": {}, "tasksSelected": ["b", "zz"], "tasks": [{"key": {"task": "a"}}, {"key": {"task": "b"}, "upstream": [{"task": "a"}, {"task": "b"}]}]}`,
			`{"run": {"deployment": "default", "tryNumber": 1, "mode": "ALL"}, ` + policies + `, "tasksSelected": ["b", "zz"],
			  "tasks": [{"key": {"deployment": "default", "task": "b"}, "tryNumber": 1, ` + defaults + `, "triggerRule": "all_success",
			    "resources": {"nodes": 1, "tasksPerNode": 1}, "upstream": [{"task": "a", "instances": "ALL", "optional": true}, {"task": "b", "instances": "ALL"}]}]}`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			in := workflow(t, test.in)
			before := proto.CloneOf(in)
			got := Normalize(in)
			require.True(t, proto.Equal(before, in), "the input is left alone")
			require.True(t, proto.Equal(workflow(t, test.want), got), protojson.Format(got))
			require.True(t, proto.Equal(got, Normalize(got)), "once is enough")
		})
	}
}

func TestNormalizeTakesAnything(t *testing.T) {
	t.Parallel()
	require.Equal(t, "default", Normalize(nil).GetRun().GetDeployment())
	w := Normalize(&dagbridgev1.Workflow{Tasks: []*dagbridgev1.Task{nil, {Upstream: []*dagbridgev1.Edge{nil}}}})
	require.Len(t, w.GetTasks(), 2)
	require.NotEmpty(t, Check(w, func(*dagbridgev1.TaskKey) bool { return false }))
}

// A set-up, work, more work beside it, and the tear-down, which names only the set-up and the last of the work.
func TestTeardownWaitsForItsScope(t *testing.T) {
	t.Parallel()
	scope := func(rule string) []string {
		tasks := dag("before", "make! < before", "w1 < make", "w2 < make", "last one_success < w1 w2", "aside < before", "drop "+rule+" < last", "after < drop")
		tasks[6].Teardown = &dagbridgev1.Teardown{Of: []string{"make"}}
		w := Normalize(&dagbridgev1.Workflow{Tasks: tasks})
		var waits []string
		for _, e := range w.GetTasks()[6].GetUpstream() {
			waits = append(waits, from(w.GetTasks()[6], e))
		}
		return waits
	}
	require.Equal(t, []string{"last", "make", "w1", "w2"}, scope(AllDoneSetupSuccess))
	require.Equal(t, []string{"last", "make", "w1", "w2"}, scope(AllDone))
	require.Equal(t, []string{"last", "make"}, scope(AllSuccess))
}

// make -> w1 -> w2 -> drop, the tear-down of make.
func TestTeardownDecides(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name         string
		make, w1, w2 dagbridgev1.Job_State
		want         Decision
	}{
		{"work failed, the rest not settled", succeeded, failed, accepted, Wait},
		{"work failed", succeeded, failed, upstreamFailed, Run},
		{"work cancelled", succeeded, cancelled, upstreamFailed, Run},
		{"set-up failed", failed, upstreamFailed, upstreamFailed, UpstreamFail},
		{"set-up skipped", skipped, skipped, skipped, Skip},
	} {
		var c Counts
		c.Add(test.make, true)
		c.Add(test.w1, false)
		c.Add(test.w2, false)
		require.Equal(t, test.want, Decide(AllDoneSetupSuccess, c), test.name)
	}
}
