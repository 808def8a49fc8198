package engine

import (
	"time"

	"slices"

	storev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/store/v1"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators/graph"
)

// follow is the store's commit hook: the records are durable, in commit order.
func (e *Engine) follow(records []*storev1.JobRecord) {
	m := e.mem
	m.mu.Lock()
	for _, rec := range records {
		e.followOne(rec)
	}
	m.mu.Unlock()
	e.metrics.Committed(len(records))
	for _, c := range e.clusters {
		c.kick()
	}
}

func (e *Engine) followOne(rec *storev1.JobRecord) {
	m, id := e.mem, rec.GetJob().GetId()
	n := m.nodes[id]
	if n == nil {
		if n = m.staged[id]; n == nil {
			if !live(rec) {
				if _, kept := m.ended[id]; kept {
					m.ended[id] = rec
				}
				return
			}
			panic("engine: job " + id + " lives in the store and was never staged")
		}
		delete(m.staged, id)
		if !live(rec) {
			return
		}
		n.rec = rec
		if len(n.ups) > 0 { // one may have ended in the same commit
			n.review, n.reviewAfter = true, time.Time{}
		}
		m.insert(n)
		m.repoint(n)
		return
	}
	if fresh := m.staged[id]; fresh != nil && len(n.rec.GetJob().GetCounts()) == 0 && len(rec.GetJob().GetCounts()) > 0 {
		m.expanded(n, fresh, isUnit(rec))
	}
	if n.rec.GetBatch() != rec.GetBatch() {
		m.unbatch(n.rec)
	}
	before, now := current(n.rec), current(rec)
	if before.GetToken() != now.GetToken() {
		n.maybe, n.seen, n.fresh, n.duplicates, n.deadSince = false, nil, false, nil, nil
	}
	if before.GetToken() != now.GetToken() || before.GetNativeId() != now.GetNativeId() {
		// What was missed, and to be marked, was another native job.
		n.goneSince, n.recheck, n.rechecked, n.marks, n.stuckSince, n.stuck = nil, false, false, nil, time.Time{}, false
	}
	if from, to := n.rec.GetJob().GetState(), rec.GetJob().GetState(); graph.IsTerminal(to) && !graph.IsTerminal(from) && !isCarrier(rec) {
		e.metrics.Ended(rec.GetJob().GetCluster(), to.String())
	}
	if wanted(n.rec) != wanted(rec) {
		n.ordered = false
	}
	cancelled := n.rec.GetJob().GetCancelRequestTime() == nil && rec.GetJob().GetCancelRequestTime() != nil
	if c := m.nodes[rec.GetCarrier()]; c != nil && (cancelled || rec.GetCleanup() && !n.rec.GetCleanup()) {
		c.thinned, c.ordered = true, false
		m.mark(c)
	}
	carrier := n.rec.GetCarrier()
	left := carrier != rec.GetCarrier()
	if n.rec = rec; isCarrier(rec) {
		n.kids = rec.GetCarried()
	}
	if left {
		m.leave(n, carrier)
		m.dropOwner(carrier)
	}
	if !live(rec) && m.liveKids[id] == 0 {
		m.remove(n)
		for _, owner := range owners(rec) {
			m.dropOwner(owner)
		}
		return
	}
	m.batch(n)
	m.mark(n)
}

// wish is what a record wants of which native job.
type wish struct {
	token, nativeID                         string
	held, hold, suspect, cleanup, cancelled bool
}

func wanted(rec *storev1.JobRecord) wish {
	at := current(rec)
	return wish{
		at.GetToken(), at.GetNativeId(), rec.GetHeld(), rec.GetHold(), rec.GetSuspect(), rec.GetCleanup(),
		rec.GetJob().GetCancelRequestTime() != nil,
	}
}

// dropOwner removes an array's parent, or a carrier, that has ended once the last of its jobs is gone.
func (m *memory) dropOwner(id string) {
	if p := m.nodes[id]; p != nil && !live(p.rec) && m.liveKids[id] == 0 {
		m.remove(p)
	}
}

// repoint leads the edges of those who wait for the new job's key to it.
func (m *memory) repoint(n *node) {
	if isCarrier(n.rec) {
		return
	}
	key := graph.KeyString(n.rec.GetJob().GetKey())
	for _, w := range m.waiting[key] {
		w.ups = slices.Clone(w.ups) // a reader may hold the old slice
		for i := range w.ups {
			if w.ups[i].key == key {
				w.ups[i].id = n.id()
				w.ups[i].setup, w.ups[i].ended, w.ups[i].kids = n.task.GetSetup(), dagbridgev1.Job_STATE_UNSPECIFIED, nil
			}
		}
		w.review, w.reviewAfter = true, time.Time{}
		m.mark(w)
	}
}

// stage hands a transaction's new node to the commit hook. Staging the same id again replaces it: transactions may be re-run.
func (m *memory) stage(n *node) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.staged[n.id()] = n
}
