package engine

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	storev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/store/v1"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators"
	"github.com/dagbridge/dagbridge/translators/graph"
)

// reservationFaults are what is wrong with a reservation beside what is wrong with its task.
func reservationFaults(w *dagbridgev1.Workflow, reserve *durationpb.Duration) (faults translators.Faults) {
	if reserve != nil && len(w.GetTasks()) == 1 && w.GetTasks()[0].GetArray() != nil {
		faults.Add("tasks[0].array", "an array cannot be reserved; submit it when its turn has come")
	}
	return faults
}

// reserved is how a task meets a reserved job that nobody has claimed, or a reservation whatever job there is.
func (a *admission) reserved(t *txn, one *planned, rec *storev1.JobRecord) meeting {
	job := rec.GetJob()
	ended := graph.IsTerminal(job.GetState())
	switch {
	case a.reserve != nil && job.GetReserved() == nil && !ended && job.GetCancelRequestTime() == nil:
		return meeting{existing: job.GetId(), warning: fmt.Sprintf("task %s is not reserved: job %s of an earlier try is still live", job.GetKey().GetTask(), job.GetId())}
	case a.reserve != nil && job.GetReserved() == nil, job.GetCancelRequestTime() != nil, ended && !hasRun(job):
		return meeting{}
	}
	why := a.unfit(t, one.task, rec)
	if why == "" {
		return meeting{existing: job.GetId(), name: a.reserve == nil}
	}
	m := meeting{warning: fmt.Sprintf("task %s was reserved as job %s, and %s", job.GetKey().GetTask(), job.GetId(), why)}
	switch {
	case ended:
		m.warning += "; it had run by then, and runs again"
	case job.GetStartTime() != nil:
		m.replace = job.GetId()
		m.warning += "; it had started by then, is cancelled, and runs again"
	default:
		m.replace = job.GetId()
		m.warning += "; another job takes its place"
	}
	return m
}

// hasRun: its program did, or there was none to run.
func hasRun(job *dagbridgev1.Job) bool {
	return job.GetStartTime() != nil || job.GetState() == dagbridgev1.Job_SUCCEEDED
}

// unfit says why a reserved job is not what is asked for now; empty when it is. Who claims a job and names no upstream tasks has seen
// to their order himself: they have ended for him, whatever they have come to here.
func (a *admission) unfit(t *txn, asked *dagbridgev1.Task, rec *storev1.JobRecord) string {
	job, task := rec.GetJob(), t.Task(rec.GetJob().GetId())
	now := a.reserve == nil && len(asked.GetUpstream()) == 0
	if now {
		asked = waiting(asked, task)
	}
	if diff := graph.FirstDifference(task, asked); diff != "" {
		return "is now asked for with another content: " + diff
	}
	n := t.e.mem.node(job.GetId())
	if !hasRun(job) {
		if decision, _ := t.decide(n, -1); now && decision != graph.Run {
			return "what it waits for here has not ended as it has for who asks for it now"
		}
		return ""
	}
	for _, edge := range task.GetUpstream() {
		up := t.rec(t.Newest(graph.Upstream(task, edge))).GetJob()
		// A second, since schedulers tell starts in whole ones.
		if up != nil && up.GetCreateTime().AsTime().After(job.GetStartTime().AsTime().Add(time.Second)) {
			return fmt.Sprintf("task %s has been submitted again since it ran", up.GetKey().GetTask())
		}
	}
	return ""
}

// waiting is a task that, where it names no upstream tasks, waits as one does that was handed in ahead of it.
func waiting(asked, ahead *dagbridgev1.Task) *dagbridgev1.Task {
	if len(asked.GetUpstream()) > 0 {
		return asked
	}
	asked = graph.Shallow(asked)
	asked.Upstream, asked.TriggerRule = ahead.GetUpstream(), ahead.GetTriggerRule()
	return asked
}

// lapse cancels a reserved job that nobody has claimed within its time, which begins with the end of its last upstream task.
func (t *txn) lapse(n *node) {
	job := t.rec(n.id()).GetJob()
	if job.GetReserved() == nil || graph.IsTerminal(job.GetState()) || job.GetCancelRequestTime() != nil {
		return
	}
	since := job.GetCreateTime().AsTime()
	for _, u := range t.e.mem.edges(n) {
		up := t.rec(u.id)
		if up == nil { // never submitted, or expired since
			continue
		}
		end := up.GetJob().GetEndTime().AsTime()
		if !graph.IsTerminal(up.GetJob().GetState()) || mayBeTriedAgain(up, t.now) {
			return // its end has this looked at again
		}
		if end.After(since) {
			since = end
		}
	}
	until := since.Add(job.GetReserved().AsDuration())
	if t.now.Before(until) {
		t.e.mem.touch(n, func() { n.review, n.reviewAfter = true, until })
		return
	}
	t.e.log.Info("a reserved job is cancelled: nobody has claimed it", "job", job.GetId(), "within", job.GetReserved().AsDuration())
	t.requestCancel(n.id())
}
