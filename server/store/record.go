package store

import (
	"bytes"
	"fmt"
	"slices"

	storev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/store/v1"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// Record is a job's record, nil when there is none. It is shared: change a clone.
func (tx *Tx) Record(id string) *storev1.JobRecord {
	if rec := tx.Dirty(id); rec != nil {
		return rec
	}
	if rec := tx.seen[id]; rec != nil {
		return rec
	}
	key, ok := parseID(id)
	if !ok {
		return nil
	}
	rec := &storev1.JobRecord{}
	if !tx.read(jobs, key, rec) {
		return nil
	}
	if tx.writable() {
		tx.seen[id] = rec
	}
	return rec
}

// Dirty is the record of a job that this transaction has put, by this function or another of its batch; else nil.
func (tx *Tx) Dirty(id string) *storev1.JobRecord { return tx.dirty[id] }

// Put inserts or replaces a job's record and its index entries. From here on the record is immutable. A name (key, try, uid) is
// one job's: see Named first.
func (tx *Tx) Put(rec *storev1.JobRecord) {
	id := rec.GetJob().GetId()
	key, ok := parseID(id)
	if !ok {
		panic(fmt.Sprintf("store: the job id %q is not a UUID", id))
	}
	old := tx.Record(id)
	tx.reindex(index(old), index(rec))
	tx.write(jobs, key, rec)
	if old == nil {
		tx.added++
	}
	if tx.dirty[id] == nil {
		tx.order = append(tx.order, id)
	}
	tx.dirty[id] = rec
}

// reindex replaces index entries of a record, touching only those that differ. A key that stays keeps its value.
func (tx *Tx) reindex(old, new []entry) {
	for _, e := range new {
		if !slices.ContainsFunc(old, e.same) {
			tx.put(e.bucket, e.key, e.value)
		}
	}
	for _, e := range old {
		if !slices.ContainsFunc(new, e.same) {
			tx.delete(e.bucket, e.key)
		}
	}
}

// remove deletes a job's record, its task and all index entries; of its run too when it was the last job.
func (tx *Tx) remove(rec *storev1.JobRecord) {
	job := rec.GetJob()
	key, _ := parseID(job.GetId())
	tx.reindex(index(rec), nil)
	tx.removeTask(key)
	tx.delete(jobs, key)
	tx.added--
	delete(tx.seen, job.GetId())
	delete(tx.dirty, job.GetId())
	tx.removeRunIfEmpty(job.GetRunId())
}

// Newest is the id of the newest job of a task: of its newest generation the highest try, the last one created. "" when there is none.
func (tx *Tx) Newest(key *dagbridgev1.TaskKey) string {
	return idAtEnd(tx.lastNamed(tx.newestGeneration(key)))
}

// NewestTry is the id of the newest job of one try of a task's newest generation, whatever its uid. "" when there is none.
func (tx *Tx) NewestTry(key *dagbridgev1.TaskKey, try int32) string {
	return idAtEnd(tx.lastNamed(appendInt32(tx.newestGeneration(key), try)))
}

// newestGeneration begins the names of a task's newest generation, in the order of their age.
func (tx *Tx) newestGeneration(of *dagbridgev1.TaskKey) []byte {
	key := appendTaskKey(nil, of)
	if last := tx.lastNamed(append(key, nameOfLater)); last != nil {
		return byAge(key, sortedInt32(last[:4]))
	}
	return byAge(key, 0)
}

// lastNamed is the rest of the last of the names that begin so; nil when there is none.
func (tx *Tx) lastNamed(prefix []byte) []byte {
	p := postings{c: tx.bucket(names).Cursor(), prefix: prefix}
	return p.atMost(bytes.Repeat([]byte{0xff}, 8+idLen))
}

func idAtEnd(name []byte) string {
	if name == nil {
		return ""
	}
	return formatID(name[len(name)-idLen:])
}

// Named is the id of the job that was submitted, or is also known, under a try and uid of a task. "" when there is none.
func (tx *Tx) Named(key *dagbridgev1.TaskKey, try int32, uid string) string {
	id := tx.get(names, append(appendInt32(append(appendTaskKey(nil, key), nameByUID), try), uid...))
	if id == nil {
		return ""
	}
	return formatID(id)
}

// Children calls fn for the instances of an array, in the order of their positions, until it returns false.
func (tx *Tx) Children(parentID string, fn func(id string) bool) {
	if parent, ok := parseID(parentID); ok {
		tx.each(lists, list(listChildren, parent), func(key []byte) bool { return fn(formatID(key[len(key)-idLen:])) })
	}
}

// Live calls fn for the records that are not at their end or have something left to clean up, until it returns false:
// oldest first, carriers after the others, array instances last.
func (tx *Tx) Live(fn func(*storev1.JobRecord) bool) {
	more := true
	for _, tag := range []byte{listLive, listLiveCarriers, listLiveInstances} {
		tx.each(lists, []byte{tag}, func(key []byte) bool {
			more = more && fn(tx.Record(formatID(key[1:])))
			return more
		})
	}
}

// Native calls fn for the jobs and attempts that had a native id in a cluster, the newest submit time first, until it
// returns false. Schedulers use ids again, so there may be several.
func (tx *Tx) Native(cluster, nativeID string, fn func(jobID string, attempt int32) bool) {
	prefix := appendPart(appendPart(nil, nativeID), cluster)
	tx.each(natives, prefix, func(key []byte) bool {
		tail := key[len(prefix)+8:]
		return fn(formatID(tail[:idLen]), sortedInt32(tail[idLen:]))
	})
}
