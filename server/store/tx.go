package store

import (
	"bytes"
	"encoding/binary"
	"fmt"

	bolt "go.etcd.io/bbolt"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	storev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/store/v1"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// bucket is one of the file's buckets.
type bucket int

const (
	jobs bucket = iota
	tasks
	bodies
	names
	runs
	runnames
	natives
	lists
	changes
	meta
	numBuckets
)

var bucketNames = [numBuckets]string{"jobs", "tasks", "bodies", "names", "runs", "runnames", "natives", "lists", "changes", "meta"}

// fill is how full bbolt leaves a page that it splits. What is only ever appended, to the bucket or to one of its lists,
// leaves full pages; jobs grow once they have attempts, and names come in any order.
var fill = [numBuckets]float64{
	jobs: 0.6, tasks: 0.95, bodies: 0.95, names: 0.5, runs: 0.8, runnames: 0.5, natives: 0.8, lists: 0.9, changes: 0.95, meta: 0.5,
}

// Tx is a transaction: a consistent view of the store and, in Update, what the batch of callers has put so far.
//
// It is valid only inside the function it was handed to. Reading never fails: what cannot be read panics, since the file is
// damaged. A put that fails makes Update fail.
type Tx struct {
	bolt    *bolt.Tx
	buckets [numBuckets]*bolt.Bucket

	seen  map[string]*storev1.JobRecord // records read, by id; nil in View, as dirty is
	dirty map[string]*storev1.JobRecord // records put, by id
	order []string                      // ids of dirty, in the order of their first puts
	puts  int                           // puts of any kind, to tell whether a function has put
	added int                           // records inserted less those deleted
	err   error                         // the first put that failed
}

func (tx *Tx) bucket(b bucket) *bolt.Bucket {
	if tx.buckets[b] == nil {
		tx.buckets[b] = tx.bolt.Bucket([]byte(bucketNames[b]))
		tx.buckets[b].FillPercent = fill[b]
	}
	return tx.buckets[b]
}

func (tx *Tx) get(b bucket, key []byte) []byte { return tx.bucket(b).Get(key) }

func (tx *Tx) put(b bucket, key, value []byte) {
	tx.puts++
	tx.fail(tx.bucket(b).Put(key, value))
}

func (tx *Tx) delete(b bucket, key []byte) {
	tx.puts++
	tx.fail(tx.bucket(b).Delete(key))
}

func (tx *Tx) fail(err error) {
	if tx.err == nil && err != nil {
		tx.err = fmt.Errorf("the store cannot keep this: %w", err)
	}
}

// read unmarshals the value of a key; false when there is none. Nothing of the message refers to the file.
func (tx *Tx) read(b bucket, key []byte, m proto.Message) bool {
	value := tx.get(b, key)
	if value == nil {
		return false
	}
	if err := proto.Unmarshal(value, m); err != nil {
		panic(fmt.Sprintf("the store is damaged: %x in %s: %v", key, bucketNames[b], err))
	}
	return true
}

func (tx *Tx) write(b bucket, key []byte, m proto.Message) {
	value, err := proto.Marshal(m)
	if err != nil {
		tx.puts++
		tx.fail(err)
		return
	}
	tx.put(b, key, value)
}

// scan calls fn for the keys with a prefix, in ascending order, until it returns false. fn must not put: that moves what the
// cursor stands on.
func (tx *Tx) scan(b bucket, prefix []byte, fn func(key, value []byte) bool) {
	c := tx.bucket(b).Cursor()
	for k, v := c.Seek(prefix); k != nil && bytes.HasPrefix(k, prefix); k, v = c.Next() {
		if !fn(k, v) {
			return
		}
	}
}

// each is scan for functions that may put, called for the keys that were there before.
func (tx *Tx) each(b bucket, prefix []byte, fn func(key []byte) bool) {
	if !tx.writable() {
		tx.scan(b, prefix, func(key, _ []byte) bool { return fn(key) })
		return
	}
	var keys [][]byte
	tx.scan(b, prefix, func(key, _ []byte) bool {
		keys = append(keys, key)
		return true
	})
	for _, key := range keys {
		if !fn(key) {
			return
		}
	}
}

// any: there is a key with the prefix.
func (tx *Tx) any(b bucket, prefix []byte) bool {
	k, _ := tx.bucket(b).Cursor().Seek(prefix)
	return k != nil && bytes.HasPrefix(k, prefix)
}

func (tx *Tx) writable() bool { return tx.bolt.Writable() }

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

// reindex replaces index entries, touching only those that differ.
func (tx *Tx) reindex(old, new []entry) {
	stale := make(map[string][]byte, len(old))
	for _, e := range old {
		stale[string(rune(e.bucket))+string(e.key)] = e.value
	}
	for _, e := range new {
		mapKey := string(rune(e.bucket)) + string(e.key)
		if value, ok := stale[mapKey]; !ok || !bytes.Equal(value, e.value) {
			tx.put(e.bucket, e.key, e.value)
		}
		delete(stale, mapKey)
	}
	for _, e := range old {
		if _, ok := stale[string(rune(e.bucket))+string(e.key)]; ok {
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

// Newest is the id of the newest job of a task: of the highest try, the last one created. "" when there is none.
func (tx *Tx) Newest(key *dagbridgev1.TaskKey) string {
	return tx.lastNamed(append(appendTaskKey(nil, key), nameByAge))
}

// NewestTry is the id of the newest job of one try of a task, whatever its uid. "" when there is none.
func (tx *Tx) NewestTry(key *dagbridgev1.TaskKey, try int32) string {
	return tx.lastNamed(appendInt32(append(appendTaskKey(nil, key), nameByAge), try))
}

func (tx *Tx) lastNamed(prefix []byte) string {
	p := postings{c: tx.bucket(names).Cursor(), prefix: prefix}
	last := p.atMost(bytes.Repeat([]byte{0xff}, 4+idLen))
	if last == nil {
		return ""
	}
	return formatID(last[len(last)-idLen:])
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
// oldest first, array instances after all others.
func (tx *Tx) Live(fn func(*storev1.JobRecord) bool) {
	more := true
	for _, tag := range []byte{listLive, listLiveInstances} {
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

// Meta is what SetMeta kept under a name; nil when there is nothing.
func (tx *Tx) Meta(name string) []byte { return bytes.Clone(tx.get(meta, []byte(metaPrefix+name))) }

// SetMeta keeps a value under a name.
func (tx *Tx) SetMeta(name string, value []byte) { tx.put(meta, []byte(metaPrefix+name), value) }

// metaPrefix keeps the engine's names apart from the store's own.
const metaPrefix = "engine/"

func appendUint64(key []byte, n uint64) []byte { return binary.BigEndian.AppendUint64(key, n) }

func unixNano(t *timestamppb.Timestamp) int64 {
	if t == nil {
		return 0
	}
	return t.AsTime().UnixNano()
}
