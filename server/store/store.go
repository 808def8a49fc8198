package store

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	storev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/store/v1"
)

const (
	// schema is the version of the file's layout.
	schema = "1"
	// lockTimeout is how long Open waits for another process to let go of the file.
	lockTimeout = time.Second
	// defaultMaxChanges keeps hours of a busy gateway, in some 40 MB.
	defaultMaxChanges = 1_000_000

	metaSchema = "schema"
	metaID     = "id"
)

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

// openFile opens and locks the file, once it is known to be a store or new.
func openFile(path string, noSync bool) (*bolt.DB, error) {
	for {
		size, err := inspect(path)
		if err != nil {
			return nil, err
		}
		db, file, err := lock(path, &bolt.Options{
			NoSync:         noSync,
			NoFreelistSync: true,
			FreelistType:   bolt.FreelistMapType,
			// Address space, not memory. A file that outgrows its mapping has to wait for every reader, a backup included.
			InitialMmapSize: int(1<<30 + 2*size),
		})
		if err != nil {
			return nil, err
		}
		// While we waited for the lock, Compact may have put another file in the place of the one we have opened.
		same, err := isAt(file, path)
		if err == nil && same {
			return db, nil
		}
		if err := errors.Join(err, db.Close()); err != nil {
			return nil, fmt.Errorf("the store %s cannot be opened: %w", path, err)
		}
	}
}

// inspect reads enough of a file that exists to say what is wrong with it: bbolt, opening it to write, would crash on some of it.
func inspect(path string) (size int64, err error) {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) || err == nil && info.Size() == 0 {
		return 0, nil
	}
	if err != nil || !info.Mode().IsRegular() {
		return 0, errors.Join(fmt.Errorf("the store %s cannot be opened: it is not a file", path), err)
	}
	db, file, err := lock(path, &bolt.Options{ReadOnly: true})
	if err != nil {
		return 0, err
	}
	// A page that lies behind the end of the file is a fault of memory.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = damaged(path, p)
		}
		err = errors.Join(err, db.Close())
	}()
	if info, err = file.Stat(); err != nil {
		return 0, fmt.Errorf("the store %s cannot be read: %w", path, err)
	}
	return info.Size(), db.View(func(tx *bolt.Tx) error {
		if tx.Size() > info.Size() {
			return damaged(path, fmt.Sprintf("%d of its %d bytes are missing", tx.Size()-info.Size(), tx.Size()))
		}
		return checkSchema(tx, path)
	})
}

// checkSchema: the file has nothing in it, or is a store of this version.
func checkSchema(tx *bolt.Tx, path string) error {
	if isEmpty(tx) {
		return nil
	}
	b := tx.Bucket([]byte(bucketNames[meta]))
	if b == nil || b.Get([]byte(metaSchema)) == nil {
		return fmt.Errorf("%s is no dagbridge store: use another data folder", path)
	}
	if found := string(b.Get([]byte(metaSchema))); found != schema {
		return fmt.Errorf("the store %s has schema version %s and this dagbridge knows version %s: use the version of dagbridge that wrote it", path, found, schema)
	}
	for _, name := range bucketNames {
		b := tx.Bucket([]byte(name))
		if b == nil {
			return damaged(path, name+" is missing")
		}
		b.Cursor().First()
		b.Cursor().Last()
	}
	return nil
}

func isEmpty(tx *bolt.Tx) bool {
	name, _ := tx.Cursor().First()
	return name == nil
}

// lock opens a bbolt file and locks it, for readers or for us alone.
func lock(path string, o *bolt.Options) (db *bolt.DB, file *os.File, err error) {
	o.Timeout = lockTimeout
	o.OpenFile = func(name string, flag int, mode os.FileMode) (*os.File, error) {
		file, err = os.OpenFile(name, flag, mode)
		return file, err
	}
	defer func() {
		if p := recover(); p != nil {
			err = errors.Join(damaged(path, p), file.Close())
		}
	}()
	db, err = bolt.Open(path, 0o600, o)
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return nil, nil, fmt.Errorf("%w: %s is open in another dagbridge; stop that one first, or use another data folder", ErrInUse, path)
	case errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrChecksum), errors.Is(err, berrors.ErrVersionMismatch):
		return nil, nil, fmt.Errorf("%s is no dagbridge store, or is damaged (%w): restore a backup, or use another data folder", path, err)
	case err != nil:
		return nil, nil, fmt.Errorf("the store %s cannot be opened: %w", path, err)
	}
	return db, file, nil
}

func damaged(path string, how any) error {
	return fmt.Errorf("the store %s is damaged (%v): restore a backup", path, how)
}

// isAt: the open file is the one of that name.
func isAt(file *os.File, path string) (bool, error) {
	open, err := file.Stat()
	if err != nil {
		return false, err
	}
	named, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(open, named), err
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

func create(tx *bolt.Tx) error {
	for _, name := range bucketNames {
		if _, err := tx.CreateBucket([]byte(name)); err != nil {
			return err
		}
	}
	id := make([]byte, 4)
	if _, err := rand.Read(id); err != nil {
		return err
	}
	b := tx.Bucket([]byte(bucketNames[meta]))
	return errors.Join(b.Put([]byte(metaSchema), []byte(schema)), b.Put([]byte(metaID), []byte(hex.EncodeToString(id))))
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
