package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	storev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/store/v1"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/store"
	"github.com/dagbridge/dagbridge/translators/graph"
)

// txn is one change of the state of the world, inside a write transaction. Whatever ends in it settles, in the same
// transaction, those who waited for it.
type txn struct {
	*store.Tx
	e   *Engine
	now time.Time
	// touched are the keys whose dependents have to be looked at before the transaction is complete.
	touched map[string]bool
	// parents are arrays' parents and carriers, changed clones, put once at the end however many of their jobs moved.
	parents map[string]*storev1.JobRecord
	// renewed are native arrays of which an element is to have another attempt.
	renewed map[string]bool
	// thinned are native arrays of which a job has been cancelled.
	thinned map[string]bool
	// batches may be complete now.
	batches map[string]bool
	// admitted are the nodes of jobs that this transaction makes.
	admitted []*node
	// expanded are the nodes of arrays whose instances this transaction makes, and of those: staged, until it has come to pass or not.
	expanded *[]string
}

func stamp(t time.Time) *timestamppb.Timestamp { return timestamppb.New(t) }

// rec is a job's present record: what this transaction has put, else memory's, else the store's.
func (t *txn) rec(id string) *storev1.JobRecord {
	if p := t.parents[id]; p != nil {
		return p
	}
	if rec := t.Dirty(id); rec != nil {
		return rec
	}
	m := t.e.mem
	m.mu.RLock()
	if n := m.nodes[id]; n != nil {
		defer m.mu.RUnlock()
		return n.rec
	}
	if rec := m.ended[id]; rec != nil {
		defer m.mu.RUnlock()
		return rec
	}
	m.mu.RUnlock()
	rec := t.Record(id)
	if rec != nil && !live(rec) {
		m.mu.Lock()
		if run := m.runs[rec.GetJob().GetRunId()]; run != nil {
			m.ended[id] = rec
			run.ended = append(run.ended, id)
		}
		m.mu.Unlock()
	}
	return rec
}

// change puts a changed clone of a job's record.
func (t *txn) change(id string, fn func(*storev1.JobRecord)) *storev1.JobRecord {
	before := t.rec(id)
	after := proto.CloneOf(before)
	fn(after)
	t.batches[before.GetBatch()] = true
	if before.GetJob().GetState() != after.GetJob().GetState() || before.GetCarrier() != after.GetCarrier() {
		t.moved(before, after)
	}
	if t.parents[id] != nil {
		t.parents[id] = after
		return after
	}
	t.Put(after)
	return after
}

// moved: a job's state has changed, or its place; its array's parent, its carrier and its dependents may follow.
func (t *txn) moved(before, after *storev1.JobRecord) {
	job, from, to := after.GetJob(), before.GetJob().GetState(), after.GetJob().GetState()
	if from != to {
		if !graph.CanMove(from, to) {
			t.e.log.Error("a move that the state table does not know", "job", job.GetId(), "from", from, "to", to)
		}
		t.touched[graph.KeyString(job.GetKey())] = true
		if graph.IsTerminal(to) && job.EndTime == nil {
			job.EndTime = stamp(t.now)
		}
	}
	for _, owner := range owners(before) {
		t.count(owner, from, -1)
	}
	for _, owner := range owners(after) {
		t.count(owner, to, 1)
	}
}

// count keeps how many jobs of an array's parent, or of a carrier, are in a state.
func (t *txn) count(owner string, state dagbridgev1.Job_State, by int32) {
	job := t.parent(owner).GetJob()
	if job.Counts == nil {
		job.Counts = map[string]int32{}
	}
	if job.Counts[state.String()] += by; job.Counts[state.String()] <= 0 {
		delete(job.Counts, state.String())
	}
}

// parent is an array's parent, or a carrier, to be settled and put at the end of the transaction.
func (t *txn) parent(id string) *storev1.JobRecord {
	if t.parents[id] == nil {
		t.parents[id] = proto.CloneOf(t.rec(id))
	}
	t.touched[graph.KeyString(t.parents[id].GetJob().GetKey())] = true
	return t.parents[id]
}

// elements calls fn for the jobs that are in a unit's native array, in order; those that have gone on by themselves are not.
func (t *txn) elements(n *node, fn func(element int, id string)) {
	if !n.isArray() {
		return
	}
	for element, id := range n.kids {
		if id != "" && t.rec(id).GetCarrier() == n.id() {
			fn(element, id)
		}
	}
}

// states of an array's instances, from its parent's counts.
func states(counts map[string]int32) map[dagbridgev1.Job_State]int {
	by := map[dagbridgev1.Job_State]int{}
	for word, n := range counts {
		by[dagbridgev1.Job_State(dagbridgev1.Job_State_value[word])] = int(n)
	}
	return by
}

// finish settles dependents until nothing moves any more, and puts the arrays' parents.
func (t *txn) finish() {
	for len(t.touched) > 0 {
		keys := t.touched
		t.touched = map[string]bool{}
		t.settleParents()
		for _, n := range t.dependents(keys) {
			t.evaluate(n)
			t.batches[t.rec(n.id()).GetBatch()] = true
		}
	}
	t.cancelArrays()
	batches := slices.Sorted(maps.Keys(t.batches))
	for _, batch := range batches {
		t.release(batch)
	}
	for _, id := range slices.Sorted(maps.Keys(t.parents)) {
		t.Put(t.parents[id])
	}
}

// settleParents derives the arrays' parents' states from their instances'.
func (t *txn) settleParents() {
	for _, id := range slices.Sorted(maps.Keys(t.parents)) {
		parent := t.parents[id]
		job := parent.GetJob()
		by := states(job.GetCounts())
		if by[dagbridgev1.Job_ACCEPTED] > 0 && by[dagbridgev1.Job_SUBMITTED]+by[dagbridgev1.Job_RUNNING] == 0 && (current(parent).GetNativeId() != "" || t.renewed[job.GetId()]) && !t.lookedFor(parent) {
			t.nextArrayAttempt(parent)
			delete(t.renewed, job.GetId())
		}
		to := graph.Aggregate(by)
		if to == job.GetState() {
			continue
		}
		job.State = to
		t.touched[graph.KeyString(job.GetKey())] = true
		t.batches[parent.GetBatch()] = true
		switch {
		case graph.IsTerminal(to):
			job.EndTime = stamp(t.now)
			// Its elements have ended here one by one, and a request for it may still arrive.
			parent.Cleanup = parent.GetCleanup() || isUnit(parent) && current(parent).GetNativeId() == "" && t.e.mem.mayBeThere(job.GetId())
			job.Reason, job.Message = "", ""
			if to != dagbridgev1.Job_SUCCEEDED {
				job.Reason, job.Message = "INSTANCES", fmt.Sprintf("instances by state: %s", countsText(job.GetCounts()))
			}
			if !isCarrier(parent) {
				t.awaitTry(parent, t.e.mem.node(job.GetId()).task)
			}
		case to == dagbridgev1.Job_RUNNING:
			job.EndTime = nil
			if job.GetStartTime() == nil && begun(parent) {
				job.StartTime = stamp(t.now)
			}
		default:
			job.EndTime = nil
		}
	}
}

// begun: it runs, or of an array some element does or has, so its rule has held.
func begun(rec *storev1.JobRecord) bool {
	counts := rec.GetJob().GetCounts()
	if len(counts) == 0 {
		return rec.GetJob().GetState() == dagbridgev1.Job_RUNNING
	}
	by := states(counts)
	return by[dagbridgev1.Job_RUNNING]+by[dagbridgev1.Job_SUCCEEDED]+by[dagbridgev1.Job_FAILED]+by[dagbridgev1.Job_LOST] > 0
}

func countsText(counts map[string]int32) string {
	var parts []string
	for word, n := range counts {
		parts = append(parts, fmt.Sprintf("%d %s", n, word))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// dependents are those with an edge to one of some keys: live ones, and those this transaction admits.
func (t *txn) dependents(keys map[string]bool) []*node {
	some := t.e.mem.dependents(keys)
	for _, n := range t.admitted {
		if slices.ContainsFunc(n.ups, func(u upstream) bool { return keys[u.key] }) {
			some = append(some, n)
		}
	}
	return some
}

// evaluate applies a job's trigger rule to what its upstreams are now.
func (t *txn) evaluate(n *node) {
	t.lapse(n)
	rec := t.rec(n.id())
	job := rec.GetJob()
	if graph.IsTerminal(job.GetState()) || rec.GetReady() && (!rec.GetNative() || begun(rec) && !n.elementwise()) || !isUnit(rec) {
		return
	}
	if n.elementwise() {
		t.evaluateElements(n)
		return
	}
	decision, because := t.decide(n, -1)
	switch decision {
	case graph.Wait:
	case graph.Run:
		if rec.GetReady() {
			if current(rec).GetNativeId() == "" && rec.GetNative() && !t.e.mem.mayBeThere(n.id()) {
				t.change(n.id(), func(rec *storev1.JobRecord) { rec.Native, rec.Hold, rec.Batch = false, false, "" })
			}
			return // else the scheduler knows as well
		}
		if word := t.branchedAway(n); word != "" {
			t.endByRule(n, dagbridgev1.Job_SKIPPED, "BRANCH", word)
			return
		}
		if n.task.GetEmpty() {
			t.endByRule(n, dagbridgev1.Job_SUCCEEDED, "", "")
			return
		}
		if n.toExpand() {
			t.expand(n)
			return
		}
		t.change(n.id(), func(rec *storev1.JobRecord) {
			rec.Ready = true
			rec.Job.Reason, rec.Job.Message = "", ""
		})
	case graph.UpstreamFail:
		t.endByRule(n, dagbridgev1.Job_UPSTREAM_FAILED, "UPSTREAM", because)
	default:
		t.endByRule(n, dagbridgev1.Job_SKIPPED, "UPSTREAM", because)
	}
}

// decide is the trigger rule's word, and a sentence on which upstream brought it about; for the element that an array has at
// a position, with -1 for all of a unit.
func (t *txn) decide(n *node, position int) (graph.Decision, string) {
	var counted, required graph.Counts
	started, timed := true, false
	because := ""
	blame := func(up *storev1.JobRecord, task string, state dagbridgev1.Job_State) {
		if because == "" && graph.IsTerminal(state) && state != dagbridgev1.Job_SUCCEEDED {
			because = fmt.Sprintf("upstream %s is %s", task, state)
			if reason := up.GetJob().GetReason(); reason != "" && reason != "UPSTREAM" {
				because += " (" + reason + ")"
			}
		}
	}
	for _, u := range t.e.mem.edges(n) {
		if u.id == "" {
			continue // optional, and never submitted
		}
		up := t.rec(u.id)
		if up == nil {
			continue // expired since: it had ended
		}
		if u.edge.GetCondition() == dagbridgev1.Edge_STARTED {
			started = started && t.hasStarted(up, u.edge)
			timed = timed || u.edge.GetDelay() != nil
			continue
		}
		if len(up.GetJob().GetCounts()) > 0 && position >= 0 && u.edge.GetInstances() == dagbridgev1.Edge_SAME_INDEX {
			if up = t.rec(t.instance(u.id, position)); up == nil {
				continue
			}
		}
		counts := &counted
		if u.edge.GetCondition() == dagbridgev1.Edge_SUCCEEDED {
			counts = &required
		}
		tryAgain := mayBeTriedAgain(up, t.now)
		timed = timed || tryAgain
		if c := up.GetJob().GetCounts(); len(c) > 0 && !tryAgain {
			for state, k := range states(c) {
				counts.AddSome(k, state, u.setup)
				blame(up, u.task, state)
			}
			continue
		}
		state := up.GetJob().GetState()
		if tryAgain {
			state = dagbridgev1.Job_RUNNING
		}
		counts.Add(state, u.setup)
		blame(up, u.task, state)
	}
	// What has to succeed counts first, so that the end does not depend on who is faster.
	decision := graph.Decide(graph.AllSuccess, required)
	if decision == graph.Run {
		decision = graph.Decide(n.task.GetTriggerRule(), counted)
	}
	if decision == graph.Run && !started {
		decision = graph.Wait
	}
	if decision == graph.Wait && timed {
		t.e.mem.touch(n, func() { n.review, n.reviewAfter = true, t.now.Add(tick) })
	}
	return decision, because
}

// hasStarted: an edge with condition STARTED holds.
func (t *txn) hasStarted(up *storev1.JobRecord, edge *dagbridgev1.Edge) bool {
	job := up.GetJob()
	if graph.IsTerminal(job.GetState()) {
		return true
	}
	return job.GetStartTime() != nil && !t.now.Before(job.GetStartTime().AsTime().Add(edge.GetDelay().AsDuration()))
}

// mayBeTriedAgain: a failure does not count for dependents while the orchestrator may still try again.
func mayBeTriedAgain(rec *storev1.JobRecord, now time.Time) bool {
	return rec.GetTryAgainUntil() != nil && now.Before(rec.GetTryAgainUntil().AsTime())
}

// branchedAway says why a branch does not choose the task; empty when it does.
func (t *txn) branchedAway(n *node) string {
	want := n.task.GetSkipUnless()
	if want == nil {
		return ""
	}
	for _, u := range t.e.mem.edges(n) {
		if u.task != want.GetTask() {
			continue
		}
		value := t.rec(u.id).GetJob().GetOutputs()[want.GetOutput()]
		if value != nil && holdsWord(value.GetText(), want.GetContains()) {
			return ""
		}
	}
	return fmt.Sprintf("output %s of %s does not hold %q", want.GetOutput(), want.GetTask(), want.GetContains())
}

// endByRule ends a job that its trigger rule or branch keeps from running. A native job of it may be waiting in a scheduler:
// it can never start, and is cancelled until it is proven dead.
func (t *txn) endByRule(n *node, state dagbridgev1.Job_State, reason, message string) {
	state, reason, message = t.verdict(n, state, reason, message)
	t.elements(n, func(_ int, id string) { t.end(id, state, reason, message) })
	t.end(n.id(), state, reason, message)
}

// end ends a job here, whatever its native job does; what is native is cleaned up.
func (t *txn) end(id string, state dagbridgev1.Job_State, reason, message string) {
	rec := t.rec(id)
	native := isUnit(rec) && (current(rec).GetNativeId() != "" || t.e.mem.mayBeThere(id))
	array := len(rec.GetJob().GetCounts()) > 0 || isCarrier(rec)
	if graph.IsTerminal(rec.GetJob().GetState()) || array && !native {
		return
	}
	t.change(id, func(rec *storev1.JobRecord) {
		if !array { // an array's own state follows from its instances
			rec.Job.State, rec.Job.Reason, rec.Job.Message = state, reason, message
		}
		rec.Hold, rec.Suspect = false, rec.GetSuspect() && current(rec).GetNativeId() == ""
		rec.Cleanup = rec.Cleanup || native
	})
}
