package engine

import (
	"slices"

	storev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/store/v1"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/translators/graph"
)

// double is a native job, or a position in its array, that runs nothing since another with its token does. Of an array and
// its double each may have started some of the instances.
type double struct {
	nativeID string
	// position in the array; -1: all of it.
	position int
}

// double notes one, and says whether it was known.
func (m *memory) double(n *node, d double) (known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n.duplicates == nil {
		n.duplicates = map[double]bool{}
	}
	known = n.duplicates[d]
	n.duplicates[d] = true
	return known
}

// mayRunElsewhere: an earlier request for what was cancelled before it started may have arrived since, and its native job may
// run. The token is looked for once more before it counts as dead.
func (t *txn) mayRunElsewhere(n *node, obs backend.Observation) bool {
	if !t.rec(n.id()).GetResubmitted() {
		return false
	}
	t.e.mem.double(n, double{obs.Ref.ID, obs.Position}) // this one has run nothing
	return !t.e.mem.askRecheck(n)
}

// settled: an instance of a native array has ended, or has only to wait until the others have, for another attempt.
func settled(rec *storev1.JobRecord) bool {
	return graph.IsTerminal(rec.GetJob().GetState()) || renews(rec)
}

// renews: it is to have another attempt; that it had one by a native id tells it from one that is not submitted yet.
func renews(rec *storev1.JobRecord) bool {
	return rec.GetJob().GetState() == dagbridgev1.Job_ACCEPTED && current(rec).GetNativeId() != ""
}

// givenUp is how many instances of a unit that are not settled a native job is known to run nothing for, and of how many. A
// unit that is no array counts as one.
func (m *memory) givenUp(n *node, nativeID string) (given, of int) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	all := n.duplicates[double{nativeID, -1}]
	for _, pos := range n.positions() {
		if kid := m.element(n, pos); kid == nil || settled(kid.rec) {
			continue
		}
		if of++; all || n.duplicates[double{nativeID, pos}] {
			given++
		}
	}
	if of == 0 {
		if of = 1; all {
			given = 1
		}
	}
	return given, of
}

// reasonDouble is said of a job whose native job on record was a double, while the one that has started is looked for.
const reasonDouble = "DOUBLE"

// lookedFor: what has become of some element of an array is being found out.
func (t *txn) lookedFor(array *storev1.JobRecord) bool {
	return slices.ContainsFunc(t.jobsIn(array), func(id string) bool {
		job := t.rec(id).GetJob()
		return job.GetState() == dagbridgev1.Job_ACCEPTED && job.GetReason() == reasonDouble
	})
}

// forget: the native job on record ran nothing, since another with the same token had started. That other is looked for. When
// both are arrays that have started some instances each, that waits until those of the one on record have ended.
func (t *txn) forget(n *node, obs backend.Observation) {
	known := t.e.mem.double(n, double{obs.Ref.ID, obs.Position})
	if given, of := t.e.mem.givenUp(n, obs.Ref.ID); known && given < of {
		return
	}
	unknown := func(rec *storev1.JobRecord) {
		job := rec.GetJob()
		current(rec).NativeId, job.NativeId = "", ""
		if len(job.GetCounts()) == 0 && !isCarrier(rec) {
			job.State, job.Reason, job.StartTime = dagbridgev1.Job_ACCEPTED, reasonDouble, nil
			job.Message = "native job " + obs.Ref.ID + " was a double and ran nothing; the one that started is looked for"
		}
	}
	t.elements(n, func(_ int, id string) {
		if !settled(t.rec(id)) {
			t.change(id, unknown)
		}
	})
	t.change(n.id(), unknown)
	t.e.mem.touch(n, func() { n.maybe = true })
}
