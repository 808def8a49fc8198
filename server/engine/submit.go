package engine

import (
	"context"
	"time"

	storev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/store/v1"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/translators"
	"github.com/dagbridge/dagbridge/translators/graph"
)

// submit hands attempts, which are in flight, to the scheduler and records what became of them, in one transaction. It says whether some have to wait
// for their turn.
func (e *Engine) submit(ctx context.Context, c *cluster, going []*node, subs []translators.Submission) (limited bool) {
	results := c.Backend.Submit(ctx, subs)
	err := e.update(context.WithoutCancel(ctx), func(t *txn) error {
		for i, r := range results {
			t.submitted(c, going[i], subs[i], r)
		}
		return nil
	})
	taken, stuck := false, false
	e.mem.mu.Lock()
	for i, n := range going {
		n.inFlight = false
		// What the store could not record is as unknown as what the scheduler did not answer.
		n.maybe = results[i].Outcome == backend.Unknown || err != nil && results[i].Outcome == backend.Submitted
		pause := results[i].RetryAfter
		switch results[i].Outcome {
		case backend.Submitted:
			taken = true
		case backend.Limited:
			limited = true
		case backend.Busy, backend.NotSent:
			stuck = true
			pause = pauseAfter(n.putOff)
			n.putOff++
		}
		n.submitAfter = e.now().Add(pause)
		e.mem.mark(n)
	}
	e.mem.mu.Unlock()
	for i, r := range results {
		e.metrics.Submitted(c.Name, outcomeWord(r.Outcome))
		if r.Outcome == backend.Submitted && subs[i].Token == token(subs[i].Job.GetId(), 1) { // a later attempt has not waited since then
			e.metrics.Dispatched(c.Name, e.now().Sub(subs[i].Job.GetCreateTime().AsTime()))
		}
	}
	if err != nil {
		e.log.Error("recording submissions", "cluster", c.Name, "error", err)
		taken, stuck = false, true
	}
	e.answered(c, results)
	// What is wrong with one user's jobs, or with a limit of theirs, holds up nobody else's.
	c.backOff(e.now(), stuck && !taken)
	return limited
}

// answered keeps what submissions tell of the cluster.
func (e *Engine) answered(c *cluster, results []backend.SubmitResult) {
	c.mu.Lock()
	defer c.mu.Unlock()
	unsent := ""
	for _, r := range results {
		switch r.Outcome {
		case backend.NotSent:
			unsent = r.Message
		case backend.Submitted, backend.Refused, backend.Busy:
			if !c.reachable { // else the message is what answers
				e.heard(c, true, "")
			}
			return
		}
	}
	if unsent != "" {
		e.heard(c, false, unsent)
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
	c.busyUntil = now.Add(pauseAfter(c.busyTries))
	c.busyTries++
}

// pauseAfter so many others is how long the next one is.
func pauseAfter(tries int) time.Duration { return min(time.Second<<min(tries, 5), 30*time.Second) }

func outcomeWord(o backend.Outcome) string {
	switch o {
	case backend.Submitted:
		return "submitted"
	case backend.Refused:
		return "refused"
	case backend.Busy:
		return "busy"
	case backend.Limited:
		return "limited"
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
		if len(sub.ExcludeNodes) > 0 && !rec.GetSuspect() { // else an earlier request may still arrive
			t.anywhere(n, r.Message)
		} else {
			t.refused(n, r.Message)
		}
	case backend.Busy:
		t.unbatch(rec.GetBatch())
		t.waits(n, "ADMISSION", r.Message)
	case backend.Limited:
		t.waits(n, "RATE_LIMIT", r.Message)
	case backend.NotSent:
		t.waits(n, "CLUSTER_UNREACHABLE", r.Message)
	case backend.Unknown:
		t.waits(n, "CLUSTER_UNREACHABLE", "whether the scheduler took it is being found out: "+r.Message)
	}
}

// waits says why a job, or those that go in as one array, is still not submitted; what is known already is not written again.
func (t *txn) waits(n *node, reason, message string) {
	for _, id := range append([]string{n.id()}, n.kids...) {
		rec := t.rec(id)
		if job := rec.GetJob(); rec == nil || id != n.id() && settled(rec) || graph.IsTerminal(job.GetState()) || job.GetReason() == reason && job.GetMessage() == message {
			continue
		}
		t.change(id, func(rec *storev1.JobRecord) { rec.Job.Reason, rec.Job.Message = reason, message })
	}
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
		rec.Resubmitted = rec.GetResubmitted() || rec.GetSuspect()
		rec.Job.Logs = c.Backend.Logs(rec.GetJob(), sub.Token, -1)
		rec.Job.Notes = append(rec.Job.Notes, r.Notes...)
		current(rec).Indices = indices(sub.Instances)
	})
	for _, in := range sub.Instances {
		if kid := t.rec(in.JobID); settled(kid) || kid.GetCarrier() != n.id() {
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
	if graph.IsTerminal(job.GetState()) || len(job.GetCounts()) > 0 || isCarrier(rec) {
		return // an array's own state follows from its instances
	}
	at.State, job.State, job.Reason, job.Message = dagbridgev1.Job_SUBMITTED, dagbridgev1.Job_SUBMITTED, "", ""
}
