package slurm

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dagbridge/dagbridge/server/backend"
)

// watched is a way that notes when the controller is looked at.
type watched struct {
	witnesses
	mu    sync.Mutex
	looks []time.Time
}

func (w *watched) watch(ctx context.Context, ids []string) ([]record, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looks = append(w.looks, time.Now())
	return w.witnesses.watch(ctx, ids)
}

// say changes what the controller says from the next look on.
func (w *watched) say(change func(*record)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.controller = []record{said(change)}
}

// pauses are those between the looks since the last call.
func (w *watched) pauses() (all []time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := 1; i < len(w.looks); i++ {
		all = append(all, w.looks[i].Sub(w.looks[i-1]))
	}
	w.looks = w.looks[max(0, len(w.looks)-1):]
	return all
}

// observing runs an Observe, with a poll interval of 5 s, until the test's end; known is what it is to tell about.
func observing(t *testing.T) (b *Backend, w *watched, know func(...backend.Known)) {
	t.Helper()
	w = &watched{}
	w.say(nil)
	b = newWitnessed(t, &w.witnesses)
	b.orders, b.looks, b.pollInterval, b.minJobAge, b.ordered = w, w, 5*time.Second, 300*time.Second, make(chan struct{}, 1)
	var mu sync.Mutex
	var known []backend.Known
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	t.Cleanup(func() { cancel(); <-ended })
	go func() {
		defer close(ended)
		b.Observe(ctx, func() []backend.Known { mu.Lock(); defer mu.Unlock(); return known }, func(backend.News) {})
	}()
	return b, w, func(all ...backend.Known) { mu.Lock(); defer mu.Unlock(); known = all }
}

// requireAbout: each pause is the one wanted, a tenth more or less.
func requireAbout(t *testing.T, want, got []time.Duration) {
	t.Helper()
	require.GreaterOrEqual(t, len(got), len(want))
	for i := range want {
		require.InDelta(t, want[i].Seconds(), got[i].Seconds(), want[i].Seconds()/10+0.001, "%v", got)
	}
}

func TestLooksAreSeldomWhileNothingMoves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, w, know := observing(t)
		know(knownJob)
		time.Sleep(5 * time.Minute)
		requireAbout(t, []time.Duration{
			5 * time.Second, 7500 * time.Millisecond, 11250 * time.Millisecond, 16875 * time.Millisecond, 20 * time.Second, 20 * time.Second,
		}, w.pauses())

		w.say(func(r *record) { r.reason = "Priority" })
		time.Sleep(2 * time.Minute)
		requireAbout(t, []time.Duration{20 * time.Second, 20 * time.Second, 20 * time.Second}, w.pauses())

		w.say(func(r *record) { r.node = "n2" })
		time.Sleep(5 * time.Minute)
		moved := w.pauses()
		requireAbout(t, []time.Duration{20 * time.Second, 5 * time.Second, 7500 * time.Millisecond}, moved)
		requireAbout(t, []time.Duration{20 * time.Second}, moved[len(moved)-1:])

		w.pauses()
		b.order()
		time.Sleep(6 * time.Second)
		require.NotEmpty(t, w.pauses(), "what was ordered is looked at soon")
	})
}

func TestNobodyIsLookedAtForNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, w, know := observing(t)
		time.Sleep(time.Hour)
		require.Empty(t, w.looks, "no job is live")
		know(knownJob)
		b.order()
		time.Sleep(6 * time.Second)
		know()
		synctest.Wait()
		looks := len(w.looks)
		require.NotZero(t, looks, "one is")
		time.Sleep(time.Hour)
		require.Len(t, w.looks, looks, "none is any more")
	})
}

// An order brings the next look forward, once; orders without an end do not put it off.
func TestOrdersDoNotPutALookOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, w, know := observing(t)
		know(knownJob)
		time.Sleep(5 * time.Minute)
		w.pauses()
		for range 600 {
			b.order()
			time.Sleep(100 * time.Millisecond)
		}
		for i, pause := range w.pauses() {
			require.True(t, i == 0 || pause > 4*time.Second && pause < 6*time.Second, pause)
		}
	})
}

func TestTheLongestPause(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ interval, minJobAge, longest time.Duration }{
		{5 * time.Second, 300 * time.Second, 20 * time.Second},
		{500 * time.Millisecond, 300 * time.Second, 2 * time.Second},
		{15 * time.Second, 300 * time.Second, 30 * time.Second},
		{time.Minute, 300 * time.Second, time.Minute},
		{5 * time.Second, 20 * time.Second, 10 * time.Second},
		{5 * time.Second, 6 * time.Second, 5 * time.Second},
	} {
		require.Equal(t, test.longest, newPace(test.interval, test.minJobAge).longest, "%v", test)
	}
}
