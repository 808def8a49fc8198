package store_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/store"
)

func TestOpenMakesFileAndFolderForTheOwnerAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a", "b", "dagbridge.db")
	open(t, path, store.Options{})
	for name, mode := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		info, err := os.Stat(name)
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode().Perm(), name)
	}
}

func TestOpenWritesNothing(t *testing.T) {
	t.Parallel()
	for name, closed := range map[string]bool{"after a close": true, "after a kill": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := newPath(t)
			s := open(t, path, store.Options{})
			rec := newRecord("train", 1, "")
			put(t, s, rec)
			if !closed {
				path = copyOf(t, path)
			} else {
				require.NoError(t, s.Close())
			}
			before, err := os.ReadFile(path)
			require.NoError(t, err)
			s = open(t, path, store.Options{})
			_, err = s.Job(rec.GetJob().GetId())
			require.NoError(t, err)
			require.NoError(t, s.Update(t.Context(), func(tx *store.Tx) error {
				require.NotEmpty(t, tx.Newest(rec.GetJob().GetKey()))
				return nil
			}))
			require.NoError(t, s.Close())
			after, err := os.ReadFile(path)
			require.NoError(t, err)
			require.True(t, bytes.Equal(before, after))
		})
	}
}

// copyOf is the file as a kill would leave it now.
func copyOf(t *testing.T, path string) string {
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	to := filepath.Join(t.TempDir(), "copy.db")
	require.NoError(t, os.WriteFile(to, data, 0o600))
	return to
}

func TestOpenByTwo(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	s := open(t, path, store.Options{})
	_, err := store.Open(path, store.Options{})
	require.ErrorIs(t, err, store.ErrInUse)
	require.ErrorContains(t, err, path)
	_, _, err = store.Compact(path)
	require.ErrorIs(t, err, store.ErrInUse)
	put(t, s, newRecord("train", 1, ""))
	require.NoError(t, s.Close())
	open(t, path, store.Options{})
}

func TestOpenOfWhatIsNoStore(t *testing.T) {
	t.Parallel()
	write := func(data []byte) func(*testing.T, string) {
		return func(t *testing.T, path string) { require.NoError(t, os.WriteFile(path, data, 0o600)) }
	}
	foreign := func(make func(*bolt.Tx) error) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			db, err := bolt.Open(path, 0o600, nil)
			require.NoError(t, err)
			require.NoError(t, db.Update(make))
			require.NoError(t, db.Close())
		}
	}
	damaged := func(damage func(data []byte) []byte) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			s, err := store.Open(path, store.Options{})
			require.NoError(t, err)
			put(t, s, newRecord("train", 1, ""))
			require.NoError(t, s.Close())
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path, damage(data), 0o600))
		}
	}
	for name, c := range map[string]struct {
		make func(*testing.T, string)
		want string
	}{
		"a folder":     {func(t *testing.T, path string) { require.NoError(t, os.Mkdir(path, 0o700)) }, "cannot be opened"},
		"a short text": {write([]byte("not a database\n")), "no dagbridge store"},
		"a long text":  {write(bytes.Repeat([]byte("not a database\n"), 10_000)), "no dagbridge store"},
		"another database": {foreign(func(tx *bolt.Tx) error {
			_, err := tx.CreateBucket([]byte("tasks"))
			return err
		}), "no dagbridge store"},
		"a later version": {foreign(func(tx *bolt.Tx) error {
			b, err := tx.CreateBucket([]byte("meta"))
			if err != nil {
				return err
			}
			return b.Put([]byte("schema"), []byte("7"))
		}), "schema version 7"},
		"both meta pages damaged": {damaged(func(data []byte) []byte {
			clear(data[16:4096])
			clear(data[4096+16 : 8192])
			return data
		}), "damaged"},
		"cut to its meta pages": {damaged(func(data []byte) []byte { return data[:8192] }), "damaged"},
		"a copy that lacks its end": {func(t *testing.T, path string) {
			s := open(t, newPath(t), store.Options{NoSync: true})
			for i := range 2000 {
				put(t, s, newRecord(fmt.Sprint(i), 1, ""))
			}
			var backup bytes.Buffer
			_, err := s.Backup(&backup)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path, backup.Bytes()[:backup.Len()-4096], 0o600))
		}, "4096 of its"},
		"pages damaged": {damaged(func(data []byte) []byte {
			clear(data[8192:])
			return data
		}), "damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "dagbridge.db")
			c.make(t, path)
			_, err := store.Open(path, store.Options{})
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, path)
			_, _, err = store.Compact(path)
			require.ErrorContains(t, err, c.want)
			entries, err := os.ReadDir(filepath.Dir(path))
			require.NoError(t, err)
			require.Len(t, entries, 1)
		})
	}
}

func TestMeta(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	s := open(t, path, store.Options{})
	require.NoError(t, s.Update(t.Context(), func(tx *store.Tx) error {
		require.Nil(t, tx.Meta("schema"))
		tx.SetMeta("schema", []byte("mine"))
		return nil
	}))
	require.NoError(t, s.Close())
	s = open(t, path, store.Options{})
	require.NoError(t, s.View(func(tx *store.Tx) error {
		require.Equal(t, "mine", string(tx.Meta("schema")))
		return nil
	}))
}

// Ids that are none are not found, whatever they are.
func TestIDsThatAreNone(t *testing.T) {
	t.Parallel()
	s := open(t, newPath(t), store.Options{})
	rec := newRecord("train", 1, "")
	put(t, s, rec)
	id := rec.GetJob().GetId()
	for _, none := range []string{"", "1234", "{" + id + "}", "urn:uuid:" + id, id + " ", "\x00", newID(), "no-such-0000-0000-0000-000000000000"} {
		_, err := s.Job(none)
		require.ErrorIs(t, err, store.ErrNotFound)
		jobs, _, _, err := s.List(&dagbridgev1.JobFilter{Parent: none + "x"}, 10, "")
		require.NoError(t, err)
		require.Empty(t, jobs)
	}
}
