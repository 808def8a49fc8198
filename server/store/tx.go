package store

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	bolt "go.etcd.io/bbolt"
	"google.golang.org/protobuf/proto"

	storev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/store/v1"
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
	jobs: 0.6, tasks: 0.95, bodies: 0.95, names: 0.8, runs: 0.8, runnames: 0.5, natives: 0.8, lists: 0.9, changes: 0.95, meta: 0.5,
}

// Tx is a transaction: a consistent view of the store and, in Update, what the batch of callers has put so far.
//
// It is valid only inside the function it was handed to. Reading never fails: what cannot be read panics, since the file is
// damaged. A put that fails makes Update fail.
type Tx struct {
	bolt    *bolt.Tx
	buckets [numBuckets]*bolt.Bucket

	pending [numBuckets][]entry // put, and not in the bucket yet

	seen  map[string]*storev1.JobRecord // records read, by id; nil in View, as dirty is
	dirty map[string]*storev1.JobRecord // records put, by id
	order []string                      // ids of dirty, in the order of their first puts
	puts  int                           // puts of any kind, to tell whether a function has put
	added int                           // records inserted less those deleted
	err   error                         // the first put that failed
}

// bucket is a bucket with all that has been put into it.
func (tx *Tx) bucket(b bucket) *bolt.Bucket {
	tx.flush(b)
	return tx.open(b)
}

func (tx *Tx) open(b bucket) *bolt.Bucket {
	if tx.buckets[b] == nil {
		tx.buckets[b] = tx.bolt.Bucket([]byte(bucketNames[b]))
		tx.buckets[b].FillPercent = fill[b]
	}
	return tx.buckets[b]
}

// flush writes what is pending in a bucket, in the order of the keys. bbolt splits pages at the commit alone: until then a key
// that goes between others moves all that come after it, which would take a workflow of 100,000 tasks a minute.
func (tx *Tx) flush(b bucket) {
	some := tx.pending[b]
	tx.pending[b] = nil
	slices.SortStableFunc(some, func(a, b entry) int { return bytes.Compare(a.key, b.key) })
	for _, e := range some {
		tx.fail(tx.open(b).Put(e.key, e.value))
	}
}

func (tx *Tx) flushAll() {
	for b := range numBuckets {
		tx.flush(b)
	}
}

func (tx *Tx) get(b bucket, key []byte) []byte { return tx.bucket(b).Get(key) }

// put takes key and value over: they must not be changed any more.
func (tx *Tx) put(b bucket, key, value []byte) {
	tx.puts++
	tx.pending[b] = append(tx.pending[b], entry{b, key, value})
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

// Meta is what SetMeta kept under a name; nil when there is nothing.
func (tx *Tx) Meta(name string) []byte { return bytes.Clone(tx.get(meta, []byte(metaPrefix+name))) }

// SetMeta keeps a value under a name.
func (tx *Tx) SetMeta(name string, value []byte) { tx.put(meta, []byte(metaPrefix+name), value) }

// metaPrefix keeps the engine's names apart from the store's own.
const metaPrefix = "engine/"

func appendUint64(key []byte, n uint64) []byte { return binary.BigEndian.AppendUint64(key, n) }
