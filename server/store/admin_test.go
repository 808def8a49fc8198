package store_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	storev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/store/v1"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/store"
)

// TestBackup backs up while updates go on: what was acknowledged before is in it, and it is a store like any other.
func TestBackup(t *testing.T) {
	t.Parallel()
	s := open(t, newPath(t), store.Options{NoSync: true})
	var before []*storev1.JobRecord
	for i := range 200 {
		before = append(before, newRecord(fmt.Sprint(i), 1, ""))
	}
	put(t, s, before...)
	var wg sync.WaitGroup
	var stop atomic.Bool
	wg.Go(func() {
		for i := 0; !stop.Load(); i++ {
			rec := newRecord(fmt.Sprint("during", i), 1, "")
			_ = update(s, t.Context(), func(tx *store.Tx) error { tx.Put(rec); return nil })
		}
	})
	path := filepath.Join(t.TempDir(), "backup.db")
	f, err := os.Create(path)
	require.NoError(t, err)
	n, err := s.Backup(f)
	stop.Store(true)
	wg.Wait()
	require.NoError(t, err)
	require.NoError(t, f.Close())
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, info.Size(), n)

	restored := open(t, path, store.Options{})
	for _, rec := range before {
		job, err := restored.Lookup(rec.GetJob().GetKey(), 0)
		require.NoError(t, err)
		require.True(t, proto.Equal(rec.GetJob(), job))
	}
	require.Len(t, everything(t, restored), int(restored.Seq()))
	require.LessOrEqual(t, restored.Seq(), s.Seq())
	seq, err := restored.ParseResumeToken(s.ResumeToken(5))
	require.NoError(t, err)
	require.EqualValues(t, 5, seq)
	put(t, restored, newRecord("after", 1, ""))
}

func TestBackupThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	s := open(t, newPath(t), store.Options{})
	_, err := s.Backup(brokenPipe{})
	require.ErrorContains(t, err, "not complete")
	put(t, s, newRecord("train", 1, ""))
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, os.ErrClosed }

// everything is all jobs by list, page after page.
func everything(t *testing.T, s *store.Store) []*dagbridgev1.Job {
	t.Helper()
	var all []*dagbridgev1.Job
	for token := ""; ; {
		jobs, next, _, err := s.List(&dagbridgev1.JobFilter{}, 1000, token)
		require.NoError(t, err)
		all = append(all, jobs...)
		if token = next; token == "" {
			return all
		}
	}
}

func TestCompact(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	s := open(t, path, store.Options{NoSync: true})
	end := timestamppb.Now()
	var recs []*storev1.JobRecord
	for i := range 2000 {
		rec := newRecord(fmt.Sprint(i), 1, "")
		rec.Job.State, rec.Job.EndTime, rec.Job.Message = dagbridgev1.Job_SUCCEEDED, end, strings.Repeat("m", 1000)
		recs = append(recs, rec)
	}
	put(t, s, recs...)
	deleted, err := s.Expire(time.Now(), 0, 100)
	require.NoError(t, err)
	require.Equal(t, 1900, deleted)
	want := everything(t, s)
	require.Len(t, want, 100)
	token, seq := s.ResumeToken(7), s.Seq()
	require.NoError(t, s.Close())

	before, after, err := store.Compact(path)
	require.NoError(t, err)
	require.Less(t, after, before/2)
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, entries, 1)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, after, info.Size())
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	s = open(t, path, store.Options{NoSync: true})
	got := everything(t, s)
	require.Len(t, got, len(want))
	for i := range want {
		require.True(t, proto.Equal(want[i], got[i]))
	}
	require.Equal(t, seq, s.Seq())
	_, err = s.ParseResumeToken(token)
	require.NoError(t, err)
	put(t, s, newRecord("after", 1, ""))
	deleted, err = s.Expire(time.Now(), 0, 51)
	require.NoError(t, err)
	require.Equal(t, 50, deleted) // it still knows how many there are
}

func TestCompactOfNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "dagbridge.db")
	_, _, err := store.Compact(path)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoFileExists(t, path)
}

// TestExpireLeavesNothing deletes all there is and looks into the file itself.
func TestExpireLeavesNothing(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	s := open(t, path, store.Options{NoSync: true})
	end := timestamppb.Now()
	run := &dagbridgev1.Run{Id: newID(), Workflow: "risk", Run: "1"}
	array := newRecord("array", 1, "")
	recs := []*storev1.JobRecord{array}
	for i := range 1500 { // more than one transaction deletes
		rec := newRecord("array", 1, "")
		rec.Job.Key.MapIndex, rec.Job.Parent, rec.Position = []int32{int32(i)}, array.GetJob().GetId(), int32(i)
		recs = append(recs, rec)
	}
	for i := range 20 {
		rec := newRecord(fmt.Sprint(i), 1, "a")
		rec.Job.Labels = map[string]string{"team": "x"}
		rec.Names = []*storev1.Name{{TryNumber: 2, Uid: "b"}, {TryNumber: 1, Uid: "c"}}
		recs = append(recs, rec)
	}
	for _, rec := range recs {
		rec.Job.RunId, rec.Job.State, rec.Job.EndTime = run.GetId(), dagbridgev1.Job_FAILED, end
		rec.Job.Cluster, rec.Job.NativeId = "hpc", "12"
		rec.Job.Attempts = []*dagbridgev1.Attempt{{Number: 1, Cluster: "hpc", NativeId: "11"}}
	}
	require.NoError(t, s.Update(t.Context(), func(tx *store.Tx) error {
		tx.PutRun(run)
		for _, rec := range recs {
			tx.Put(rec)
			if rec.GetJob().GetParent() == "" {
				for _, text := range []string{"first", "then"} { // the second replaces the first
					tx.PutTask(rec.GetJob().GetId(), &dagbridgev1.Task{Script: &dagbridgev1.Script{Text: strings.Repeat(text, 1000)}})
				}
			}
		}
		return nil
	}))
	require.Equal(t, map[string]int{"jobs": 1521, "tasks": 21, "bodies": 1, "runs": 1, "runnames": 1}, keys(t, s, "jobs", "tasks", "bodies", "runs", "runnames"))

	deleted, err := s.Expire(end.AsTime().Add(time.Hour), 2*time.Hour, 0)
	require.NoError(t, err)
	require.Zero(t, deleted)
	deleted, err = s.Expire(end.AsTime().Add(time.Hour), time.Minute, 0)
	require.NoError(t, err)
	require.Equal(t, len(recs), deleted)
	require.Equal(t, map[string]int{"meta": 2, "changes": 1}, keys(t, s))
	changes, last, err := s.Changes(0, 10_000)
	require.NoError(t, err)
	require.Empty(t, changes)
	require.Equal(t, s.Seq(), last)
}

// TestExpireOfCarriers: a carrier is there as long as one of its jobs is, and no job goes while its carrier is live.
func TestExpireOfCarriers(t *testing.T) {
	t.Parallel()
	s := open(t, newPath(t), store.Options{NoSync: true})
	end := timestamppb.Now()
	run := &dagbridgev1.Run{Id: newID(), Workflow: "risk", Run: "1"}
	ended := func(task string, after time.Duration) *storev1.JobRecord {
		rec := newRecord(task, 1, "")
		rec.Job.RunId, rec.Job.State, rec.Job.EndTime = run.GetId(), dagbridgev1.Job_FAILED, timestamppb.New(end.AsTime().Add(after))
		return rec
	}
	carrier := func(carried ...*storev1.JobRecord) *storev1.JobRecord {
		rec := ended("carrier", 0)
		for i, one := range carried {
			one.Carrier, one.Element = rec.GetJob().GetId(), int32(i)
			rec.Carried = append(rec.Carried, one.GetJob().GetId())
		}
		return rec
	}
	early, late := ended("early", 0), ended("late", time.Hour)
	together := carrier(early, late)
	array := ended("array", time.Hour) // its first chunk ended long before its last
	instance := ended("array", 0)
	instance.Job.Key.MapIndex, instance.Job.Parent = []int32{0}, array.GetJob().GetId()
	chunk := carrier(instance)
	chunk.Cleanup = true
	require.NoError(t, s.Update(t.Context(), func(tx *store.Tx) error {
		tx.PutRun(run)
		for _, rec := range []*storev1.JobRecord{early, late, together, array, instance, chunk} {
			tx.Put(rec)
		}
		return nil
	}))
	expire := func(after time.Duration, want int) {
		deleted, err := s.Expire(end.AsTime().Add(after), time.Minute, 0)
		require.NoError(t, err)
		require.Equal(t, want, deleted)
	}
	expire(2*time.Hour, 0) // what the chunk's native job does is not known yet
	chunk = proto.CloneOf(chunk)
	chunk.Cleanup = false
	require.NoError(t, s.Update(t.Context(), func(tx *store.Tx) error { tx.Put(chunk); return nil }))
	expire(30*time.Minute, 1) // the early one
	expire(2*time.Hour, 5)
	require.Equal(t, map[string]int{"meta": 2, "changes": 2}, keys(t, s))
}

// keys counts the keys of a store's buckets, of all that have any when none is named.
func keys(t *testing.T, s *store.Store, only ...string) map[string]int {
	t.Helper()
	var file bytes.Buffer
	_, err := s.Backup(&file)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "keys.db")
	require.NoError(t, os.WriteFile(path, file.Bytes(), 0o600))
	db, err := bolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	counts := map[string]int{}
	require.NoError(t, db.View(func(tx *bolt.Tx) error {
		return tx.ForEach(func(name []byte, b *bolt.Bucket) error {
			if n := b.Stats().KeyN; n > 0 {
				counts[string(name)] = n
			}
			return nil
		})
	}))
	require.NoError(t, db.Close())
	maps.DeleteFunc(counts, func(name string, _ int) bool { return len(only) > 0 && !slices.Contains(only, name) })
	return counts
}
