package store

import (
	"bytes"
	"encoding/binary"

	"google.golang.org/protobuf/types/known/timestamppb"

	storev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/store/v1"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// The lists: which set of ids a key of the bucket belongs to. After the tag comes what the set is of, then a position: the id,
// in listChildren after the instance's place in the array. Array instances are in listLiveInstances, listChildren and
// natives alone: listing jobs passes a thousand instances without a look at them.
const (
	listLive          = 'a' // jobs that have not ended, or have something left to clean up
	listLiveInstances = 'b' // the same of array instances
	listLiveCarriers  = 'k' // the same of carriers
	listEnded         = 'e' // state (1 byte): jobs that ended so
	listChildren      = 'c' // parent's id: the instances of an array
	listRunJobs       = 'r' // run id: jobs of a run
	listWorkflow      = 'w' // workflow: its jobs
	listWorkflowRuns  = 'v' // workflow: its runs
	listLabel         = 'l' // "name=value": jobs with the label
	listBody          = 'd' // SHA-256: jobs whose script it is
)

// The orders in which a task key's names are kept, after the key.
const (
	nameByAge   = 0 // try, job id: of the first generation
	nameByUID   = 1 // try, uid -> job id
	nameOfLater = 2 // generation, try, job id: of later ones
)

// byAge begins the names of a generation, in the order of their age.
func byAge(key []byte, generation int32) []byte {
	if generation == 0 {
		return append(bytes.Clone(key), nameByAge)
	}
	return appendInt32(append(bytes.Clone(key), nameOfLater), generation)
}

// entry is one key of an index.
type entry struct {
	bucket bucket
	key    []byte
	value  []byte
}

// same: it is the same key of the same bucket.
func (e entry) same(other entry) bool {
	return e.bucket == other.bucket && bytes.Equal(e.key, other.key)
}

// list makes a key, or a prefix of one, of the lists bucket.
func list(tag byte, of []byte, position ...[]byte) []byte {
	key := make([]byte, 0, 1+len(of)+2*idLen)
	key = append(append(key, tag), of...)
	for _, p := range position {
		key = append(key, p...)
	}
	return key
}

// listOf is list for a set that is named by a text.
func listOf(tag byte, of string, position ...[]byte) []byte {
	return list(tag, appendPart(nil, of), position...)
}

// ended: no scheduler moves the job any more.
func ended(state dagbridgev1.Job_State) bool { return state >= dagbridgev1.Job_SUCCEEDED }

// live: the engine still has something to do.
func live(rec *storev1.JobRecord) bool { return !ended(rec.GetJob().GetState()) || rec.GetCleanup() }

// isCarrier: the record is a native array and no job.
func isCarrier(rec *storev1.JobRecord) bool { return len(rec.GetCarried()) > 0 }

// index is every index entry of a record.
func index(rec *storev1.JobRecord) []entry {
	if rec == nil {
		return nil
	}
	job := rec.GetJob()
	id, _ := parseID(job.GetId())
	var entries []entry
	add := func(b bucket, key, value []byte) { entries = append(entries, entry{b, key, value}) }

	if isCarrier(rec) { // nobody's job
		if live(rec) {
			add(lists, list(listLiveCarriers, nil, id), nil)
		}
		return entries
	}
	key := appendTaskKey(nil, job.GetKey())
	name := func(try int32, uid string) {
		add(names, append(appendInt32(byAge(key, rec.GetGeneration()), try), id...), nil)
		add(names, append(appendInt32(append(bytes.Clone(key), nameByUID), try), uid...), id)
	}
	name(job.GetTryNumber(), job.GetUid())
	for _, n := range rec.GetNames() {
		name(n.GetTryNumber(), n.GetUid())
	}
	for _, n := range nativeJobs(job) {
		add(natives, n.key(id), nil)
	}

	if parent, ok := parseID(job.GetParent()); ok {
		if live(rec) {
			add(lists, list(listLiveInstances, nil, id), nil)
		}
		add(lists, list(listChildren, parent, appendInt32(nil, rec.GetPosition()), id), nil)
		return entries
	}
	if live(rec) {
		add(lists, list(listLive, nil, id), nil)
	}
	if ended(job.GetState()) {
		add(lists, list(listEnded, []byte{byte(job.GetState())}, id), nil)
	}
	if run, ok := parseID(job.GetRunId()); ok {
		add(lists, list(listRunJobs, run, id), nil)
	}
	add(lists, listOf(listWorkflow, job.GetKey().GetWorkflow(), id), nil)
	for k, v := range job.GetLabels() {
		add(lists, listOf(listLabel, k+"="+v, id), nil)
	}
	return entries
}

// native is a native job of a job's.
type native struct {
	cluster, id string
	submitted   int64 // Unix nanoseconds; 0: unknown
	attempt     int32 // 0: the job says so, none of its attempts does
}

// nativeJobs are the native jobs of all attempts of a job.
func nativeJobs(job *dagbridgev1.Job) []native {
	var ns []native
	current := job.GetNativeId() == ""
	for _, a := range job.GetAttempts() {
		if a.GetNativeId() == "" {
			continue
		}
		ns = append(ns, native{a.GetCluster(), a.GetNativeId(), unixNano(a.GetSubmitTime()), a.GetNumber()})
		current = current || a.GetNativeId() == job.GetNativeId() && a.GetCluster() == job.GetCluster()
	}
	if !current {
		ns = append(ns, native{job.GetCluster(), job.GetNativeId(), unixNano(job.GetSubmitTime()), 0})
	}
	return ns
}

// key sorts the native jobs of one id by submit time, newest first.
func (n native) key(job []byte) []byte {
	key := appendPart(appendPart(nil, n.id), n.cluster)
	key = binary.BigEndian.AppendUint64(key, ^uint64(n.submitted))
	return appendInt32(append(key, job...), n.attempt)
}

// nativeTail is the length of what follows native id and cluster in a key of natives: submit time, job id, attempt.
const nativeTail = 8 + idLen + 4

func unixNano(t *timestamppb.Timestamp) int64 {
	if t == nil {
		return 0
	}
	return t.AsTime().UnixNano()
}
