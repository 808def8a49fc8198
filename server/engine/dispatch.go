package engine

import (
	"context"
	"slices"
	"time"

	storev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/store/v1"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
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
		for _, n := range e.mem.pick(c.Name, toSubmit, func(n *node) bool { return e.mayGo(n, room) }) {
			sub, ok := e.submission(n)
			if !ok {
				continue
			}
			subs = append(subs, sub)
			if going = append(going, n); len(going) == dispatchBatch {
				break
			}
		}
		if len(going) == 0 {
			return
		}
		e.submit(ctx, c, going, subs)
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
	if !n.unit() || !n.mayBeSubmitted() || n.maybe || n.inFlight || rec.GetJob().GetCancelRequestTime() != nil ||
		rec.GetNotBefore() != nil && e.now().Before(rec.GetNotBefore().AsTime()) {
		return false
	}
	if p := e.mem.nodes[rec.GetPredecessor()]; p != nil && !e.mem.dead(p) {
		return false // it may still run
	}
	return e.mem.hasRoom(n, room)
}

// dead: no native job of it can run any more, though it may still be watched. mu is held.
func (m *memory) dead(n *node) bool {
	if n.isArray() && n.rec.GetUnrolled() {
		return !slices.ContainsFunc(n.kids, func(id string) bool { kid := m.nodes[id]; return kid != nil && !m.dead(kid) })
	}
	return graph.IsTerminal(n.rec.GetJob().GetState()) && (!n.rec.GetCleanup() || !n.deadSince.IsZero())
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

// submission is a node's current attempt in translators' terms; false while it cannot go: an upstream that is to be waited
// for natively has no native id yet, or every instance has ended.
func (e *Engine) submission(n *node) (translators.Submission, bool) {
	m := e.mem
	m.mu.RLock()
	rec, ups := n.rec, n.ups
	sub := translators.Submission{
		Token: current(rec).GetToken(), Job: rec.GetJob(), Task: n.task, Hold: rec.GetHold() || rec.GetSuspect(),
	}
	for _, pos := range n.positions() {
		kid := m.nodes[n.kids[pos]]
		if kid != nil && kid.rec.GetJob().GetCancelRequestTime() == nil && !graph.IsTerminal(kid.rec.GetJob().GetState()) {
			sub.Instances = append(sub.Instances, translators.Instance{Position: pos, JobID: kid.id()})
		}
	}
	ok := !n.isArray() || len(sub.Instances) > 0
	if ok && rec.GetNative() {
		if sub.Depends, ok = m.depends(n); !n.rec.GetHold() && !sub.Depends.Any {
			sub.Guard = m.guard(n)
		}
	}
	m.mu.RUnlock()
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

// positions of an array that the current attempt runs; nil for a unit that is no array.
func (n *node) positions() []int {
	if !n.isArray() || !n.unit() {
		return nil
	}
	if some := n.rec.GetPositions(); len(some) > 0 {
		out := make([]int, len(some))
		for i, p := range some {
			out[i] = int(p)
		}
		return out
	}
	out := make([]int, len(n.kids))
	for i := range out {
		out[i] = i
	}
	return out
}

// depends is the dependency expression over the upstreams that have not ended, by their current native ids; false while one
// of them has none. mu is held.
func (m *memory) depends(n *node) (translators.Dependencies, bool) {
	d := translators.Dependencies{Any: n.rec.GetAnyDependency()}
	for i, u := range n.ups {
		up, kind, state := m.nodes[u.id], translators.DependencyType(n.rec.GetDependencyTypes()[i]), u.ended
		if up != nil {
			state = up.rec.GetJob().GetState()
		}
		switch {
		case kind == "":
			continue // the rule does not wait for it
		case !graph.IsTerminal(state) && up != nil:
		case satisfies(kind, state) && d.Any:
			return translators.Dependencies{}, true // one is enough, and this is it
		case satisfies(kind, state) || d.Any:
			continue // resolved here
		default:
			return d, false // it may be tried again; else the job has ended with it
		}
		id := current(up.rec).GetNativeId()
		if id == "" || len(up.goneSince) > 0 {
			return d, false
		}
		d.Terms = append(d.Terms, translators.Dependency{
			Type: kind, NativeID: id, Delay: u.edge.GetDelay().AsDuration(),
		})
	}
	// Of alternatives that have all failed none may be dropped: what is left would be nothing to wait for.
	return d, !d.Any || len(d.Terms) > 0
}

// satisfies: an upstream that ended so satisfies a dependency of this type.
func satisfies(kind translators.DependencyType, state dagbridgev1.Job_State) bool {
	switch kind {
	case translators.AfterAny, translators.After:
		return true
	case translators.AfterNotOK:
		return state != dagbridgev1.Job_SUCCEEDED
	default:
		return state == dagbridgev1.Job_SUCCEEDED
	}
}

// guard are the jobs whose success a native job waits for, as their success markers are found. mu is held.
func (m *memory) guard(n *node) []translators.InputJob {
	var guard []translators.InputJob
	for i, u := range n.ups {
		up := m.nodes[u.id]
		if up == nil || graph.IsTerminal(up.rec.GetJob().GetState()) || n.rec.GetDependencyTypes()[i] != string(translators.AfterOK) {
			continue
		}
		job := up.rec.GetJob()
		one := translators.InputJob{JobID: jobOf(current(up.rec).GetToken()), Owner: job.GetOwner(), Position: -1}
		switch {
		case up.isArray():
			for pos := range up.kids {
				one.Position = pos
				guard = append(guard, one)
			}
			continue
		case one.JobID != up.id():
			one.Position = int(up.rec.GetPosition())
		}
		guard = append(guard, one)
	}
	return guard
}

// submit hands attempts to the scheduler and records what became of them, in one transaction.
func (e *Engine) submit(ctx context.Context, c *cluster, going []*node, subs []translators.Submission) {
	e.fly(going, true)
	results := c.Backend.Submit(ctx, subs)
	err := e.update(context.WithoutCancel(ctx), func(t *txn) error {
		for i, r := range results {
			t.submitted(c, going[i], subs[i], r)
		}
		return nil
	})
	busy := false
	e.mem.mu.Lock()
	for i, n := range going {
		n.inFlight = false
		// What the store could not record is as unknown as what the scheduler did not answer.
		n.maybe = results[i].Outcome == backend.Unknown || err != nil && results[i].Outcome == backend.Submitted
		busy = busy || results[i].Outcome == backend.Busy || results[i].Outcome == backend.NotSent
		e.mem.mark(n)
	}
	e.mem.mu.Unlock()
	for i, r := range results {
		e.metrics.Submitted(c.Name, outcomeWord(r.Outcome))
		if r.Outcome == backend.Submitted {
			e.metrics.Dispatched(c.Name, e.now().Sub(subs[i].Job.GetCreateTime().AsTime()))
		}
	}
	if err != nil {
		e.log.Error("recording submissions", "cluster", c.Name, "error", err)
		busy = true
	}
	c.answered(results)
	c.backOff(e.now(), busy)
}

// answered keeps what people are told of the cluster.
func (c *cluster) answered(results []backend.SubmitResult) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range results {
		switch r.Outcome {
		case backend.NotSent:
			c.reachable, c.message = false, r.Message
		case backend.Submitted, backend.Refused, backend.Busy:
			c.reachable, c.message = true, ""
		}
	}
}

func (e *Engine) fly(nodes []*node, inFlight bool) {
	e.mem.mu.Lock()
	defer e.mem.mu.Unlock()
	for _, n := range nodes {
		n.inFlight = inFlight
	}
}

// backOff spaces further submissions out while the scheduler takes none.
func (c *cluster) backOff(now time.Time, busy bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !busy {
		c.busyTries = 0
		return
	}
	c.busyUntil = now.Add(min(time.Second<<min(c.busyTries, 5), 30*time.Second))
	c.busyTries++
}

func outcomeWord(o backend.Outcome) string {
	switch o {
	case backend.Submitted:
		return "submitted"
	case backend.Refused:
		return "refused"
	case backend.Busy:
		return "busy"
	case backend.NotSent:
		return "not_sent"
	default:
		return "unknown"
	}
}

// submitted records one submission's outcome.
func (t *txn) submitted(c *cluster, n *node, sub translators.Submission, r backend.SubmitResult) {
	rec := t.rec(n.id())
	if current(rec).GetToken() != sub.Token {
		return // retried meanwhile: the token was another attempt's, which Find and the start marker guard
	}
	switch r.Outcome {
	case backend.Submitted:
		t.recorded(c, n, sub, r)
	case backend.Refused:
		t.refused(n, r.Message)
	case backend.Busy:
		t.unbatch(rec.GetBatch())
		t.waits(n, "ADMISSION", r.Message)
	case backend.NotSent:
		t.waits(n, "CLUSTER_UNREACHABLE", r.Message)
	case backend.Unknown:
		t.waits(n, "CLUSTER_UNREACHABLE", "whether the scheduler took it is being found out: "+r.Message)
	}
}

// waits says why a job is still not submitted; what is known already is not written again.
func (t *txn) waits(n *node, reason, message string) {
	if job := t.rec(n.id()).GetJob(); graph.IsTerminal(job.GetState()) || job.GetReason() == reason && job.GetMessage() == message {
		return
	}
	t.change(n.id(), func(rec *storev1.JobRecord) { rec.Job.Reason, rec.Job.Message = reason, message })
}

// recorded: the native job exists.
func (t *txn) recorded(c *cluster, n *node, sub translators.Submission, r backend.SubmitResult) {
	submitTime := r.Ref.SubmitTime
	if submitTime.IsZero() {
		submitTime = t.now
	}
	ended := graph.IsTerminal(t.rec(n.id()).GetJob().GetState()) // cancelled or ruled out while the call was under way
	t.change(n.id(), func(rec *storev1.JobRecord) {
		t.native(rec, r.Ref.ID, submitTime, r.Digest)
		rec.Held, rec.Cleanup = sub.Hold, rec.GetCleanup() || ended
		rec.Job.Logs = c.Backend.Logs(rec.GetJob(), sub.Token, -1)
		rec.Job.Notes = append(rec.Job.Notes, r.Notes...)
		current(rec).Indices = indices(sub.Instances)
	})
	for _, in := range sub.Instances {
		if graph.IsTerminal(t.rec(in.JobID).GetJob().GetState()) {
			continue
		}
		t.change(in.JobID, func(kid *storev1.JobRecord) {
			t.native(kid, instanceID(r.Ref.ID, in.Position), submitTime, "")
			kid.Job.Logs = c.Backend.Logs(t.rec(n.id()).GetJob(), sub.Token, in.Position)
		})
	}
}

// native writes a native id into a job and its current attempt.
func (t *txn) native(rec *storev1.JobRecord, id string, submitTime time.Time, digest string) {
	job, at := rec.GetJob(), current(rec)
	at.NativeId, at.SubmitTime, at.NativeDigest = id, stamp(submitTime), digest
	job.NativeId, job.SubmitTime = id, stamp(submitTime)
	if graph.IsTerminal(job.GetState()) || len(job.GetCounts()) > 0 {
		return // an array's own state follows from its instances
	}
	at.State, job.State, job.Reason, job.Message = dagbridgev1.Job_SUBMITTED, dagbridgev1.Job_SUBMITTED, "", ""
}

// release lets a batch start once every member that lives is in: whoever waits for a member natively is known to the scheduler.
func (t *txn) release(batch string) {
	members := t.members(batch)
	for _, n := range members {
		rec := t.rec(n.id())
		if current(rec).GetNativeId() == "" && !graph.IsTerminal(rec.GetJob().GetState()) {
			return
		}
	}
	for _, n := range members {
		if rec := t.rec(n.id()); rec.GetHold() && !rec.GetNative() {
			t.change(n.id(), func(rec *storev1.JobRecord) { rec.Hold = false })
		}
	}
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
			t.endByRule(m, dagbridgev1.Job_FAILED, "SUBMISSION_REFUSED", said)
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
