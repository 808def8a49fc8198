package engine

import (
	"errors"
	"time"

	"github.com/dagbridge/dagbridge/server/backend"
)

// altered notes whether the scheduler refuses a change of a native job for want of something of its own. When that has been so
// for the grace the native job has to go: it has not started, and another takes its place.
func (e *Engine) altered(token string, err error) {
	n := e.mem.node(jobOf(token))
	if n == nil {
		return
	}
	e.mem.touch(n, func() {
		switch {
		case current(n.rec).GetToken() != token:
		case err == nil:
			n.stuckSince = time.Time{}
		case !errors.Is(err, backend.ErrStuck): // The scheduler was away: that says nothing of the job.
		case n.stuckSince.IsZero():
			n.stuckSince = e.now()
		default:
			n.stuck = e.now().Sub(n.stuckSince) >= e.grace
		}
	})
}
