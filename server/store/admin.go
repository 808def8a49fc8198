package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"
)

// Backup writes a copy of the store, as it is at this moment, and returns its size in bytes. Look-ups and updates go on.
func (s *Store) Backup(w io.Writer) (int64, error) {
	var n int64
	err := s.View(func(tx *Tx) error {
		var err error
		n, err = tx.bolt.WriteTo(w)
		return err
	})
	if err != nil {
		return n, fmt.Errorf("the backup is not complete: %w", err)
	}
	return n, nil
}

// compactBatch is how many bytes Compact copies in one transaction.
const compactBatch = 16 << 20

// Compact gives back to the disk what was deleted, and returns the file's size before and after in bytes. No gateway may be
// running (ErrInUse). The file is replaced whole or not at all; the disk must have room for the copy.
func Compact(path string) (before, after int64, err error) {
	if _, err := os.Stat(path); err != nil {
		return 0, 0, fmt.Errorf("there is no store to compact: %w", err)
	}
	src, err := openFile(path, false)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	copied := path + ".compact"
	if err := errors.Join(removeIfThere(copied), copyInto(copied, src)); err != nil {
		return 0, 0, errors.Join(fmt.Errorf("the store %s is as it was; its compact copy failed: %w", path, err), removeIfThere(copied))
	}
	if before, err = size(path); err != nil {
		return 0, 0, err
	}
	if after, err = size(copied); err != nil {
		return 0, 0, err
	}
	// src keeps its lock until after this: nobody writes to the old file any more.
	if err := os.Rename(copied, path); err != nil {
		return 0, 0, err
	}
	return before, after, syncDir(filepath.Dir(path))
}

// copyInto makes a compact copy, fsynced.
func copyInto(path string, src *bolt.DB) error {
	dst, err := bolt.Open(path, 0o600, &bolt.Options{NoSync: true})
	if err != nil {
		return err
	}
	return errors.Join(bolt.Compact(dst, src, compactBatch), dst.Sync(), dst.Close())
}

// probe: there is room for the pages of some commits. A write tells what statfs does not: quotas.
func probe(path string) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".probe-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	if _, err := f.Write(make([]byte, 1<<20)); err != nil {
		return err
	}
	return f.Sync()
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func size(path string) (int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// syncDir makes a rename durable.
func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
