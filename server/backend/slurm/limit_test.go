package slurm

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/server/backend/backendtest"
	"github.com/dagbridge/dagbridge/translators"
	"github.com/dagbridge/dagbridge/translators/slurm"
)

// taking is a way that takes every job, in a time of its own.
type taking struct {
	witnesses
	patience time.Duration
	taken    atomic.Int64
}

func (w *taking) submit(context.Context, string, *slurm.Job) answer {
	time.Sleep(w.patience)
	return answer{outcome: backend.Submitted, id: fmt.Sprint(w.taken.Add(1))}
}

// tally submits so many jobs and counts the outcomes.
func tally(t *testing.T, b *Backend, n int) (outcomes map[backend.Outcome]int, waits []time.Duration) {
	t.Helper()
	submissions := make([]translators.Submission, n)
	for i := range submissions {
		submissions[i] = backendtest.Submission(t, &dagbridgev1.Task{Command: &dagbridgev1.Command{Argv: []string{"true"}}})
	}
	outcomes = map[backend.Outcome]int{}
	for _, r := range b.Submit(t.Context(), submissions) {
		if outcomes[r.Outcome]++; r.Outcome == backend.Limited {
			require.NotEmpty(t, r.Message)
			require.Positive(t, r.RetryAfter)
			waits = append(waits, r.RetryAfter)
		}
	}
	return outcomes, waits
}

func newTaking(t *testing.T, patience time.Duration) *Backend {
	w := &taking{patience: patience}
	b := newWitnessed(t, &w.witnesses)
	b.orders, b.site.User = w, myName(t)
	return b
}

func TestSubmissionsKeepToTheirRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newTaking(t, 0)
		b.submitRate.perSecond = 10
		outcomes, waits := tally(t, b, 25)
		require.Equal(t, map[backend.Outcome]int{backend.Submitted: 10, backend.Limited: 15}, outcomes)
		for i, wait := range waits {
			require.InDelta(t, float64(i+1)/10, wait.Seconds(), 0.02, "each has its turn")
		}
		began := time.Now()
		sent := 0
		for time.Since(began) < time.Minute {
			time.Sleep(time.Second)
			outcomes, _ = tally(t, b, 25)
			sent += outcomes[backend.Submitted]
		}
		require.InDelta(t, 600, sent, 10)
	})
}

func TestARateIsEachUsersOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := submitRate{perSecond: 0.5}
		waits := r.turns([]string{"a", "a", "b", "a", "b"})
		for i, want := range []float64{0, 2, 0, 4, 2} {
			require.InDelta(t, want, waits[i].Seconds(), 0.01, "%v", waits)
		}
		require.Equal(t, make([]time.Duration, 2), new(submitRate).turns([]string{"a", "a"}), "without a rate all go")
	})
}

// A slurmctld that limits the rate of calls by itself makes its clients wait; they do not say so.
func TestASlurmctldThatIsSlowIsLeftAloneForAMoment(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		outcomes, waits := tally(t, newTaking(t, 3*time.Second), 100)
		require.Equal(t, map[backend.Outcome]int{backend.Submitted: concurrency, backend.Limited: 100 - concurrency}, outcomes)
		require.Equal(t, slowPause, waits[0])
		outcomes, _ = tally(t, newTaking(t, 100*time.Millisecond), 100)
		require.Equal(t, map[backend.Outcome]int{backend.Submitted: 100}, outcomes)
	})
}
