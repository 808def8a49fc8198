package store

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// The change log numbers every put of a job. An entry is what one commit has put: its key is the number of its last change,
// its value the job ids in order. The bucket's sequence is the last number.

// Change is a job that was put.
type Change struct {
	// Seq numbers the changes, from 1.
	Seq uint64
	// Job as it is now, which may be newer than the change.
	Job *dagbridgev1.Job
}

// trimMost is how many entries one transaction deletes from the log's old end.
const trimMost = 1000

// logChanges appends what the transaction has put, drops what is too old, and keeps the count of jobs.
func (s *Store) logChanges(tx *Tx) {
	if tx.added != 0 {
		b := tx.bucket(jobs)
		tx.fail(b.SetSequence(uint64(int64(b.Sequence()) + int64(tx.added))))
	}
	if len(tx.order) == 0 {
		return
	}
	b := tx.bucket(changes)
	last := b.Sequence() + uint64(len(tx.order))
	ids := make([]byte, 0, len(tx.order)*idLen)
	for _, id := range tx.order {
		key, _ := parseID(id)
		ids = append(ids, key...)
	}
	tx.put(changes, appendUint64(nil, last), ids)
	tx.fail(b.SetSequence(last))

	// Seldom and in passing: most commits should not touch the page at the old end.
	if oldest := oldestChange(tx); last-oldest < s.maxChanges+s.maxChanges/16 {
		return
	}
	var stale [][]byte
	tx.scan(changes, nil, func(key, _ []byte) bool {
		if last-binary.BigEndian.Uint64(key) < s.maxChanges || len(stale) == trimMost {
			return false
		}
		stale = append(stale, key)
		return true
	})
	for _, key := range stale {
		tx.delete(changes, key)
	}
}

// oldestChange is the number of the first change that the log has; one after the last when it is empty.
func oldestChange(tx *Tx) uint64 {
	key, ids := tx.bucket(changes).Cursor().First()
	if key == nil {
		return tx.bucket(changes).Sequence() + 1
	}
	return firstOf(key, ids)
}

// firstOf is the number of the first change in an entry.
func firstOf(key, ids []byte) uint64 {
	return binary.BigEndian.Uint64(key) - uint64(len(ids)/idLen) + 1
}

// Changes are the changes after a number, at most max of them, each job once with its last change among them, and the number
// after which to go on. Jobs that have been deleted since are left out. ErrOutOfRange when the log does not reach back so far.
func (s *Store) Changes(after uint64, max int) (found []Change, last uint64, err error) {
	err = s.View(func(tx *Tx) error {
		end := tx.bucket(changes).Sequence()
		if after > end || after+1 < oldestChange(tx) {
			return fmt.Errorf("%w: it is %d, and the change log goes from %d to %d", ErrOutOfRange, after, oldestChange(tx), end)
		}
		last = min(end, after+uint64(max))
		newest := map[string]uint64{}
		var order []string
		c := tx.bucket(changes).Cursor()
		for key, ids := c.Seek(appendUint64(nil, after+1)); key != nil && firstOf(key, ids) <= last; key, ids = c.Next() {
			for seq := firstOf(key, ids); len(ids) > 0; seq, ids = seq+1, ids[idLen:] {
				if seq > after && seq <= last {
					id := string(ids[:idLen])
					newest[id] = seq
					order = append(order, id)
				}
			}
		}
		for i, id := range order {
			seq := after + 1 + uint64(i)
			if newest[id] != seq {
				continue
			}
			if rec := tx.Record(formatID([]byte(id))); rec != nil && !isCarrier(rec) {
				found = append(found, Change{seq, rec.GetJob()})
			}
		}
		return nil
	})
	return found, last, err
}

// Changed is closed at the next commit that puts jobs.
func (s *Store) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// Seq is the number of the last change.
func (s *Store) Seq() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seq
}

// ResumeToken says to a client where to go on: after this change of this store.
func (s *Store) ResumeToken(seq uint64) string { return s.id + "-" + strconv.FormatUint(seq, 10) }

// ParseResumeToken is the inverse of ResumeToken: ErrBadToken when it is none, ErrOutOfRange when it is another store's.
func (s *Store) ParseResumeToken(token string) (uint64, error) {
	id, text, ok := strings.Cut(token, "-")
	seq, err := strconv.ParseUint(text, 10, 64)
	if !ok || err != nil {
		return 0, fmt.Errorf("%w: %q", ErrBadToken, token)
	}
	if id != s.id {
		return 0, fmt.Errorf("%w: %q is of another store", ErrOutOfRange, token)
	}
	return seq, nil
}
