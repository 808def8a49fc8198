package engine

import (
	"time"

	storev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/store/v1"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/translators/graph"
)

// watchDead: the job, an array's instance perhaps, has ended here; its native job is to be dead, and to stay so for the grace.
func (t *txn) watchDead(n *node, id string, obs backend.Observation, gone bool) {
	one, unit := t.rec(id), t.rec(n.id())
	if !one.GetCleanup() && !unit.GetCleanup() {
		return
	}
	grace := t.e.grace
	if one.GetJob().GetState() == dagbridgev1.Job_LOST {
		grace *= 10 // evidence may be late by much
	}
	if !t.e.mem.deadFor(n, obs.Position, gone || graph.IsTerminal(obs.State), t.now, grace) {
		return
	}
	if one.GetCleanup() {
		t.change(id, func(rec *storev1.JobRecord) { rec.Cleanup = false })
	}
	if id != n.id() && unit.GetCleanup() && t.e.mem.allDeadFor(n, t.now, grace) {
		t.change(n.id(), func(rec *storev1.JobRecord) { rec.Cleanup = false })
	}
}

// deadFor notes whether a native job, or an element of it, is dead, and says whether it has been for the grace.
func (m *memory) deadFor(n *node, position int, dead bool, now time.Time, grace time.Duration) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !dead {
		delete(n.deadSince, position)
		return false
	}
	if n.deadSince == nil {
		n.deadSince = map[int]time.Time{}
	}
	if _, noted := n.deadSince[position]; !noted {
		n.deadSince[position] = now
	}
	return now.Sub(n.deadSince[position]) >= grace
}

// allDeadFor: all elements of an array have been dead for the grace.
func (m *memory) allDeadFor(n *node, now time.Time, grace time.Duration) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, pos := range n.positions() {
		if since, dead := n.deadSince[pos]; !dead || now.Sub(since) < grace {
			return false
		}
	}
	return true
}

// isDead: a look has shown that all of a native job, which is watched, is dead. mu is held.
func (n *node) isDead() bool {
	if !n.isArray() {
		return n.deadAt(-1)
	}
	for _, pos := range n.positions() {
		if !n.deadAt(pos) {
			return false
		}
	}
	return true
}

// deadAt: a look has shown that a position of an array, or with -1 another native job, is dead. mu is held.
func (n *node) deadAt(position int) bool {
	_, dead := n.deadSince[position]
	return dead
}
