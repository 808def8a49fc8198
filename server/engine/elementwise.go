package engine

import (
	storev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/store/v1"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators/graph"
)

// elementwise: the array waits natively for another, instance for instance, so that its instances come to different ends by
// the rule.
func (n *node) elementwise() bool {
	return n.isArray() && n.task.GetArray() != nil && sameIndex(n.task)
}

// evaluateElements applies the trigger rule to each instance of an array that has not ended: one whose own upstream has failed
// ends, and the others go on.
func (t *txn) evaluateElements(n *node) {
	some, wait := false, false
	t.elements(n, func(_ int, id string) {
		rec := t.rec(id)
		if state := rec.GetJob().GetState(); graph.IsTerminal(state) || state == dagbridgev1.Job_RUNNING {
			return
		}
		switch decision, because := t.decide(n, int(rec.GetPosition())); decision {
		case graph.Run:
			some = true
		case graph.Wait:
			wait = true
		case graph.UpstreamFail:
			t.endElement(n, id, dagbridgev1.Job_UPSTREAM_FAILED, because)
		default:
			t.endElement(n, id, dagbridgev1.Job_SKIPPED, because)
		}
	})
	// Of an array that the scheduler has the scheduler knows as well; one that it gave back goes in again as a whole.
	if some && !wait && !t.rec(n.id()).GetReady() {
		t.change(n.id(), func(rec *storev1.JobRecord) {
			rec.Ready = true
			rec.Job.Reason, rec.Job.Message = "", ""
		})
	}
}

// endElement ends one job of an array by its rule. Its element may be waiting in the scheduler, and is to go.
func (t *txn) endElement(n *node, id string, state dagbridgev1.Job_State, because string) {
	t.end(id, state, "UPSTREAM", because)
	if current(t.rec(id)).GetNativeId() != "" || t.e.mem.mayBeThere(n.id()) {
		t.change(id, func(rec *storev1.JobRecord) { rec.Cleanup = true })
	}
}

// instance is the id of an array's instance; "" when there is none.
func (t *txn) instance(parent string, position int) string {
	if n := t.e.mem.node(parent); n != nil && position < len(n.kids) {
		return n.kids[position]
	}
	id, at := "", 0
	t.Children(parent, func(kid string) bool {
		id = kid
		at++
		return at <= position
	})
	if at <= position {
		return ""
	}
	return id
}
