package engine

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// Behind a branch, what joins it again runs or is skipped as its rule says, and not before it may.
func TestJoinsBehindABranch(t *testing.T) {
	t.Parallel()
	const waits, runs, skips = "waits", "runs", "is skipped"
	for chosen, want := range map[string]map[string][2]string{ // by rule: while x still runs, and in the end
		`["x"]`: {
			"none_failed": {waits, runs}, "none_failed_min_one_success": {waits, runs}, "all_done": {waits, runs},
			"one_success": {waits, runs}, "all_success": {skips, skips},
		},
		`[]`: {
			"none_failed": {runs, runs}, "none_failed_min_one_success": {skips, skips}, "all_done": {runs, runs},
			"one_success": {skips, skips}, "all_success": {skips, skips},
		},
	} {
		t.Run(chosen, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			w := chain("branch", "x", "y")
			w.Tasks[2].Upstream = []*dagbridgev1.Edge{{Task: "branch"}}
			for _, task := range w.Tasks[1:] {
				task.SkipUnless = &dagbridgev1.SkipUnless{Task: "branch", Output: "chosen", Contains: task.GetKey().GetTask()}
			}
			for rule := range want {
				w.Tasks = append(w.Tasks, &dagbridgev1.Task{
					Key: &dagbridgev1.TaskKey{Task: rule}, Command: &dagbridgev1.Command{Argv: []string{"true"}}, TriggerRule: rule,
					Upstream: []*dagbridgev1.Edge{{Task: "x"}, {Task: "y"}},
				})
			}
			resp, err := b.SubmitWorkflow(context.Background(), "somebody", w)
			require.NoError(t, err)
			ids := map[string]string{}
			for _, job := range resp.GetJobs() {
				ids[job.GetKey().GetTask()] = job.GetId()
			}
			fate := func(task string) string {
				i := slices.IndexFunc(b.hpc.jobs, func(j *simJob) bool { return j.jobID == ids[task] })
				switch state := b.job(ids[task]).GetState(); {
				case state == dagbridgev1.Job_SKIPPED:
					return skips
				case state == dagbridgev1.Job_SUBMITTED && b.hpc.startable(b.hpc.jobs[i]):
					return runs
				}
				return waits // here, or in the scheduler
			}
			b.look()
			for rule := range want {
				require.Equal(t, waits, fate(rule), rule)
			}
			_, err = b.PutOutputs(context.Background(), ids["branch"], map[string]*dagbridgev1.Json{"chosen": {Text: chosen}})
			require.NoError(t, err)
			b.end(ids["branch"], 0)
			b.look()
			require.Equal(t, skips, fate("y"))
			for rule, states := range want {
				require.Equal(t, states[0], fate(rule), rule)
			}
			if fate("x") != skips {
				b.end(ids["x"], 0)
				b.look()
			}
			for rule, states := range want {
				require.Equal(t, states[1], fate(rule), rule)
			}
		})
	}
}
