package backend

import (
	"context"
	"time"
)

// Pause is what an Observe does between two looks: it waits for soonest in any case, and then until there is news, or latest is
// over. It says whether there was news, and whether to go on: not once the context has ended.
func Pause(ctx context.Context, news <-chan struct{}, soonest, latest time.Duration) (noticed, goesOn bool) {
	select {
	case <-ctx.Done():
		return false, false
	case <-time.After(soonest):
	}
	select {
	case <-ctx.Done():
		return false, false
	case <-news:
		return true, true
	case <-time.After(latest):
		return false, true
	}
}
