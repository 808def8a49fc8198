package store

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

const (
	// schema is the version of the file's layout.
	schema = "1"
	// lockTimeout is how long Open waits for another process to let go of the file.
	lockTimeout = time.Second

	metaSchema = "schema"
	metaID     = "id"
)

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

// create makes the buckets of a new file.
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
