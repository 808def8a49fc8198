package engine

import (
	"time"

	storev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/store/v1"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/translators/graph"
)

// node is a live job in memory. rec is replaced, never changed; the fields below it are volatile and guarded by memory.mu.
type node struct {
	rec *storev1.JobRecord
	// task of a unit, of an array's parent, or of a job that went in with others; an array's instance has its own only when it
	// is a unit. A carrier's is its first job's, which says all that its jobs have in common, or the whole array's.
	task *dagbridgev1.Task
	// ups are a unit's; what is an element of an array waits with all of it.
	ups []upstream
	// kids are the jobs in a native array by element, ended ones included, "" where one has gone on by itself; of an array's
	// parent, its instances by position.
	kids []string

	// maybe: the current token may have reached the scheduler, by an earlier process or a call whose outcome is unknown.
	maybe bool
	// inFlight: it is claimed by a call that submits or looks for it.
	inFlight bool
	// submitAfter is when its turn comes, where only so many may be submitted in a time, or after it was put off so many times.
	submitAfter time.Time
	putOff      int
	// findAfter spaces out looks for it.
	findAfter time.Time
	// duplicates are native jobs that gave themselves up as doubles of another, and held ones that were cancelled as such.
	duplicates map[double]bool
	// seen is the last news of a unit; of an array, of one of its pending instances.
	seen *backend.Observation
	// shownAt is when the last look began that showed the native job under its own token.
	shownAt time.Time
	// fresh: seen came after the last pass.
	fresh bool
	// ordered: what is wanted of the native job has been ordered, and a look has to show whether it was done.
	ordered bool
	// recheck: it is gone and had started, as this or as another native job with its token, which is looked for once more.
	recheck, rechecked bool
	// stuckSince is when the scheduler first refused a change of the native job that it is to make; stuck: for so long that the
	// native job has to go.
	stuckSince time.Time
	stuck      bool
	// marks are the positions whose token must not start any more, since it is to be followed by another; true once the mark
	// is left.
	marks map[int]bool
	// thinned: an element of the array has been cancelled, or has ended by its rule, on its own.
	thinned bool
	// goneSince is when complete answers began to have no trace of it; of a unit that is an array, of each position.
	goneSince map[int]time.Time
	// deadSince is when the native job of a record with cleanup to do was first seen dead: it is watched a while longer, since
	// a scheduler that is killed may forget that it cancelled it. Of an array by position; -1 of others.
	deadSince map[int]time.Time
	// stillRuns: a look has shown a running instance of an array that is to be cancelled.
	stillRuns bool
	// review: something about its upstreams changed that no transaction has looked at yet, or will by the clock alone.
	review      bool
	reviewAfter time.Time
}

// upstream is one edge, resolved to the newest job of its key.
type upstream struct {
	edge  *dagbridgev1.Edge
	key   string
	task  string
	id    string
	setup bool
	// ended is how it ended, once it no longer lives.
	ended dagbridgev1.Job_State
	// kids are the instances of an array that has ended, where it is waited for instance for instance.
	kids []string
}

func (n *node) id() string { return n.rec.GetJob().GetId() }

// isArray: its native job is an array.
func (n *node) isArray() bool { return len(n.kids) > 0 && !n.rec.GetUnrolled() }

// unit: it has a native job of its own.
func (n *node) unit() bool { return isUnit(n.rec) }

func isUnit(rec *storev1.JobRecord) bool { return rec.GetCarrier() == "" && !rec.GetUnrolled() }

func isCarrier(rec *storev1.JobRecord) bool { return len(rec.GetCarried()) > 0 }

// owners are the records that count a job among theirs: the array's parent and the carrier, which may be one.
func owners(rec *storev1.JobRecord) []string {
	parent, carrier := rec.GetJob().GetParent(), rec.GetCarrier()
	switch {
	case parent == carrier && parent == "":
		return nil
	case parent == carrier || carrier == "":
		return []string{parent}
	case parent == "":
		return []string{carrier}
	default:
		return []string{parent, carrier}
	}
}

// inArray says where in which native array a job's files are: the id of the record that is submitted, and the element; the
// job itself and -1 when its native job is its own.
func inArray(rec *storev1.JobRecord) (id string, element int) {
	if rec.GetCarrier() == "" {
		return rec.GetJob().GetId(), -1
	}
	return rec.GetCarrier(), int(rec.GetElement())
}

func (n *node) mayBeSubmitted() bool {
	return n.rec.GetReady() && current(n.rec).GetNativeId() == "" && !graph.IsTerminal(n.rec.GetJob().GetState())
}

// uncertain: a native job that no record names may exist, or a request for one may still arrive.
func (n *node) uncertain() bool {
	return n.maybe || n.inFlight || n.rec.GetSuspect() && current(n.rec).GetNativeId() == ""
}

// cancelledUnsent: a cancelled job that no scheduler can have.
func (n *node) cancelledUnsent() bool {
	job := n.rec.GetJob()
	return job.GetCancelRequestTime() != nil && !graph.IsTerminal(job.GetState()) && !n.uncertain() && current(n.rec).GetNativeId() == ""
}

// thinnedUnsent: jobs of an array that no scheduler can have are not to run, each on its own.
func (n *node) thinnedUnsent() bool {
	return n.isArray() && n.thinned && !n.uncertain() && current(n.rec).GetNativeId() == ""
}

// nothingToClean: it ended here while a call was under way that has made nothing.
func (n *node) nothingToClean() bool {
	return n.unit() && n.rec.GetCleanup() && current(n.rec).GetNativeId() == "" && !n.uncertain()
}

// toFind: a look for its token is due.
func (n *node) toFind() bool {
	return n.maybe || n.recheck || n.rec.GetSuspect() && (current(n.rec).GetNativeId() != "" || n.unwanted())
}

// unwanted: its native job, or with an array all of it, has to go.
func (n *node) unwanted() bool {
	job := n.rec.GetJob()
	if graph.IsTerminal(job.GetState()) || n.isArray() && n.rec.GetCleanup() {
		return n.rec.GetCleanup() && job.GetState() != dagbridgev1.Job_LOST
	}
	return job.GetCancelRequestTime() != nil
}

// toRelease: it went in held and is held no longer.
func (n *node) toRelease() bool {
	return n.rec.GetHeld() && !n.rec.GetHold() && !n.rec.GetSuspect()
}

// wantsOrder: something is wanted of the native job that nobody has ordered yet.
func (n *node) wantsOrder() bool {
	if n.inFlight {
		return false
	}
	for _, left := range n.marks {
		if !left {
			return true
		}
	}
	if n.stillRuns {
		return true
	}
	if n.ordered {
		return false
	}
	if current(n.rec).GetNativeId() == "" {
		return n.uncertain() && n.unwanted() // only the mark can be left
	}
	return n.unwanted() || n.toRelease() || n.thinned
}

func live(rec *storev1.JobRecord) bool {
	return !graph.IsTerminal(rec.GetJob().GetState()) || rec.GetCleanup()
}

// current is the attempt that counts, the last.
func current(rec *storev1.JobRecord) *dagbridgev1.Attempt {
	attempts := rec.GetJob().GetAttempts()
	if len(attempts) == 0 {
		return nil
	}
	return attempts[len(attempts)-1]
}
