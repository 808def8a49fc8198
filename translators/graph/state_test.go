package graph

import (
	"testing"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// allStates are the states as the protocol has them, so that a new one fails here.
func allStates() []dagbridgev1.Job_State {
	var all []dagbridgev1.Job_State
	values := dagbridgev1.Job_STATE_UNSPECIFIED.Descriptor().Values()
	for i := range values.Len() {
		all = append(all, dagbridgev1.Job_State(values.Get(i).Number()))
	}
	return all
}

func TestCanMove(t *testing.T) {
	t.Parallel()
	// Rows: from. Columns: to, in the protocol's order: - A S R SUCCEEDED FAILED CANCELLED SKIPPED UPSTREAM_FAILED LOST.
	want := map[dagbridgev1.Job_State]string{
		dagbridgev1.Job_STATE_UNSPECIFIED: "..........",
		accepted:                          "..xxxxxxxx",
		submitted:                         ".x.xxxxxxx",
		running:                           ".xx.xxxxxx",
		succeeded:                         "..........",
		failed:                            ".x........",
		cancelled:                         ".x........",
		skipped:                           ".x........",
		upstreamFailed:                    ".x........",
		lost:                              ".x..xxxx..",
	}
	require.Len(t, want, len(allStates()))
	for _, from := range allStates() {
		for i, to := range allStates() {
			require.Equal(t, want[from][i] == 'x', CanMove(from, to), "%v -> %v", from, to)
		}
	}
}

func TestIsTerminal(t *testing.T) {
	t.Parallel()
	for _, state := range allStates() {
		require.Equal(t, state >= succeeded, IsTerminal(state), state)
	}
}

func TestAggregate(t *testing.T) {
	t.Parallel()
	type counts = map[dagbridgev1.Job_State]int
	for _, test := range []struct {
		name   string
		counts counts
		want   dagbridgev1.Job_State
	}{
		{"no instances", counts{}, skipped},
		{"zero counts", counts{running: 0, failed: 0}, skipped},
		{"all waiting", counts{accepted: 3}, accepted},
		{"some submitted", counts{accepted: 2, submitted: 1}, submitted},
		{"some running", counts{accepted: 2, submitted: 1, running: 1}, running},
		{"live and ended", counts{submitted: 1, succeeded: 1}, running},
		{"waiting and ended", counts{accepted: 1, failed: 1}, running},
		{"a state nobody set lives", counts{dagbridgev1.Job_STATE_UNSPECIFIED: 1, succeeded: 1}, running},
		{"all well", counts{succeeded: 3}, succeeded},
		{"well and skipped", counts{succeeded: 1, skipped: 2}, succeeded},
		{"all skipped", counts{skipped: 2}, skipped},
		{"failed is worst", counts{succeeded: 1, skipped: 1, cancelled: 1, lost: 1, upstreamFailed: 1, failed: 1}, failed},
		{"then upstream_failed", counts{succeeded: 1, skipped: 1, cancelled: 1, lost: 1, upstreamFailed: 1}, upstreamFailed},
		{"then lost", counts{succeeded: 1, skipped: 1, cancelled: 1, lost: 1}, lost},
		{"then cancelled", counts{succeeded: 1, skipped: 1, cancelled: 1}, cancelled},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, Aggregate(test.counts))
		})
	}
}

func TestAggregateEndsWithItsInstances(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		states := rapid.SliceOfN(rapid.SampledFrom(allStates()[1:]), 1, 10).Draw(t, "states")
		counts, ended := map[dagbridgev1.Job_State]int{}, true
		for _, s := range states {
			counts[s]++
			ended = ended && IsTerminal(s)
		}
		got := Aggregate(counts)
		require.Equal(t, ended, IsTerminal(got))
		if ended {
			require.Positive(t, counts[got], "an end is the end of some instance")
		}
	})
}
