package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	storev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/store/v1"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/translators/graph"
)

// known is what a look at a cluster has to tell about.
func (e *Engine) known(c *cluster) []backend.Known {
	nodes := e.mem.pick(c.Name, natives, func(*node) bool { return true })
	e.mem.mu.RLock()
	defer e.mem.mu.RUnlock()
	all := make([]backend.Known, 0, len(nodes))
	for _, n := range nodes {
		if k := e.mem.known(n); !n.isArray() || len(k.Positions) > 0 {
			all = append(all, k)
		}
	}
	return all
}

// ending is what an attempt left, read before the transaction that records its end.
type ending struct {
	outputs map[string]*dagbridgev1.Json
	// refused is what is wrong with the outputs.
	refused string
	// unread: they could not be read now.
	unread error
}

// observe settles what a look told. The news of one look are one transaction, or a few.
func (e *Engine) observe(ctx context.Context, c *cluster, news backend.News) {
	e.metrics.Looked(c.Name, e.now().Sub(news.AsOf), news.Err != nil)
	c.mu.Lock()
	if news.Err != nil {
		c.verified, c.outageEnd = false, e.now()
		e.heard(c, false, news.Err.Error())
		c.mu.Unlock()
		return
	}
	c.lastLook = news.AsOf
	e.heard(c, true, news.Server)
	verifies := !news.AsOf.Before(c.outageEnd)
	c.mu.Unlock()

	const chunk = 1000
	ok := true
	for rest := news.Observations; len(rest) > 0; {
		some := rest[:min(chunk, len(rest))]
		rest = rest[len(some):]
		endings := e.endings(ctx, c, some)
		err := e.update(context.WithoutCancel(ctx), func(t *txn) error {
			for i, obs := range some {
				t.observed(c, obs, endings[i], news.AsOf)
			}
			return nil
		})
		if err != nil {
			e.log.Error("recording a look", "cluster", c.Name, "error", err)
			ok = false
		}
		e.see(some, news.AsOf)
	}
	if ok && verifies {
		c.mu.Lock()
		c.verified = true
		c.mu.Unlock()
	}
	e.metrics.Live(c.Name, e.mem.liveOn(c.Name))
	c.kick()
}

// see keeps the last look for converge.
func (e *Engine) see(observations []backend.Observation, asOf time.Time) {
	m := e.mem
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range observations {
		obs := &observations[i]
		n := m.nodes[jobOf(obs.Ref.Token)]
		if n == nil || obs.Gone || current(n.rec).GetToken() != obs.Ref.Token || current(n.rec).GetNativeId() != obs.Ref.ID {
			continue
		}
		n.shownAt = asOf
		if n.isArray() && obs.State != dagbridgev1.Job_SUBMITTED {
			// A running instance says nothing on the pending ones.
			if obs.State == dagbridgev1.Job_RUNNING && m.hasToGo(n, obs.Position) {
				n.stillRuns = true
				m.mark(n)
			}
			continue
		}
		if n.isArray() && n.fresh && n.seen.LaunchFailed {
			continue // what is wanted of this instance is wanted of the array
		}
		seen := *obs // not all of the look's news with it
		n.seen, n.fresh = &seen, true
		m.mark(n)
	}
}

// endings reads what successful attempts left, outside any transaction.
func (e *Engine) endings(ctx context.Context, c *cluster, observations []backend.Observation) []ending {
	endings := make([]ending, len(observations))
	var need []int
	for i, obs := range observations {
		if n := e.mem.node(jobOf(obs.Ref.Token)); n != nil && obs.State == dagbridgev1.Job_SUCCEEDED && e.awaited(n, obs.Position) {
			need = append(need, i)
		}
	}
	parallel(len(need), func(k int) {
		obs := observations[need[k]]
		n := e.mem.node(jobOf(obs.Ref.Token))
		if n == nil {
			return
		}
		raw, err := c.Backend.Outputs(ctx, obs.Ref, n.rec.GetJob(), obs.Position)
		out := &endings[need[k]]
		var refused *backend.OutputError
		switch {
		case errors.As(err, &refused):
			out.refused = refused.Sentence
		case err != nil:
			out.unread = err
		default:
			out.outputs, out.refused = e.parseOutputs(raw)
		}
	})
	return endings
}

// awaited: the job an observation is about has not ended here.
func (e *Engine) awaited(n *node, position int) bool {
	m := e.mem
	m.mu.RLock()
	defer m.mu.RUnlock()
	rec := n.rec
	if n.isArray() && position >= 0 && position < len(n.kids) {
		kid := m.nodes[n.kids[position]]
		if kid == nil {
			return false
		}
		rec = kid.rec
	}
	state := rec.GetJob().GetState()
	return !graph.IsTerminal(state) || state == dagbridgev1.Job_LOST && !rec.GetCorrected()
}

// observed settles one observation.
func (t *txn) observed(c *cluster, obs backend.Observation, end ending, asOf time.Time) {
	n := t.e.mem.node(jobOf(obs.Ref.Token))
	if n == nil {
		return
	}
	unit := t.rec(n.id())
	if at := current(unit); at.GetToken() != obs.Ref.Token || at.GetNativeId() != obs.Ref.ID {
		return // of an attempt that counts no more
	}
	id := n.id()
	if n.isArray() {
		if obs.Position < 0 || obs.Position >= len(n.kids) {
			return
		}
		id = n.kids[obs.Position]
	}
	rec := t.rec(id)
	if rec == nil || id != n.id() && rec.GetCarrier() != n.id() {
		return // it has gone on by itself
	}
	if id != n.id() && rec.GetJob().GetNativeId() == "" && !graph.IsTerminal(rec.GetJob().GetState()) && !t.cancelled(rec) {
		return // it is to have another attempt once the others have ended: of this one all is settled
	}
	gone := obs.Gone && obs.State == dagbridgev1.Job_STATE_UNSPECIFIED
	if gone && !t.e.mem.goneFor(n, obs.Position, asOf, t.e.grace) {
		return
	}
	if !obs.Gone {
		t.e.mem.there(n, obs.Position)
	}
	state := rec.GetJob().GetState()
	switch {
	case graph.IsTerminal(state) && !(state == dagbridgev1.Job_LOST && !rec.GetCorrected() && graph.IsTerminal(obs.State)):
		t.watchDead(n, id, obs, gone)
	case gone:
		t.gone(n, id, obs)
	case graph.IsTerminal(obs.State):
		if end.unread != nil {
			t.e.log.Warn("outputs cannot be read yet", "job", id, "error", end.unread)
			return // the next look tries again
		}
		t.attemptEnded(n, id, obs, end)
	case len(obs.Failed) > 0 && !t.cancelled(rec) && t.foreignFailed(n, obs):
	case obs.State != dagbridgev1.Job_STATE_UNSPECIFIED:
		t.moves(id, obs)
	case obs.Reason == backend.Unseen:
		t.unseen(id, obs)
	default:
		t.e.metrics.UnknownWord(c.Name, obs.Message)
	}
}

// unseen: nothing is known of a native job but why.
func (t *txn) unseen(id string, obs backend.Observation) {
	if job := t.rec(id).GetJob(); job.GetReason() == obs.Reason && job.GetMessage() == obs.Message {
		return
	}
	t.change(id, func(rec *storev1.JobRecord) { rec.GetJob().Reason, rec.GetJob().Message = obs.Reason, obs.Message })
}

// moves: a native job lives; what a person sees of it may have changed.
func (t *txn) moves(id string, obs backend.Observation) {
	job := t.rec(id).GetJob()
	start := obs.StartTime
	if obs.State != dagbridgev1.Job_RUNNING {
		start = time.Time{} // Slurm estimates a pending job's start
	}
	if job.GetState() == obs.State && job.GetReason() == obs.Reason && job.GetMessage() == obs.Message && current(t.rec(id)).GetNode() == obs.Node {
		return
	}
	t.change(id, func(rec *storev1.JobRecord) {
		job, at := rec.GetJob(), current(rec)
		job.State, job.Reason, job.Message = obs.State, obs.Reason, obs.Message
		at.State, at.Reason, at.Message, at.Node = obs.State, obs.Reason, obs.Message, obs.Node
		job.StartTime, at.StartTime = nil, nil
		if obs.State == dagbridgev1.Job_RUNNING {
			if start.IsZero() {
				start = t.now
			}
			job.StartTime, at.StartTime = stamp(start), stamp(start)
		}
	})
	// A dependent may wait for the start alone.
	t.touched[graph.KeyString(job.GetKey())] = true
}

// there: a native job is not gone after all.
func (m *memory) there(n *node, position int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(n.goneSince, position)
}

// gone: complete answers have had no trace of a native job for the grace, and it left no exit marker.
func (t *txn) gone(n *node, id string, obs backend.Observation) {
	rec := t.rec(id)
	switch {
	case t.cancelled(rec) && t.mayRunElsewhere(n, obs):
	case t.cancelled(rec):
		t.finishJob(n, id, dagbridgev1.Job_CANCELLED, "CANCELLED", "cancelled; the scheduler has no trace of it any more")
	case !obs.Started && !t.e.mem.marked(n, obs.Position):
		// The next look tells whether it started before the mark was left; then no request that is late can start it.
	case obs.Started && !t.e.mem.askRecheck(n):
		t.e.mem.double(n, double{obs.Ref.ID, obs.Position}) // another native job with its token may be the one that started
	case !obs.Started:
		t.renew(n, id, "RESUBMITTED", fmt.Sprintf("native job %s vanished before it started, and is submitted again", current(rec).GetNativeId()), 0)
	default:
		t.lostOne(n, id, fmt.Sprintf("native job %s had started and is gone without a trace of its end: %s", current(rec).GetNativeId(), obs.Message))
	}
}

// cancelled: a user wants the job, or the array it belongs to, not to run.
func (t *txn) cancelled(rec *storev1.JobRecord) bool {
	if rec.GetJob().GetCancelRequestTime() != nil {
		return true
	}
	parent := rec.GetJob().GetParent()
	return parent != "" && t.rec(parent).GetJob().GetCancelRequestTime() != nil
}

// lost: a unit had started and is gone.
func (t *txn) lost(n *node, sentence string) {
	if n.isArray() {
		runs := n.positions()
		t.elements(n, func(element int, id string) {
			switch kid := t.rec(id); {
			case !slices.Contains(runs, element):
			case renews(kid):
				t.renewed[n.id()] = true
				t.parent(n.id())
			case !settled(kid):
				t.lostOne(n, id, sentence)
			case kid.GetCleanup():
				t.change(id, func(rec *storev1.JobRecord) { rec.Cleanup = false }) // nothing of it is there
			}
		})
		return
	}
	t.lostOne(n, n.id(), sentence)
}

// lostOne: whether it ran to its end is not known. Only a task that allows a second run gets one.
func (t *txn) lostOne(n *node, id, sentence string) {
	if n.task.AtMostOnce != nil && !n.task.GetAtMostOnce() && !t.cancelled(t.rec(id)) {
		t.again(n, id, "LOST", sentence, 0)
		return
	}
	t.finishJob(n, id, dagbridgev1.Job_LOST, "LOST", sentence)
	// Late evidence corrects it, as long as somebody looks.
	t.change(id, func(rec *storev1.JobRecord) { rec.Cleanup = current(rec).GetNativeId() != "" })
}
