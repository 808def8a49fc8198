package backendtest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/dagbridge/dagbridge/server/backend"
)

// Watcher runs Observe of one Backend and keeps the last observation of each native job.
type Watcher struct {
	mu sync.Mutex
	// known by id and token: two jobs of one token are two.
	known map[place]backend.Known
	added map[place]time.Time
	last  map[place]map[int]backend.Observation
	err   error
	// changed is closed, and replaced, at each piece of news.
	changed chan struct{}

	stop    context.CancelFunc
	stopped chan struct{}
}

// place is where observations of a native job are kept.
type place struct{ id, token string }

// Watch observes until Stop, at the latest until the test ends.
func Watch(t testing.TB, b backend.Backend) *Watcher {
	ctx, cancel := context.WithCancel(context.Background())
	w := &Watcher{
		known: map[place]backend.Known{}, added: map[place]time.Time{}, last: map[place]map[int]backend.Observation{},
		changed: make(chan struct{}), stop: cancel, stopped: make(chan struct{}),
	}
	go func() {
		defer close(w.stopped)
		b.Observe(ctx, w.knowns, w.emit)
	}()
	t.Cleanup(w.Stop)
	return w
}

// Stop ends Observe and waits for it.
func (w *Watcher) Stop() {
	w.stop()
	<-w.stopped
}

// Add watches a native job.
func (w *Watcher) Add(k backend.Known) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := place{k.Ref.ID, k.Ref.Token}
	w.known[p], w.added[p] = k, time.Now()
}

// Remove watches it no longer.
func (w *Watcher) Remove(ref backend.NativeRef) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.known, place{ref.ID, ref.Token})
}

// Await waits until an observation of the native job, at a position of its array or -1, is as wanted, and returns it.
func (w *Watcher) Await(t testing.TB, ref backend.NativeRef, position int, patience time.Duration, what string,
	wanted func(backend.Observation) bool,
) backend.Observation {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for {
		w.mu.Lock()
		last, seen := w.last[place{ref.ID, ref.Token}][position]
		err, changed := w.err, w.changed
		w.mu.Unlock()
		if seen && wanted(last) {
			return last
		}
		select {
		case <-changed:
		case <-deadline.C:
			t.Fatalf("waited %v for %s (token %s, position %d) to be %s; last seen: %s; last error: %v",
				patience, ref.ID, ref.Token, position, what, describe(last, seen), err)
		}
	}
}

func (w *Watcher) knowns() []backend.Known {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := make([]backend.Known, 0, len(w.known))
	for _, k := range w.known {
		list = append(list, k)
	}
	return list
}

func (w *Watcher) emit(news backend.News) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = news.Err
	for _, o := range news.Observations {
		p := place{o.Ref.ID, o.Ref.Token}
		if o.Gone && news.AsOf.Before(w.added[p]) {
			continue // the look began before the job was there
		}
		if w.last[p] == nil {
			w.last[p] = map[int]backend.Observation{}
		}
		w.last[p][o.Position] = o
	}
	close(w.changed)
	w.changed = make(chan struct{})
}

func describe(o backend.Observation, seen bool) string {
	if !seen {
		return "nothing"
	}
	return fmt.Sprintf("%v reason=%q message=%q gone=%t started=%t held=%t exitCode=%v", o.State, o.Reason, o.Message, o.Gone, o.Started, o.Held, value(o.ExitCode))
}

func value(p *int32) any {
	if p == nil {
		return "none"
	}
	return *p
}
