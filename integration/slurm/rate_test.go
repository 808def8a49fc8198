package slurmtest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/server/backend/backendtest"
	"github.com/dagbridge/dagbridge/translators"
)

// A slurmctld that limits the rate of calls is given time: the rest of a submission waits, and goes in once, all of it.
func TestASlurmctldThatLimitsTheRateIsGivenTime(t *testing.T) {
	t.Parallel()
	c := slurmtest.Start(t, slurmtest.Options{
		Release: slurmtest.Newest, NoAccounting: true,
		Set: []string{"SlurmctldParameters=rl_enable,rl_bucket_size=4,rl_refill_rate=4,rl_refill_period=1"},
	})
	require.Contains(t, c.Run(t, "scontrol", "show", "config"), "rl_enable")
	b := newBench(t, c, ways["REST"], nil)
	const count = 40
	var waiting []translators.Submission
	for range count {
		waiting = append(waiting, held(backendtest.Submission(t, task("true"))))
	}
	var in []backend.Known
	limited := 0
	require.Eventually(t, func() bool {
		var rest []translators.Submission
		for i, result := range b.backend.Submit(t.Context(), waiting) {
			if result.Outcome == backend.Limited {
				require.Positive(t, result.RetryAfter)
				limited++
				rest = append(rest, waiting[i])
				continue
			}
			require.Equal(t, backend.Submitted, result.Outcome, result.Message)
			in = append(in, backend.Known{Ref: result.Ref, Job: waiting[i].Job})
		}
		waiting = rest
		return len(waiting) == 0
	}, patience, time.Second)
	require.Positive(t, limited, "slurmctld has not limited anything: this has tested nothing")
	names := c.Run(t, "squeue", "--noheader", "--format=%j")
	for _, known := range in {
		require.Equal(t, 1, strings.Count(names, known.Ref.Token))
	}
	require.Len(t, strings.Fields(names), count)
	for _, err := range b.backend.Cancel(t.Context(), in) {
		require.NoError(t, err)
	}
}
