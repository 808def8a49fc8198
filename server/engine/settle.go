package engine

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"

	storev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/store/v1"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/translators/graph"
)

// reasonDuplicate is a back end's word for a native job whose script found another's start marker and ran nothing.
const reasonDuplicate = "DUPLICATE"

// reasonMarked is a back end's word for a native job whose script found the mark of a cancel and ran nothing.
const reasonMarked = "MARKED"

// reasonPremature is a back end's word for a native job whose script found that an upstream has not succeeded (translators'
// Submission.Guard) and ran nothing.
const reasonPremature = "PREMATURE"

// reasonNotLaunched is a back end's word for a native job that its node did not start.
const reasonNotLaunched = "LAUNCH_FAILED"

// reasonDependency is a back end's word for a native job that the site cancelled because its dependency cannot hold.
const reasonDependency = "DEPENDENCY"

// attemptEnded: the scheduler, or the exit marker, has told how an attempt ended. n is the unit, id the job or the instance.
func (t *txn) attemptEnded(n *node, id string, obs backend.Observation, end ending) {
	rec := t.rec(id)
	switch {
	case obs.State == dagbridgev1.Job_CANCELLED && obs.StartTime.IsZero() && t.mayRunElsewhere(n, obs):
		return
	case obs.Refused && !t.e.mem.marked(n, obs.Position):
		return // the next look tells whether it started before the mark was left; then it cannot any more
	case t.cancelled(rec) && (obs.Reason == reasonDuplicate || obs.Reason == reasonPremature || obs.Reason == reasonMarked || obs.Reason == reasonNotLaunched || obs.Refused):
		obs.State, obs.Reason, obs.Message = dagbridgev1.Job_CANCELLED, "CANCELLED", "cancelled before the program started"
	case obs.Refused && rec.GetRefused() == "":
		obs.State, obs.Reason, obs.Infrastructure, obs.ExitCode, obs.Signal = dagbridgev1.Job_FAILED, reasonNotLaunched, true, nil, nil
		obs.Message += " on " + obs.Node + " within the second of its start; the program did not run"
	case obs.Reason == reasonDuplicate:
		t.forget(n, obs)
		return
	case obs.Reason == reasonMarked && rec.GetRefused() == "":
		t.note(id, obs)
		t.renew(n, id, "RESUBMITTED", "native job "+obs.Ref.ID+" came to light when its token was no longer to start; it ran nothing, and another is submitted", 0)
		return
	case obs.State == dagbridgev1.Job_CANCELLED && obs.StartTime.IsZero() && !t.cancelled(rec) && t.astray(n, obs):
		t.note(id, obs)
		t.renew(n, id, "RESUBMITTED", "native job "+obs.Ref.ID+" was cancelled by an order for another job, which had this id before the scheduler forgot it; it is submitted again", 0)
		return
	case obs.State == dagbridgev1.Job_CANCELLED && obs.StartTime.IsZero() && !t.cancelled(rec) && t.e.mem.holds(n, func(n *node) bool { return n.stuck }):
		t.note(id, obs)
		t.renew(n, id, "RESUBMITTED", "native job "+obs.Ref.ID+" could neither be released nor changed, and had not started; it was cancelled, and another is submitted", 0)
		return
	case obs.Reason == reasonPremature:
		t.note(id, obs)
		t.hold(n, id, "the scheduler started native job "+obs.Ref.ID+" too early, having lost what it waits for; it ran nothing")
		return
	}
	correction := rec.GetJob().GetState() == dagbridgev1.Job_LOST
	if correction {
		t.change(n.id(), func(rec *storev1.JobRecord) { rec.Corrected = true })
		if id != n.id() {
			t.change(id, func(rec *storev1.JobRecord) { rec.Corrected = true })
		}
	}
	t.note(id, obs)
	state, reason, message := obs.State, obs.Reason, obs.Message
	// own: the program ended by itself, so that its exit code means what the task says.
	own := state == dagbridgev1.Job_FAILED && obs.ExitCode != nil && reason == "" && !obs.Infrastructure
	switch {
	case state == dagbridgev1.Job_SUCCEEDED && end.refused != "":
		state, reason, message = dagbridgev1.Job_FAILED, "OUTPUTS_REFUSED", end.refused
	case own && slices.Contains(n.task.GetSkipExitCodes(), *obs.ExitCode):
		state, reason, message = dagbridgev1.Job_SKIPPED, "EXIT_CODE", fmt.Sprintf("the program ended with %d, which the task takes for skipped", *obs.ExitCode)
	case own && slices.Contains(n.task.GetRetry().GetFinalExitCodes(), *obs.ExitCode):
		t.finishJob(n, id, state, "FINAL_EXIT_CODE", fmt.Sprintf("the program ended with %d, after which the task wants no other attempt", *obs.ExitCode))
		return
	case state == dagbridgev1.Job_CANCELLED && reason == reasonDependency && !t.cancelled(rec):
		t.hold(n, id, "the site cancels jobs whose dependency cannot hold: "+obs.Message)
		return
	case state == dagbridgev1.Job_LOST:
		t.lostOne(n, id, message)
		return
	}
	if state == dagbridgev1.Job_FAILED && !correction && !t.cancelled(rec) && t.retried(n, id, failure(reason, obs), obs.Infrastructure) {
		return
	}
	if state == dagbridgev1.Job_SUCCEEDED {
		t.change(id, func(rec *storev1.JobRecord) {
			rec.Job.Outputs = rec.GetStaged()
			rec.Staged = nil
			for name, value := range end.outputs {
				if rec.Job.Outputs == nil {
					rec.Job.Outputs = map[string]*dagbridgev1.Json{}
				}
				rec.Job.Outputs[name] = value
			}
		})
	}
	t.finishJob(n, id, state, reason, message)
}

// failure says shortly how an attempt failed.
func failure(reason string, obs backend.Observation) string {
	switch {
	case reason != "":
		return reason
	case obs.Signal != nil:
		return fmt.Sprintf("signal %d", *obs.Signal)
	case obs.ExitCode != nil:
		return fmt.Sprintf("exit code %d", *obs.ExitCode)
	default:
		return "no exit code is known"
	}
}

// note writes what a look told of an attempt's end into the attempt and the job.
func (t *txn) note(id string, obs backend.Observation) {
	t.change(id, func(rec *storev1.JobRecord) {
		job, at := rec.GetJob(), current(rec)
		at.State, at.Reason, at.Message = obs.State, obs.Reason, obs.Message
		at.ExitCode, at.Signal = obs.ExitCode, obs.Signal
		job.ExitCode, job.Signal = obs.ExitCode, obs.Signal
		if obs.Node != "" {
			at.Node = obs.Node
		}
		// A job cancelled while pending never started, whatever estimate it carries.
		if obs.State == dagbridgev1.Job_CANCELLED && obs.StartTime.IsZero() {
			at.StartTime, job.StartTime = nil, nil
		}
		if !obs.StartTime.IsZero() {
			at.StartTime, job.StartTime = stamp(obs.StartTime), stamp(obs.StartTime)
		}
		if !obs.EndTime.IsZero() {
			at.EndTime, job.EndTime = stamp(obs.EndTime), stamp(obs.EndTime)
		} else {
			at.EndTime, job.EndTime = stamp(t.now), stamp(t.now)
		}
	})
}

// finishJob ends a job.
func (t *txn) finishJob(n *node, id string, state dagbridgev1.Job_State, reason, message string) {
	state, reason, message = t.verdict(n, state, reason, message)
	t.change(id, func(rec *storev1.JobRecord) {
		job := rec.GetJob()
		job.State, job.Reason, job.Message = state, reason, message
		if job.GetEndTime() == nil {
			job.EndTime = stamp(t.now)
		}
		t.awaitTry(rec, n.task)
		// A scheduler that is killed may forget that it cancelled the job, and run it: it is watched for a while.
		rec.Cleanup = rec.Cleanup || (state == dagbridgev1.Job_CANCELLED || rec.GetRefused() != "") && current(rec).GetNativeId() != ""
	})
}

// awaitTry: after a failure the orchestrator may try again, unless somebody has said by a cancel that it will not.
func (t *txn) awaitTry(rec *storev1.JobRecord, task *dagbridgev1.Task) {
	rec.TryAgainUntil = nil
	job := rec.GetJob()
	failed := job.GetState() == dagbridgev1.Job_FAILED || job.GetState() == dagbridgev1.Job_LOST
	if failed && job.GetTryNumber() < task.GetMaxTries() && !t.cancelled(rec) {
		rec.TryAgainUntil = stamp(t.now.Add(task.GetRetryWindow().AsDuration()))
	}
}

// verdict turns the end of what a rollback cancelled into a failure, and says of a reserved job why it was cancelled.
func (t *txn) verdict(n *node, state dagbridgev1.Job_State, reason, message string) (dagbridgev1.Job_State, string, string) {
	if said := t.rec(n.id()).GetRefused(); said != "" && state == dagbridgev1.Job_CANCELLED {
		return dagbridgev1.Job_FAILED, causeRefused, said
	}
	if state == dagbridgev1.Job_CANCELLED && t.rec(n.id()).GetJob().GetReserved() != nil {
		message = "it was reserved, and nobody has claimed it"
	}
	return state, reason, message
}

// again starts another attempt of a job that has started, after a pause. An array's instance goes in again with those of its
// native array that have to, once all others have ended. A task that went in with others goes on by itself: it knows nothing
// of them.
func (t *txn) again(n *node, id, reason, message string, pause time.Duration) {
	if rec := t.rec(id); id != n.id() && rec.GetJob().GetParent() == "" {
		t.leave(n, id)
	}
	t.renew(n, id, reason, message, pause)
}

// leave takes a job out of the native array that it went in with.
func (t *txn) leave(n *node, id string) {
	element := t.rec(id).GetElement()
	t.change(id, func(rec *storev1.JobRecord) {
		rec.Carrier, rec.Element, rec.Ready = "", 0, true
	})
	t.change(n.id(), func(rec *storev1.JobRecord) { rec.Carried[element] = "" })
}

// renew starts another attempt, after a pause; of a job in a native array in the same one, so that it waits for what that does.
func (t *txn) renew(n *node, id, reason, message string, pause time.Duration) {
	notBefore := t.now.Add(pause)
	alone, joins := t.rec(id).GetCarrier() == "", t.joins(n, id)
	if !alone {
		t.renewed[n.id()] = t.renewed[n.id()] || joins == nil
		t.parent(n.id())
	}
	t.change(id, func(rec *storev1.JobRecord) {
		job, at := rec.GetJob(), current(rec)
		if at.GetToken() != joins.GetToken() && !graph.IsTerminal(at.GetState()) {
			at.State, at.Reason, at.Message = dagbridgev1.Job_LOST, reason, message // nobody has told of its end
		}
		// Once it has started its rule has held, whatever becomes of its upstreams since.
		rec.Native = rec.GetNative() && job.GetStartTime() == nil
		job.State, job.Reason, job.Message = dagbridgev1.Job_ACCEPTED, reason, message
		job.StartTime, job.EndTime, job.SubmitTime, job.ExitCode, job.Signal, job.NativeId = nil, nil, nil, nil, nil, ""
		rec.NotBefore = nil
		rec.Staged = nil // they are the ended attempt's
		if pause > 0 {
			rec.NotBefore = stamp(notBefore)
		}
		switch {
		case alone:
			nextAttempt(rec, following(n.task, at))
		case joins != nil && at.GetToken() != joins.GetToken():
			job.Attempts = append(job.Attempts, proto.CloneOf(joins))
		}
	})
	if joins != nil {
		t.change(n.id(), func(array *storev1.JobRecord) {
			if some := array.GetPositions(); len(some) > 0 && !slices.Contains(some, t.rec(id).GetElement()) {
				array.Positions = append(some, t.rec(id).GetElement())
				slices.Sort(array.Positions)
			}
		})
	}
}

// joins is the attempt of a job's native array that the job goes in with: one that has still to go in, or may be on its way, in
// which case the job follows once the others have ended. No other attempt may be made while that one may be there.
func (t *txn) joins(n *node, id string) *dagbridgev1.Attempt {
	array, at := t.rec(n.id()), current(t.rec(id))
	next := current(array)
	if id == n.id() || next.GetNativeId() != "" || graph.IsTerminal(array.GetJob().GetState()) || at.GetToken() == next.GetToken() && graph.IsTerminal(at.GetState()) {
		return nil
	}
	return next
}

// nextAttempt gives a unit's record its next attempt, with a token of its own.
func nextAttempt(rec *storev1.JobRecord, next *dagbridgev1.Attempt) {
	job := rec.GetJob()
	next.Number = int32(len(job.GetAttempts())) + 1
	next.Cluster, next.State, next.Token = job.GetCluster(), dagbridgev1.Job_ACCEPTED, token(job.GetId(), next.GetNumber())
	job.Attempts = append(job.GetAttempts(), next)
	rec.Suspect, rec.Resubmitted, rec.Hold, rec.Held, rec.Batch = false, false, false, false, ""
}

// nextArrayAttempt submits again, as one array, the instances that are to have another attempt. All others have ended.
func (t *txn) nextArrayAttempt(parent *storev1.JobRecord) {
	n := t.e.mem.node(parent.GetJob().GetId())
	parent.Positions = parent.Positions[:0]
	parent.NotBefore = nil
	var again []*storev1.JobRecord
	next := &dagbridgev1.Attempt{}
	t.elements(n, func(element int, id string) {
		kid := t.rec(id)
		if kid.GetJob().GetState() != dagbridgev1.Job_ACCEPTED {
			if kid.GetCleanup() { // the attempt that was watched counts no more
				t.change(id, func(rec *storev1.JobRecord) { rec.Cleanup = false })
			}
			return
		}
		parent.Positions = append(parent.Positions, int32(element))
		if kid.GetNotBefore() != nil && kid.GetNotBefore().AsTime().After(parent.GetNotBefore().AsTime()) {
			parent.NotBefore = kid.GetNotBefore()
		}
		next = together(next, following(n.task, current(kid)))
		again = append(again, proto.CloneOf(kid))
	})
	current(parent).State = dagbridgev1.Job_FAILED
	nextAttempt(parent, next)
	parent.Job.NativeId = ""
	parent.Native = parent.GetNative() && parent.GetReady() && parent.GetJob().GetStartTime() == nil
	for _, kid := range again {
		kid.NotBefore = nil
		kid.Job.Attempts = append(kid.Job.Attempts, proto.CloneOf(next))
		t.Put(kid)
	}
}

// hold: the scheduler gave up a native dependency that still counts. The job waits here from now on; of an array this one does,
// once the others, of which each may run or wait in the scheduler yet, have come to their own ends.
func (t *txn) hold(n *node, id, why string) {
	array := n.isArray()
	if t.change(n.id(), func(rec *storev1.JobRecord) { rec.Ready, rec.Native = false, rec.GetNative() && array }); array {
		t.renew(n, id, "UPSTREAM", why, 0)
	} else {
		t.again(n, id, "UPSTREAM", why, 0)
	}
	t.evaluate(n)
}

// token is what an attempt's native job is recognised by.
func token(jobID string, number int32) string { return jobID + "." + strconv.Itoa(int(number)) }
