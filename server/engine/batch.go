package engine

import (
	"slices"

	storev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/store/v1"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators/graph"
)

// release lets a batch start once every member that lives is in: whoever waits for a member natively is known to the scheduler.
func (t *txn) release(batch string) {
	members := t.members(batch)
	for _, n := range members {
		rec := t.rec(n.id())
		if current(rec).GetNativeId() == "" && !graph.IsTerminal(rec.GetJob().GetState()) && !t.waitsForHeld(n) {
			return
		}
	}
	for _, n := range members {
		if rec := t.rec(n.id()); rec.GetHold() && !rec.GetNative() {
			t.change(n.id(), func(rec *storev1.JobRecord) { rec.Hold = false })
		}
	}
}

// waitsForHeld: a member cannot go in yet, since it waits for an earlier job that is held here, perhaps for this very batch. It goes
// in later; what it waits for natively is looked at again then.
func (t *txn) waitsForHeld(n *node) bool {
	return slices.ContainsFunc(t.e.mem.edges(n), func(u upstream) bool {
		rec := t.rec(u.id)
		if carrier := rec.GetCarrier(); carrier != "" {
			rec = t.rec(carrier)
		}
		return rec != nil && !graph.IsTerminal(rec.GetJob().GetState()) && current(rec).GetNativeId() == "" && !rec.GetReady()
	})
}

// unbatch gives up on having a whole batch in before any of it starts, since the scheduler takes no more for now: what is in
// is released, and the rest follows as there is room.
func (t *txn) unbatch(batch string) {
	for _, n := range t.members(batch) {
		t.change(n.id(), func(rec *storev1.JobRecord) {
			rec.Batch = ""
			rec.Hold = rec.GetHold() && rec.GetNative()
		})
	}
}

// refused: the scheduler will never take the job. A batch of which nothing was released yet is rolled back as a whole.
func (t *txn) refused(n *node, sentence string) {
	batch := t.rec(n.id()).GetBatch()
	members := []*node{n}
	if all := t.members(batch); t.held(all) {
		members = all
	}
	for _, m := range members {
		said, mayBeThere := "rolled back, since "+n.task.GetKey().GetTask()+" was refused: "+sentence, t.e.mem.mayBeThere(m.id())
		if m == n {
			said, mayBeThere = sentence, t.rec(n.id()).GetSuspect() // an earlier request may still arrive
		}
		switch {
		case mayBeThere:
			t.change(m.id(), func(rec *storev1.JobRecord) { rec.Refused = said })
			t.requestCancel(m.id())
		default:
			t.endByRule(m, dagbridgev1.Job_FAILED, causeRefused, said)
		}
	}
}

// held: a root of the batch is still to be released.
func (t *txn) held(members []*node) bool {
	for _, n := range members {
		if rec := t.rec(n.id()); rec.GetHold() && !rec.GetNative() {
			return true
		}
	}
	return false
}

// members of a batch that live; none of no batch.
func (t *txn) members(batch string) []*node {
	t.e.mem.mu.RLock()
	some := pick(t.e.mem.batches[batch], func(*node) bool { return true })
	t.e.mem.mu.RUnlock()
	return slices.DeleteFunc(some, func(n *node) bool { return t.rec(n.id()).GetBatch() != batch })
}
