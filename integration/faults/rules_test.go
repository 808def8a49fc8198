package faults

import (
	"testing"

	"github.com/stretchr/testify/require"

	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// TestRules has trigger rules meet failures, branches and cancels, in a Slurm that leaves what can never start in its queue, and
// in one that cancels it. What can never run ends at once, by the name of the upstream that kept it, and nothing of it stays
// in the queue.
func TestRules(t *testing.T) {
	t.Parallel()
	for site, lines := range map[string][]string{
		"leaves": nil, "cancels": {"DependencyParameters=kill_invalid_depend"},
	} {
		t.Run("the site "+site+" what can never start", func(t *testing.T) {
			onReleases(t, slurmtest.Options{Set: lines}, func(t *testing.T, c *slurmtest.Cluster) {
				for _, way := range []string{"rest", "cli"} {
					t.Run(way, func(t *testing.T) {
						t.Parallel()
						endsByRule(t, c, newRig(t, c, reach(t, c, way)))
					})
					t.Run("cancel/"+way, func(t *testing.T) {
						t.Parallel()
						cancelsMany(t, newRig(t, c, reach(t, c, way)))
					})
				}
			})
		})
	}
}

func endsByRule(t *testing.T, c *slurmtest.Cluster, r *rig) {
	r.rules()
	r.add("chain", r.task("extract", nil, r.fails),
		r.task("train", []string{"extract"}, becomes(dagbridgev1.Job_UPSTREAM_FAILED, 0)),
		r.task("report", []string{"train"}, becomes(dagbridgev1.Job_UPSTREAM_FAILED, 0)))
	r.branch(`["x"]`)
	r.branch(`[]`)
	r.submit(t)
	sum := r.finish(t, c)
	require.Equal(t, r.programs, sum.programs)
	require.Contains(t, r.one(t, "train").GetMessage(), "upstream extract is FAILED")
}

// branch chooses x, or nothing; y never. The joins behind it have a rule each.
func (w *workload) branch(chosen string) {
	skipped := becomes(dagbridgev1.Job_SKIPPED, 0)
	ifX := func(task *dagbridgev1.Task) {
		if chosen != `["x"]` {
			skipped(task)
		}
	}
	unless := func(name string) edit {
		return func(task *dagbridgev1.Task) {
			task.SkipUnless = &dagbridgev1.SkipUnless{Task: "branch", Output: "chosen", Contains: name}
		}
	}
	w.add("branch",
		w.task("branch", nil, func(task *dagbridgev1.Task) {
			task.Command = w.program(`printf '{"chosen": %s}' '` + chosen + `' >$DAGBRIDGE_OUTPUT`)
		}),
		w.task("x", []string{"branch"}, unless("x"), ifX),
		w.task("y", []string{"branch"}, unless("y"), skipped),
		w.task("all_success", []string{"x", "y"}, skipped),
		w.task("none_failed", []string{"x", "y"}, rule("none_failed")),
		w.task("min_one_success", []string{"x", "y"}, rule("none_failed_min_one_success"), ifX),
		w.task("all_done", []string{"x", "y"}, rule("all_done")),
		w.task("one_success", []string{"x", "y"}, rule("one_success"), ifX))
}

// cancelsMany cancels what has ended, what runs, what waits and what there never was, in one call: each is answered for.
func cancelsMany(t *testing.T, r *rig) {
	r.add("cancels",
		r.task("finished", nil),
		r.task("running", nil, func(task *dagbridgev1.Task) { task.Command = r.program("sleep 600") }),
		r.task("pending", nil, func(task *dagbridgev1.Task) {
			task.Slurm.Options = map[string]string{"begin": "now+1hour"}
		}))
	r.submit(t)
	r.awaitOne(t, "finished", "finished", func(job *dagbridgev1.Job) bool { return job.GetState() == dagbridgev1.Job_SUCCEEDED })
	r.awaitOne(t, "running", "running", running)
	r.awaitOne(t, "pending", "pending", func(job *dagbridgev1.Job) bool { return job.GetReason() == "BeginTime" })

	results, err := r.engine.Cancel(t.Context(), nil)
	require.NoError(t, err)
	require.Empty(t, results)
	results, err = r.engine.Cancel(t.Context(), append([]string{"703"}, r.ids...))
	require.NoError(t, err)
	for i, want := range []string{"NOT_FOUND", "OK", "OK", "OK"} {
		require.Equal(t, want, results[i].GetStatus())
	}
	require.NotNil(t, r.one(t, "running").GetCancelRequestTime())
	r.awaitEnd(t)
	require.Equal(t, dagbridgev1.Job_SUCCEEDED, r.one(t, "finished").GetState())
	require.Equal(t, dagbridgev1.Job_CANCELLED, r.one(t, "running").GetState())
	pending := r.one(t, "pending")
	require.Equal(t, dagbridgev1.Job_CANCELLED, pending.GetState())
	require.Nil(t, pending.GetStartTime(), "it never started")
	require.NotNil(t, pending.GetEndTime())
}
