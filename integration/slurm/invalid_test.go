package slurmtest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/server/backend/backendtest"
	"github.com/dagbridge/dagbridge/translators"
)

// Where the site has jobs cancelled whose dependency can never hold, ours say themselves that they are not to be: it is for the
// gateway to end them, or to give them another upstream.
func TestASiteThatCancelsWhatCanNeverRun(t *testing.T) {
	t.Parallel()
	for _, release := range releases() {
		t.Run(string(release), func(t *testing.T) {
			t.Parallel()
			c := slurmtest.Start(t, slurmtest.Options{
				Release: release, NoAccounting: true, Set: []string{"DependencyParameters=kill_invalid_depend"},
			})
			require.Contains(t, c.Run(t, "scontrol", "show", "config"), "kill_invalid_depend")
			for _, name := range apart {
				t.Run(name, func(t *testing.T) { neverCancelledByTheSite(t, newBench(t, c, ways[name], nil)) })
			}
		})
	}
}

func neverCancelledByTheSite(t *testing.T, b *bench) {
	after := func(up backend.Known) backend.Known {
		sub := backendtest.Submission(t, task("true"))
		sub.Depends.Terms = []translators.Dependency{{Type: translators.AfterOK, NativeID: up.Ref.ID}}
		return b.submit(t, sub)
	}
	first := held(backendtest.Submission(t, task("sh", "-c", "exit 3")))
	up := b.submit(t, first)
	down := after(up)
	plain := b.Run(t, "sbatch", "--parsable", "--output=/dev/null", "--dependency=afterok:"+up.Ref.ID, "--wrap=true")
	require.Equal(t, []error{nil}, b.backend.Alter(t.Context(), []backend.Change{{Ref: up.Ref, Job: up.Job, Release: true}}))
	b.await(t, up, "FAILED", is(dagbridgev1.Job_FAILED))
	b.await(t, down, "never to start", func(o backend.Observation) bool { return o.NeverSatisfied })
	require.Eventually(t, func() bool {
		return b.Run(t, "squeue", "--noheader", "--states=all", "--jobs="+plain, "--format=%T") == "CANCELLED"
	}, patience, 200*time.Millisecond, "the site does so with others")
	b.await(t, down, "there still", func(o backend.Observation) bool { return o.NeverSatisfied })

	again := b.submit(t, held(backendtest.Submission(t, task("true"))))
	depends := translators.Dependencies{Terms: []translators.Dependency{{Type: translators.AfterOK, NativeID: again.Ref.ID}}}
	require.Equal(t, []error{nil, nil}, b.backend.Alter(t.Context(), []backend.Change{
		{Ref: down.Ref, Job: down.Job, Depends: &depends}, {Ref: again.Ref, Job: again.Job, Release: true},
	}))
	b.await(t, down, "SUCCEEDED", is(dagbridgev1.Job_SUCCEEDED))
}
