package engine

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators/graph"
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

// What has to succeed counts first, whatever the rule says of the others.
func TestWhatHasToSucceed(t *testing.T) {
	t.Parallel()
	for code, want := range map[int32]dagbridgev1.Job_State{0: dagbridgev1.Job_SUBMITTED, 3: dagbridgev1.Job_UPSTREAM_FAILED, 99: dagbridgev1.Job_SKIPPED} {
		for _, rule := range graph.Rules() {
			t.Run(fmt.Sprintf("%d, %s", code, rule), func(t *testing.T) {
				t.Parallel()
				b := newBench(t)
				w := chain("make", "work", "more")
				w.Tasks[0].SkipExitCodes = []int32{99}
				w.Tasks[1].Upstream, w.Tasks[1].SkipExitCodes = nil, []int32{99}
				w.Tasks[2].TriggerRule = rule
				w.Tasks[2].Upstream = append(w.Tasks[2].Upstream, &dagbridgev1.Edge{Task: "make", Condition: dagbridgev1.Edge_SUCCEEDED})
				resp, err := b.SubmitWorkflow(context.Background(), "somebody", w)
				require.NoError(t, err)
				more := func() dagbridgev1.Job_State { return b.job(resp.GetJobs()[2].GetId()).GetState() }
				b.look()
				b.end(resp.GetJobs()[1].GetId(), map[string]int32{graph.AllFailed: 3, graph.OneFailed: 3, graph.AllSkipped: 99}[rule])
				b.look()
				require.Equal(t, dagbridgev1.Job_ACCEPTED, more())
				b.end(resp.GetJobs()[0].GetId(), code)
				b.look()
				require.Equal(t, want, more())
			})
		}
	}
}
