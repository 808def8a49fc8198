package engine

import (
	"context"
	"time"

	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/server/store"
	"github.com/dagbridge/dagbridge/translators/graph"
)

// tidyEvery is how often a cluster is asked to remove what has ended: it lists all that is there.
const tidyEvery = 10 * time.Minute

// tidy has a cluster remove native jobs whose ends are recorded here.
func (e *Engine) tidy(ctx context.Context, c *cluster, b backend.Tidier) {
	timer := time.NewTicker(tidyEvery)
	defer timer.Stop()
	for {
		if err := b.Tidy(ctx, e.recorded); err != nil && ctx.Err() == nil {
			e.log.Warn("removing ended native jobs", "cluster", c.Name, "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
	}
}

// recorded says whether the job of a token has ended here, so that its native job tells nothing new.
func (e *Engine) recorded(token string) (ended bool) {
	err := e.store.View(func(tx *store.Tx) error {
		rec := tx.Record(jobOf(token))
		ended = rec != nil && graph.IsTerminal(rec.GetJob().GetState()) && !rec.GetCleanup()
		return nil
	})
	return ended && err == nil
}
