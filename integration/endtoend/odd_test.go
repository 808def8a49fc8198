package endtoend_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	gatewaytest "github.com/dagbridge/dagbridge/integration/gateway"
	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// Whatever tasks are called, their environments hold and their scripts weigh: those that go in together keep them byte for byte,
// also when the gateway is killed meanwhile. Of the native array that they share nobody sees a job.
func TestOddTasksGoInTogether(t *testing.T) {
	names := []string{
		"a/b", "../up", "-rf", "sim", "sim.1", "sim_1", "50% off? #1 & more=2", `'single' "double" $(id) \ back`, "名前 ü 🙂",
		strings.Repeat("x", 1023) + "1", strings.Repeat("x", 1023) + "2",
	}
	odd := "tab\tline\nquotes'\"` $HOME \\ \u0001\u00ff \u2028 end "
	program := `printf %s "$ODD"; printf 'task=%s\n' "$DAGBRIDGE_TASK" > "$DAGBRIDGE_OUTPUT"`
	var tasks []any
	for i, name := range names {
		task := map[string]any{
			"key": map[string]any{"task": name}, "env": map[string]string{"ODD": odd + name},
			"command": map[string]any{"argv": []string{"sh", "-c", "sleep 1; " + program}},
		}
		if i == 3 { // three MiB of text
			delete(task, "command")
			task["script"] = map[string]any{"text": "#!/bin/sh\n" + strings.Repeat("# "+strings.Repeat("s", 1021)+"\n", 3<<10) + program}
		}
		tasks = append(tasks, task)
	}
	text, err := json.Marshal(map[string]any{"name": "odd", "cluster": "hpc", "tasks": tasks})
	require.NoError(t, err)

	g := gatewaytest.New(t, slurmtest.Shared(t), "rest")
	g.Dagbridge(t, 0, "run", "--run", "odd", "-f", write(t, "odd.json", string(text)))
	g.Kill()
	g.Start(t)
	var jobs []*dagbridgev1.Job
	require.Eventually(t, func() bool {
		jobs = list(t, g, "odd", "odd")
		for _, job := range jobs {
			if job.GetEndTime() == nil {
				return false
			}
		}
		return true
	}, 2*deadline, 200*time.Millisecond)
	require.Len(t, jobs, len(names), "the array itself is nobody's job")
	bases := map[string]bool{}
	for _, job := range jobs {
		name := job.GetKey().GetTask()
		require.Equal(t, dagbridgev1.Job_SUCCEEDED, job.GetState(), "%.40s: %s", name, job.GetMessage())
		require.Equal(t, odd+name, g.Dagbridge(t, 0, "logs", job.GetId()))
		quoted, err := json.Marshal(name)
		require.NoError(t, err)
		code, body := g.Get(t, "/v1/orchestrators/"+url.PathEscape(job.GetKey().GetOrchestrator())+"/workflows/odd/runs/odd/tasks/"+url.PathEscape(name)+"/job/outputs/task")
		require.Equal(t, 200, code, "%.40s: %s", name, body)
		require.JSONEq(t, string(quoted), body)
		base, _, inArray := strings.Cut(job.GetNativeId(), "_")
		require.True(t, inArray)
		bases[base] = true
		found := jobsOf(t, g, "nativeId="+job.GetNativeId())
		require.Len(t, found, 1)
		require.Equal(t, job.GetId(), found[0].GetId())
	}
	require.Len(t, bases, 1, "one submission for all")
	for base := range bases {
		require.Len(t, jobsOf(t, g, "nativeId="+base), len(names))
	}
}
