package engine

import (
	"time"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
)

// astrayFor is for how long an order may be on its way: it is given to a scheduler that is being killed, and carried out once
// that is back.
const astrayFor = 10 * time.Minute

// astray: a native job that nobody wanted cancelled was cancelled before it started, shortly after another that is to go had
// the same id. A scheduler that was killed gives ids anew, and a cancel that looked right when it was sent meets the wrong job.
func (t *txn) astray(n *node, obs backend.Observation) (is bool) {
	t.Native(n.rec.GetJob().GetCluster(), obs.Ref.ID, func(other string, _ int32) bool {
		rec := t.rec(other)
		if other == n.id() || rec.GetCarrier() == n.id() {
			return true
		}
		job := rec.GetJob()
		at := job.GetCancelRequestTime()
		if state := job.GetState(); at == nil && (state == dagbridgev1.Job_UPSTREAM_FAILED || state == dagbridgev1.Job_SKIPPED || rec.GetRefused() != "") {
			at = job.GetEndTime()
		}
		is = at != nil && t.now.Sub(at.AsTime()) < astrayFor
		return !is
	})
	return is
}
