package airflowtest

import (
	"fmt"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// crowd: a hundred tasks that are deferred at once cost the gateway one stream, as there is one triggerer; marked, all are cancelled.
func (r *rig) crowd(t *testing.T) {
	const tasks = 100
	run := r.Trigger(t, "crowd", "crowd", map[string]any{"tasks": tasks})
	states := func() map[string]int {
		n := map[string]int{}
		for _, ti := range run.Tasks(t) {
			if ti.TaskID == "crowd" && ti.MapIndex >= 0 {
				n[ti.State]++
			}
		}
		return n
	}
	for so := 20; so <= tasks; so += 20 { // each takes a process for a moment, which is long for all of them
		Eventually(t, func() bool { return states()["deferred"] >= so }, "%d are not deferred: %v", so, lazily(func() string { return fmt.Sprint(states()) }))
	}
	for _, ti := range run.Tasks(t) {
		if ti.TaskID == "crowd" {
			ti.AwaitTriggered(t)
		}
	}
	watches := regexp.MustCompile(`(?m)^dagbridge_streams_open\{method="[^"]*WatchJobs"\} (\d+)$`)
	Eventually(t, func() bool {
		_, text := r.g.Get(t, "/metrics")
		found := watches.FindStringSubmatch(text)
		return found != nil && found[1] == "1"
	}, "there is not one stream: %s", lazily(func() string { _, text := r.g.Get(t, "/metrics"); return text }))
	run.Mark(t, "failed")
	Eventually(t, func() bool {
		return !slices.ContainsFunc(r.jobs(t, run), func(job *dagbridgev1.Job) bool { return job.GetState() != dagbridgev1.Job_CANCELLED })
	}, "not all are cancelled: %v", lazily(func() string { return fmt.Sprint(r.jobs(t, run)) }))
	// On a busy machine Airflow takes a worker for dead now and then, and tries once more: one job each try, none else.
	jobs, tried := r.jobs(t, run), map[string]bool{}
	indices := map[int32]bool{}
	for _, job := range jobs {
		indices[job.GetKey().GetMapIndex()[0]] = true
		tried[fmt.Sprint(job.GetKey().GetMapIndex(), job.GetTryNumber())] = true
	}
	require.Len(t, indices, tasks)
	require.Len(t, tried, len(jobs))
	Eventually(t, func() bool { return len(r.accounted(t, "crowd")) >= len(jobs) }, "the accounting lacks jobs")
	require.Len(t, r.accounted(t, "crowd"), len(jobs))
}

// hasty: jobs that are over when their tasks are deferred, or a moment later, do not fail them: Airflow 3.3 fails tasks that are
// resumed before it has heard that they were deferred.
func (r *rig) hasty(t *testing.T) {
	run := r.Trigger(t, "hasty", "hasty", nil)
	run.Await(t, "success")
	for _, ti := range run.Tasks(t) {
		want := map[string]string{"hasty": "success", "resumed": "skipped"}[ti.TaskID]
		require.Equal(t, want, ti.State, "%s[%d]", ti.TaskID, ti.MapIndex)
		require.Equal(t, 1, ti.TryNumber, "%s[%d]", ti.TaskID, ti.MapIndex)
	}
	natives := map[string]map[string]string{"hasty": {}, "resumed": {}}
	for _, job := range r.jobs(t, run) {
		task := job.GetKey().GetTask()
		natives[task][job.GetNativeId()] = map[string]string{"hasty": "COMPLETED", "resumed": "FAILED"}[task]
	}
	for task, want := range natives {
		require.Len(t, want, 20, task)
		r.awaitAccounted(t, task, want)
	}
}
