package store

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	storev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/store/v1"
)

// maxBatch bounds how long one transaction makes its callers wait.
const maxBatch = 1024

// call is one caller of Update.
type call struct {
	fn       func(*Tx) error
	err      error
	panicked any       // what fn, or the commit hook, panicked with
	turn     chan bool // true: lead the next batch; false: the outcome is there
}

// Update runs fn in a write transaction that it shares with the other callers waiting at this moment: one commit and one
// fsync for all, and none when nobody has put anything. When it returns nil, what fn has put is durable and the commit hook has seen it.
//
// fn sees what the functions before it in the batch have put. It may run more than once, and in another caller's goroutine;
// it must use its Tx alone, and check before it puts: an error before the first put fails this caller alone and cheaply; after
// one the whole batch is rolled back and run again without it. So it is with a panic, which reaches this caller. A
// commit that finds no room fails every caller in it with ErrFull. Once fn may have run, ctx no longer matters.
func (s *Store) Update(ctx context.Context, fn func(*Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c := &call{fn: fn, turn: make(chan bool, 1)}
	s.mu.Lock()
	s.queue = append(s.queue, c)
	leads := !s.leading
	s.leading = true
	s.mu.Unlock()
	if !leads {
		select {
		case leads = <-c.turn:
		case <-ctx.Done():
			if s.withdraw(c) {
				return ctx.Err()
			}
			leads = <-c.turn
		}
	}
	if leads {
		s.lead()
	}
	if c.panicked != nil {
		panic(c.panicked)
	}
	return c.err
}

// withdraw takes a call from the queue; false when a batch has it already, or it is to lead one.
func (s *Store) withdraw(c *call) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.queue, c)
	if i < 0 || len(c.turn) > 0 {
		return false
	}
	s.queue = slices.Delete(s.queue, i, i+1)
	return true
}

// lead runs the calls that wait, the caller's own first among them, answers them, and tells the next one waiting to lead.
func (s *Store) lead() {
	s.mu.Lock()
	n := min(len(s.queue), maxBatch)
	batch := slices.Clone(s.queue[:n])
	s.queue = slices.Delete(s.queue, 0, n)
	s.mu.Unlock()
	for _, c := range batch {
		c.err = errAbandoned
	}
	// Deferred, since a function may end the goroutine.
	defer func() {
		s.mu.Lock()
		s.leading = len(s.queue) > 0
		if s.leading {
			s.queue[0].turn <- true
		}
		s.mu.Unlock()
		for _, c := range batch[1:] {
			c.turn <- false
		}
	}()
	for calls := batch; len(calls) > 0; {
		calls = s.attempt(calls)
	}
}

// attempt runs calls in one transaction. It returns those to run again when one of them has spoilt it.
func (s *Store) attempt(calls []*call) []*call {
	b, err := s.begin()
	if err != nil {
		fail(calls, err)
		return nil
	}
	defer func() { _ = b.Rollback() }() // after a commit it does nothing
	tx := &Tx{bolt: b, seen: map[string]*storev1.JobRecord{}, dirty: map[string]*storev1.JobRecord{}}
	for i, c := range calls {
		before := tx.puts
		if s.run(c, tx); c.panicked != nil || c.err != nil && tx.puts != before {
			return slices.Delete(slices.Clone(calls), i, i+1)
		}
	}
	if tx.puts == 0 {
		return nil
	}
	s.logChanges(tx)
	tx.flushAll()
	if tx.err != nil {
		fail(calls, tx.err)
		return nil
	}
	if err := s.commit(b); err != nil {
		fail(calls, err)
		return nil
	}
	s.publish(tx, calls)
	return nil
}

func fail(calls []*call, err error) {
	for _, c := range calls {
		c.err = err
	}
}

// run runs one function and keeps how it ended.
func (s *Store) run(c *call, tx *Tx) {
	defer func() {
		if c.panicked = recover(); c.panicked != nil {
			s.log.Error("an update panicked and was rolled back", "panic", c.panicked, "stack", string(debug.Stack()))
		}
	}()
	if c.err = c.fn(tx); c.err == nil {
		tx.flushAll()
		c.err = tx.err
	}
}

// begin starts the transaction, unless it is known that it could not be committed.
func (s *Store) begin() (*bolt.Tx, error) {
	if s.failed != nil {
		return nil, s.failed
	}
	// A commit that fails makes bbolt walk the whole file. While the disk is full this costs less.
	if s.full {
		if err := probe(s.path); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrFull, s.path, err)
		}
	}
	b, err := s.db.Begin(true)
	if errors.Is(err, berrors.ErrDatabaseNotOpen) {
		return nil, ErrClosed
	}
	return b, err
}

// commit makes the transaction durable. Want of room is an error that passes; after any other the store writes no more,
// since the file may hold what its callers were told had failed.
func (s *Store) commit(b *bolt.Tx) error {
	txid := b.ID()
	err := b.Commit()
	if err == nil {
		s.commits.Add(1)
		s.full = false
		return nil
	}
	// bbolt writes the meta page last: once the file has it, the transaction counts, whatever the error was.
	var written bool
	viewErr := s.db.View(func(now *bolt.Tx) error {
		written = now.ID() >= txid
		return nil
	})
	if outOfSpace(err) && viewErr == nil && !written {
		s.full = true
		s.log.Error("the store's disk is full", "path", s.path, "error", err)
		return fmt.Errorf("%w: %s: %w", ErrFull, s.path, err)
	}
	s.failed = fmt.Errorf("the store %s could not be written (%w): mend its disk and start dagbridge again", s.path, err)
	s.log.Error("the store writes no more", "path", s.path, "error", err)
	return s.failed
}

// publish tells the hook and those who wait for changes. Who was in the commit gets the hook's panic: the engine no longer
// agrees with the store, and must not go on as if it did.
func (s *Store) publish(tx *Tx, calls []*call) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("the commit hook panicked", "panic", p, "stack", string(debug.Stack()))
			for _, c := range calls {
				c.panicked = p
			}
		}
	}()
	if len(tx.order) == 0 {
		return
	}
	records := make([]*storev1.JobRecord, 0, len(tx.order))
	for _, id := range tx.order {
		if rec := tx.dirty[id]; rec != nil {
			records = append(records, rec)
		}
	}
	if s.onCommit != nil {
		s.onCommit(records)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seq += uint64(len(tx.order))
	close(s.changed)
	s.changed = make(chan struct{})
}
