package engine

import (
	"context"
	"slices"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/store"
	"github.com/dagbridge/dagbridge/translators"
	"github.com/dagbridge/dagbridge/translators/graph"
)

// dispatchBatch bounds one call of Backend.Submit, so that cancels and releases never wait for long behind submissions.
const dispatchBatch = 512

// dispatch submits what may go, wave by wave: a native child follows as soon as its upstreams have native ids.
func (e *Engine) dispatch(ctx context.Context, c *cluster) {
	for ctx.Err() == nil && e.open(c) {
		var going []*node
		var subs []translators.Submission
		room := map[string]int32{}
		var left []*node
		nodes := e.mem.claim(c.Name, toSubmit, func(n *node) bool { return e.mayGo(n, room) })
		if len(nodes) == 0 {
			return
		}
		// A transaction that has not seen them in flight has come to its end after this empty one; those after it take what they end
		// for something that the scheduler may have.
		err := e.store.Update(ctx, func(*store.Tx) error { return nil })
		for _, n := range nodes {
			sub, ok := translators.Submission{}, false
			if err == nil && len(going) < dispatchBatch {
				sub, ok = e.submission(n)
			}
			if !ok {
				left = append(left, n)
				continue
			}
			subs, going = append(subs, sub), append(going, n)
		}
		e.mem.letGo(left)
		if len(going) == 0 {
			return
		}
		if limited := e.submit(ctx, c, going, subs); limited {
			return // else cancels and releases would wait until the last one's turn has come
		}
	}
}

// open: submissions may go to the cluster. After an outage, and at the start, every live native job is verified first.
func (e *Engine) open(c *cluster) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.now().Before(c.busyUntil) {
		return false
	}
	if !c.verified {
		// With no native job there is nothing to verify, and what is submitted from here on needs no verifying.
		c.verified = e.mem.none(c.Name, natives)
	}
	return c.verified
}

// mayGo: nothing on this side keeps the node from being submitted now. room counts what this wave adds to each array that
// goes one by one. mem.mu is held.
func (e *Engine) mayGo(n *node, room map[string]int32) bool {
	rec := n.rec
	if !n.unit() || !n.mayBeSubmitted() || n.maybe || n.inFlight || e.now().Before(n.submitAfter) || rec.GetJob().GetCancelRequestTime() != nil ||
		rec.GetNotBefore() != nil && e.now().Before(rec.GetNotBefore().AsTime()) {
		return false
	}
	if e.mem.precededBy(n) {
		return false
	}
	return e.mem.hasRoom(n, room)
}

// precededBy: an earlier job of the same key, or of one that the node's native array has, may still run. mu is held.
func (m *memory) precededBy(n *node) bool {
	if !isCarrier(n.rec) {
		return m.jobPrecededBy(n)
	}
	for pos := range n.kids {
		if kid := m.element(n, pos); kid != nil && m.jobPrecededBy(kid) {
			return true
		}
	}
	return false
}

func (m *memory) jobPrecededBy(n *node) bool {
	keys := []*dagbridgev1.TaskKey{n.rec.GetJob().GetKey()}
	if n.rec.GetJob().GetParent() != "" {
		keys = append(keys, withoutIndex(keys[0])) // an earlier array as a whole
	}
	for _, key := range keys {
		for id, other := range m.byKey[graph.KeyString(key)] {
			if id < n.id() && id != n.rec.GetJob().GetParent() && !m.dead(other) {
				return true
			}
		}
	}
	return false
}

// dead: no native job of it can run any more, though it may still be watched. mu is held.
func (m *memory) dead(n *node) bool {
	if n.rec.GetUnrolled() {
		return !slices.ContainsFunc(n.kids, func(id string) bool { kid := m.nodes[id]; return kid != nil && !m.dead(kid) })
	}
	ended := graph.IsTerminal(n.rec.GetJob().GetState())
	if carrier := m.nodes[n.rec.GetCarrier()]; carrier != nil {
		return ended && (!n.rec.GetCleanup() && !carrier.rec.GetCleanup() || carrier.deadAt(int(n.rec.GetElement())))
	}
	return ended && (!n.rec.GetCleanup() || n.isDead())
}

// hasRoom: an array that goes one by one has no more than maxParallel instances out at once. mu is held.
func (m *memory) hasRoom(n *node, room map[string]int32) bool {
	parent := m.nodes[n.rec.GetJob().GetParent()]
	if parent == nil || parent.task.GetArray().GetMaxParallel() == 0 {
		return true
	}
	if _, counted := room[parent.id()]; !counted {
		for _, id := range parent.kids {
			if kid := m.nodes[id]; kid != nil && (kid.inFlight || kid.maybe || current(kid.rec).GetNativeId() != "") {
				room[parent.id()]++
			}
		}
	}
	if room[parent.id()] >= parent.task.GetArray().GetMaxParallel() {
		return false
	}
	room[parent.id()]++
	return true
}

// submission is a node's current attempt in translators' terms; false while it cannot go.
func (e *Engine) submission(n *node) (translators.Submission, bool) {
	e.mem.mu.RLock()
	sub, ok := e.mem.submission(n)
	ups := n.ups
	e.mem.mu.RUnlock()
	if !ok {
		return sub, false
	}
	inputs, err := e.inputs(ups)
	if err != nil {
		e.log.Error("reading an upstream's outputs", "job", n.id(), "error", err)
		return sub, false
	}
	sub.Inputs = inputs
	return sub, true
}

// submission is the same but for the inputs; false when it is not to go any more, an upstream that is to be waited for natively
// has no native id yet, or every instance has ended. mu is held.
func (m *memory) submission(n *node) (translators.Submission, bool) {
	rec, at := n.rec, current(n.rec)
	sub := translators.Submission{
		Token: at.GetToken(), Job: rec.GetJob(), Task: graph.AskingFor(n.task, at.GetMemory(), at.GetTimeLimit()),
		Hold: rec.GetHold() || rec.GetSuspect(), ExcludeNodes: at.GetExcludedNodes(), MaxParallel: int(n.maxParallel()),
	}
	for _, pos := range n.positions() {
		kid := m.element(n, pos)
		if kid != nil && kid.rec.GetJob().GetCancelRequestTime() == nil && !graph.IsTerminal(kid.rec.GetJob().GetState()) {
			sub.Instances = append(sub.Instances, instanceOf(n.task, pos, kid))
		}
	}
	if !n.mayBeSubmitted() || rec.GetJob().GetCancelRequestTime() != nil || n.isArray() && len(sub.Instances) == 0 {
		return sub, false
	}
	if !rec.GetNative() {
		sub.Depends.Terms = foreign(n)
		return sub, true
	}
	depends, ok := m.depends(n)
	if sub.Depends = depends; ok && !rec.GetHold() && !rec.GetAnyDependency() {
		sub.Guard = m.guard(n)
	}
	return sub, ok
}

// instanceOf is an element of a native array in translators' terms: an instance of the task's array, or a task of its own.
func instanceOf(task *dagbridgev1.Task, element int, kid *node) translators.Instance {
	in := translators.Instance{Position: element, JobID: kid.id(), MapIndex: kid.rec.GetJob().GetKey().GetMapIndex()}
	if task.GetArray() == nil {
		in.Task = kid.task
	} else {
		in.Item = task.GetArray().GetItems()[kid.rec.GetPosition()]
	}
	return in
}

// maxParallel is how many elements of a native array run at once: of a chunk its share.
func (n *node) maxParallel() int32 {
	if isCarrier(n.rec) {
		return n.rec.GetMaxParallel()
	}
	return n.task.GetArray().GetMaxParallel()
}

// positions of an array that the current attempt runs; nil for a unit that is no array.
func (n *node) positions() []int {
	if !n.isArray() {
		return nil
	}
	out := make([]int, 0, len(n.kids))
	if some := n.rec.GetPositions(); len(some) > 0 {
		for _, p := range some {
			if n.kids[p] != "" {
				out = append(out, int(p))
			}
		}
		return out
	}
	for i, id := range n.kids {
		if id != "" {
			out = append(out, i)
		}
	}
	return out
}
