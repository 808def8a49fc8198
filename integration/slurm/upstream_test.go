package slurmtest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/server/backend/backendtest"
	"github.com/dagbridge/dagbridge/translators"
)

// The oldest release takes a dependency on a job that it does not know for satisfied, where the wrapper looks itself; newer
// ones refuse it, which says nothing against the job: the upstream was purged, or lost.
func TestAnUpstreamThatSlurmDoesNotKnow(t *testing.T) {
	t.Parallel()
	for _, release := range releases() {
		t.Run(string(release), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, slurmtest.Start(t, slurmtest.Options{Release: release, NoAccounting: true}), ways["CLI"], nil)
			after := func(id string) translators.Submission {
				sub := held(backendtest.Submission(t, task("true")))
				sub.Depends.Terms = []translators.Dependency{{Type: translators.AfterOK, NativeID: id}}
				return sub
			}
			unknown := after("99999")
			foreign := after("99999")
			foreign.Task.Upstream = []*dagbridgev1.Edge{{Native: &dagbridgev1.NativeJob{Cluster: "test", Id: "99999"}}}
			up := b.submit(t, held(backendtest.Submission(t, task("true"))))
			down := b.submit(t, after(up.Ref.ID))
			waits := func(o backend.Observation) bool {
				return o.DependenciesKnown && len(o.Dependencies) == 1 && o.Dependencies[0] == up.Ref.ID
			}
			b.await(t, down, "waiting for its upstream", waits)
			rewrite := []backend.Change{{Ref: down.Ref, Job: down.Job, Depends: &unknown.Depends, Release: true}}
			if release == slurmtest.Oldest {
				for _, sub := range []translators.Submission{unknown, foreign} {
					b.submit(t, sub)
				}
				require.Equal(t, []error{nil}, b.backend.Alter(t.Context(), rewrite))
				return
			}
			result := b.try(t, unknown)
			require.Equal(t, backend.Busy, result.Outcome, result.Message)
			require.Contains(t, result.Message, "Job dependency problem: Slurm does not know what it waits for")
			result = b.try(t, foreign)
			require.Equal(t, backend.Refused, result.Outcome, result.Message)
			require.ErrorContains(t, b.backend.Alter(t.Context(), rewrite)[0], "Job dependency problem")
			o := b.await(t, down, "waiting as before", waits)
			require.True(t, o.Held, "what could not be made to wait is not released")
		})
	}
}
