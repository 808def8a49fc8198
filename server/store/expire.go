package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"time"

	storev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/store/v1"
)

const (
	// expireLook is how many records one view looks at.
	expireLook = 5000
	// expireBatch is how many jobs one transaction deletes, which the updates of others wait for: some 10 ms.
	expireBatch = 500
)

// Expire deletes ended jobs, the oldest first: those that ended more than maxAge before now, and others until no more than
// maxJobs are left; 0 stands for no limit. It returns how many it deleted. Names, native ids, labels and tasks go with
// them, scripts that no other job runs, and runs with their last job. Jobs of a run in which something is live are kept,
// and so is an array of which an instance is. A carrier goes after the last of its jobs.
func (s *Store) Expire(now time.Time, maxAge time.Duration, maxJobs int) (deleted int, err error) {
	e := expiry{store: s, maxJobs: maxJobs}
	if maxAge > 0 {
		e.cutoff = now.Add(-maxAge)
	}
	for more := true; more; {
		var due []string
		if due, more, err = e.look(); err != nil {
			return e.deleted, err
		}
		for len(due) > 0 {
			if due, err = e.delete(due); err != nil {
				return e.deleted, err
			}
		}
	}
	return e.deleted, nil
}

// expiry is one walk over the jobs, from the oldest on.
type expiry struct {
	store   *Store
	cutoff  time.Time // zero: no limit of age
	maxJobs int       // 0: no limit of number
	after   []byte    // key of the last record looked at
	deleted int
}

// look finds jobs to delete; more is false when the walk is at its end.
func (e *expiry) look() (due []string, more bool, err error) {
	err = e.store.View(func(tx *Tx) error {
		runs := tx.runsLive()
		surplus := e.surplus(tx)
		c := tx.bucket(jobs).Cursor()
		key, _ := c.Seek(e.after)
		if bytes.Equal(key, e.after) {
			key, _ = c.Next()
		}
		leaving := map[string]bool{}
		for looked := 0; key != nil; key, _ = c.Next() {
			if surplus <= len(due) && !created(key).Before(e.cutoff) {
				return nil
			}
			if looked == expireLook || len(due) == expireBatch {
				more = true
				return nil
			}
			looked++
			e.after = bytes.Clone(key)
			id := formatID(key)
			rec := tx.Record(id)
			if rec.GetJob().GetParent() == "" && e.due(rec, surplus > len(due)) && !runs.live(tx, rec) && !tx.childLive(id) && !tx.carries(rec, leaving) {
				due = append(due, id)
				leaving[id] = true
			}
		}
		return nil
	})
	return due, more, err
}

// delete deletes, in one transaction, as many as it may of the jobs that are still due, and returns the others.
func (e *expiry) delete(due []string) (left []string, err error) {
	deleted := 0
	err = e.store.Update(context.Background(), func(tx *Tx) error {
		runs := tx.runsLive()
		deleted = 0
		for left = due; len(left) > 0 && deleted < expireBatch; left = left[1:] {
			rec := tx.Record(left[0])
			if rec == nil || !e.due(rec, e.surplus(tx) > 0) || runs.live(tx, rec) || tx.carries(rec, nil) {
				continue
			}
			n, more := tx.removeArray(rec, expireBatch-deleted)
			deleted += n
			if more {
				break
			}
		}
		return nil
	})
	if err == nil {
		e.deleted += deleted
	}
	return left, err
}

// surplus is how many records there are too many.
func (e *expiry) surplus(tx *Tx) int {
	if e.maxJobs <= 0 {
		return 0
	}
	return int(tx.bucket(jobs).Sequence()) + tx.added - e.maxJobs
}

// due: the job has ended, and is too old or one too many.
func (e *expiry) due(rec *storev1.JobRecord, surplus bool) bool {
	end := rec.GetJob().GetEndTime()
	if end == nil {
		end = rec.GetJob().GetCreateTime()
	}
	return !live(rec) && (surplus || end.AsTime().Before(e.cutoff))
}

// carries: the record is a carrier of jobs that are there yet, and not about to leave.
func (tx *Tx) carries(rec *storev1.JobRecord, leaving map[string]bool) bool {
	for _, id := range rec.GetCarried() {
		job := tx.Record(id).GetJob()
		if job != nil && !leaving[id] && !leaving[job.GetParent()] {
			return true
		}
	}
	return false
}

// runsLive remembers of runs whether a job or a carrier of theirs is live.
type runsLive map[string]bool

func (tx *Tx) runsLive() runsLive {
	runs := runsLive{}
	tx.each(lists, []byte{listLiveCarriers}, func(key []byte) bool {
		runs[tx.Record(formatID(key[1:])).GetJob().GetRunId()] = true
		return true
	})
	return runs
}

func (r runsLive) live(tx *Tx, rec *storev1.JobRecord) bool {
	run := rec.GetJob().GetRunId()
	if known, ok := r[run]; ok {
		return known
	}
	r[run] = false
	if key, ok := parseID(run); ok {
		tx.scan(lists, list(listRunJobs, key), func(key, _ []byte) bool {
			r[run] = tx.get(lists, list(listLive, nil, key[len(key)-idLen:])) != nil
			return !r[run]
		})
	}
	return r[run]
}

// childLive: an instance of the array is live.
func (tx *Tx) childLive(parentID string) (found bool) {
	tx.Children(parentID, func(id string) bool {
		key, _ := parseID(id)
		found = tx.get(lists, list(listLiveInstances, nil, key)) != nil
		return !found
	})
	return found
}

// removeArray deletes up to room instances of a job and, once none is left, the job; more: there was no room for all.
func (tx *Tx) removeArray(rec *storev1.JobRecord, room int) (n int, more bool) {
	kept := false
	tx.Children(rec.GetJob().GetId(), func(id string) bool {
		child := tx.Record(id)
		switch more = n == room; {
		case more:
			return false
		case live(child):
			kept = true
		default:
			tx.remove(child)
			n++
		}
		return true
	})
	if kept || more {
		return n, more
	}
	tx.remove(rec)
	return n + 1, false
}

// created is when the id was made: the first six bytes of a UUIDv7 are milliseconds.
func created(id []byte) time.Time {
	return time.UnixMilli(int64(binary.BigEndian.Uint64(id) >> 16))
}
