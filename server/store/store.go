package store

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	storev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/store/v1"
)

// defaultMaxChanges keeps hours of a busy gateway, in some 40 MB.
const defaultMaxChanges = 1_000_000

// Options of Open. The zero value is right for a gateway.
type Options struct {
	// MaxChanges is how many changes of jobs the change log keeps at least, for watches to go on from. 0: a million.
	MaxChanges int
	// NoSync leaves out the fsync of a commit: a power cut may then damage the file. For tests.
	NoSync bool
	// Log is told what no caller is. nil: nothing is logged.
	Log *slog.Logger
}

// Store is the open file. Its methods may be called concurrently.
type Store struct {
	db         *bolt.DB
	path       string
	id         string // in resume tokens: another file's are not valid here
	maxChanges uint64
	log        *slog.Logger
	onCommit   func([]*storev1.JobRecord)

	mu      sync.Mutex
	queue   []*call // waiting for a batch; the first one leads it
	leading bool    // a caller leads a batch, or has been told to
	changed chan struct{}
	seq     uint64

	// What follows belongs to the caller that leads.
	failed error // the file may not be what the store believes: nothing more is written
	full   bool  // the last commit found no room

	commits atomic.Int64 // since the file was opened
}

// Open opens the file, and makes it (mode 0600) and its folder (0700) when they are not there. The error is a sentence:
// ErrInUse after a second when another process has it, another one when the file is no store, damaged, or of another
// version. Nothing is written to a file that exists.
//
// It reads no job. The list of free pages is kept in memory while the store is open and written when it is closed, since
// writing it with every commit costs the more the more was deleted; after a kill it is found again by a walk over the
// file, about a second for each GB.
func Open(path string, o Options) (*Store, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("the store's folder cannot be made: %w", err)
	}
	db, err := openFile(path, o.NoSync)
	if err != nil {
		return nil, err
	}
	s := &Store{db: db, path: path, maxChanges: uint64(o.MaxChanges), log: o.Log, changed: make(chan struct{})}
	if o.MaxChanges <= 0 {
		s.maxChanges = defaultMaxChanges
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if err := s.prepare(); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return s, nil
}

// prepare makes the buckets of a new file, and reads what is kept in memory.
func (s *Store) prepare() error {
	empty := false
	if err := s.db.View(func(tx *bolt.Tx) error { empty = isEmpty(tx); return nil }); err != nil {
		return err
	}
	if empty {
		if err := s.db.Update(create); err != nil {
			return fmt.Errorf("the store %s cannot be made: %w", s.path, err)
		}
	}
	return s.View(func(tx *Tx) error {
		s.id = string(tx.get(meta, []byte(metaID)))
		s.seq = tx.bucket(changes).Sequence()
		return nil
	})
}

// OnCommit sets the function that is called after each commit that is durable, before its callers are answered, in commit
// order, with the last version of each record put. It runs in a caller's goroutine and must not call Update. It is set
// before the first Update.
func (s *Store) OnCommit(fn func([]*storev1.JobRecord)) { s.onCommit = fn }

// View runs fn on a consistent view of what is committed. It waits for nobody. A view that is kept open makes the file grow.
func (s *Store) View(fn func(*Tx) error) error {
	err := s.db.View(func(tx *bolt.Tx) error { return fn(&Tx{bolt: tx}) })
	if errors.Is(err, berrors.ErrDatabaseNotOpen) {
		return ErrClosed
	}
	return err
}

// Close waits for the transactions under way and closes the file.
func (s *Store) Close() error {
	if s.commits.Load() > 0 {
		// One more commit, with the list of free pages, so that the next start need not walk the file. Failing, it does.
		s.db.NoFreelistSync = false
		if err := s.db.Update(func(*bolt.Tx) error { return nil }); err != nil {
			s.log.Warn("the store's free pages could not be listed: the next start takes longer", "path", s.path, "error", err)
		}
	}
	return s.db.Close()
}
