package store_test

import (
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
	"google.golang.org/protobuf/types/known/timestamppb"

	storev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/store/v1"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/store"
)

var benchJobs = flag.Int("jobs", 1_000_000, "how many jobs BenchmarkMillion loads")

// BenchmarkUpdate submits single tasks, as the engine does, at several numbers of callers; and beside each the limit: a loop
// that commits what waits to bare bbolt, with as many puts and bytes.
func BenchmarkUpdate(b *testing.B) {
	for _, callers := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("store/callers=%d", callers), func(b *testing.B) {
			s, err := store.Open(filepath.Join(b.TempDir(), "dagbridge.db"), store.Options{})
			require.NoError(b, err)
			commits := 0
			s.OnCommit(func([]*storev1.JobRecord) { commits++ })
			run := newID()
			spread(b, callers, func(i int) error {
				return s.Update(b.Context(), func(tx *store.Tx) error { return admit(tx, benchRecord(i, run)) })
			})
			b.ReportMetric(float64(commits)/float64(b.N), "commits/op")
			require.NoError(b, s.Close())
		})
		b.Run(fmt.Sprintf("bare/callers=%d", callers), func(b *testing.B) {
			bare := openBare(b)
			spread(b, callers, bare.update)
			bare.close(b)
		})
	}
}

// BenchmarkLargeUpdate admits workflows of several sizes, each in one transaction: the time of a job is not to grow with them.
func BenchmarkLargeUpdate(b *testing.B) {
	for _, size := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("jobs=%d", size), func(b *testing.B) {
			s, err := store.Open(filepath.Join(b.TempDir(), "dagbridge.db"), store.Options{NoSync: true})
			require.NoError(b, err)
			defer func() { require.NoError(b, s.Close()) }()
			for range b.N {
				run := newID()
				require.NoError(b, s.Update(b.Context(), func(tx *store.Tx) error {
					for i := range size {
						rec := newRecord(fmt.Sprint("task", i), 1, "")
						rec.Job.Key.Run, rec.Job.RunId = run, run
						tx.Put(rec)
						tx.PutTask(rec.GetJob().GetId(), benchTask(rec.GetJob().GetKey()))
					}
					return nil
				}))
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*size), "ns/job")
		})
	}
}

// benchRecord is a job of a mapped task in a run of ten thousand; newer ones have greater ids.
func benchRecord(i int, run string) *storev1.JobRecord {
	rec := newRecord("train_the_model", 1, newID())
	rec.Job.Key.Workflow = fmt.Sprintf("workflow_%03d", i/100_000)
	rec.Job.Key.Run = fmt.Sprintf("scheduled__2026-01-%05dT00:00:00+00:00", i/10_000)
	rec.Job.Key.MapIndex = []int32{int32(i % 10_000)}
	rec.Job.RunId = run
	rec.Job.Labels = map[string]string{"team": "x"}
	return rec
}

// admit checks and puts, as the engine does with a new task.
func admit(tx *store.Tx, rec *storev1.JobRecord) error {
	job := rec.GetJob()
	if id := tx.Named(job.GetKey(), job.GetTryNumber(), job.GetUid()); id != "" {
		return fmt.Errorf("%s is there", id)
	}
	if tx.Newest(job.GetKey()) != "" {
		return fmt.Errorf("%v is there", job.GetKey())
	}
	tx.Put(rec)
	tx.PutTask(job.GetId(), benchTask(job.GetKey()))
	return nil
}

func benchTask(key *dagbridgev1.TaskKey) *dagbridgev1.Task {
	return &dagbridgev1.Task{
		Key: key, TryNumber: 1, Cluster: "hpc", Command: &dagbridgev1.Command{Argv: []string{"python", "train.py", "--epochs", "3"}},
		Env: map[string]string{"EPOCHS": "3"}, Resources: &dagbridgev1.Resources{Cpu: "4", Memory: "16Gi"}, TriggerRule: "all_success",
	}
}

// spread runs b.N calls of fn from so many goroutines, each with a number of its own.
func spread(b *testing.B, callers int, fn func(i int) error) {
	b.ReportAllocs()
	b.ResetTimer()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < b.N; i = int(next.Add(1)) - 1 {
				if err := fn(i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
}

// bare is a group-commit loop over bbolt, and nothing else.
type bare struct {
	db    *bolt.DB
	calls chan chan error
	wg    sync.WaitGroup
	seq   uint64
}

// barePuts are the puts of one admit: bucket, and bytes of key and value.
var barePuts = []struct {
	bucket     string
	key, value int
}{
	{"jobs", 16, 290}, {"tasks", 16, 190}, {"names", 116, 0}, {"names", 136, 16}, {"lists", 17, 0}, {"lists", 33, 0}, {"lists", 30, 0}, {"lists", 24, 0}, {"changes", 8, 16},
}

func openBare(b *testing.B) *bare {
	db, err := bolt.Open(filepath.Join(b.TempDir(), "bare.db"), 0o600, &bolt.Options{NoFreelistSync: true, FreelistType: bolt.FreelistMapType, InitialMmapSize: 1 << 30})
	require.NoError(b, err)
	l := &bare{db: db, calls: make(chan chan error, 1024)}
	require.NoError(b, db.Update(func(tx *bolt.Tx) error {
		for _, p := range barePuts {
			if _, err := tx.CreateBucketIfNotExists([]byte(p.bucket)); err != nil {
				return err
			}
		}
		return nil
	}))
	l.wg.Go(l.loop)
	return l
}

func (l *bare) loop() {
	for first := range l.calls {
		batch := []chan error{first}
		for range len(l.calls) {
			batch = append(batch, <-l.calls)
		}
		err := l.db.Update(func(tx *bolt.Tx) error {
			for range batch {
				l.seq++
				for i, p := range barePuts {
					key := make([]byte, p.key)
					key[0] = byte(i)
					binary.BigEndian.PutUint64(key[p.key-8:], l.seq)
					bucket := tx.Bucket([]byte(p.bucket))
					bucket.FillPercent = 0.9
					if err := bucket.Put(key, make([]byte, p.value)); err != nil {
						return err
					}
				}
			}
			return nil
		})
		for _, call := range batch {
			call <- err
		}
	}
}

func (l *bare) update(int) error {
	done := make(chan error, 1)
	l.calls <- done
	return <-done
}

func (l *bare) close(b *testing.B) {
	close(l.calls)
	l.wg.Wait()
	require.NoError(b, l.db.Close())
}

// BenchmarkMillion measures a store of a million ended jobs and a thousand live ones: how soon it is ready after a stop and after a
// kill, look-ups, lists, and commits before and after 40 % are deleted.
func BenchmarkMillion(b *testing.B) {
	path := filepath.Join(b.TempDir(), "dagbridge.db")
	keys := load(b, path, *benchJobs)
	info, err := os.Stat(path)
	require.NoError(b, err)

	reopen := func(b *testing.B, path string) {
		for b.Loop() {
			s, err := store.Open(path, store.Options{})
			require.NoError(b, err)
			live := 0
			require.NoError(b, s.View(func(tx *store.Tx) error {
				tx.Live(func(*storev1.JobRecord) bool { live++; return true })
				return nil
			}))
			require.Positive(b, live)
			require.NoError(b, s.Close())
		}
		b.ReportMetric(float64(info.Size())/float64(len(keys)), "B/job")
	}
	b.Run("ready after a stop", func(b *testing.B) { reopen(b, path) })
	s, err := store.Open(path, store.Options{})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, s.Close()) })
	require.NoError(b, s.Update(b.Context(), func(tx *store.Tx) error { tx.SetMeta("used", nil); return nil }))
	killed := filepath.Join(b.TempDir(), "killed.db")
	copyFile(b, path, killed)
	b.Run("ready after a kill", func(b *testing.B) { reopen(b, killed) })
	require.NoError(b, os.Remove(killed))

	b.Run("lookup", func(b *testing.B) {
		var took []time.Duration
		i := 0
		for b.Loop() {
			i = (i + 7919*7919) % len(keys)
			begin := time.Now()
			_, err := s.Lookup(keys[i], 0)
			took = append(took, time.Since(begin))
			require.NoError(b, err)
		}
		reportPercentiles(b, took)
	})
	for name, f := range map[string]*dagbridgev1.JobFilter{
		"newest":         {},
		"run and task":   {Workflow: keys[0].GetWorkflow(), Run: keys[0].GetRun(), Task: keys[0].GetTask()},
		"workflow":       {Workflow: keys[0].GetWorkflow()},
		"live":           {State: []dagbridgev1.Job_State{dagbridgev1.Job_RUNNING, dagbridgev1.Job_ACCEPTED}},
		"failed":         {State: []dagbridgev1.Job_State{dagbridgev1.Job_FAILED}},
		"no such label":  {Label: []string{"team=none"}},
		"nothing common": {Workflow: keys[0].GetWorkflow(), State: []dagbridgev1.Job_State{dagbridgev1.Job_ACCEPTED}},
		"no such run":    {Workflow: keys[0].GetWorkflow(), Run: "none"},
		"in no list":     {Cluster: "none"},
	} {
		b.Run("list/"+name, func(b *testing.B) {
			for b.Loop() {
				_, _, _, err := s.List(f, 100, "")
				require.NoError(b, err)
			}
		})
	}
	run := newID()
	commit := func(b *testing.B) {
		spread(b, 1, func(int) error {
			return s.Update(b.Context(), func(tx *store.Tx) error { tx.Put(benchRecord(0, run)); return nil })
		})
	}
	b.Run("commit", commit)
	begin := time.Now()
	deleted, err := s.Expire(time.Now(), 0, len(keys)*6/10)
	require.NoError(b, err)
	b.Logf("deleted %d jobs in %v", deleted, time.Since(begin))
	b.Run("commit after deletes", commit)
}

// load fills a store as fast as it goes.
func load(b *testing.B, path string, n int) []*dagbridgev1.TaskKey {
	begin := time.Now()
	s, err := store.Open(path, store.Options{NoSync: true})
	require.NoError(b, err)
	keys := make([]*dagbridgev1.TaskKey, 0, n)
	var run *dagbridgev1.Run
	for len(keys) < n {
		require.NoError(b, s.Update(b.Context(), func(tx *store.Tx) error {
			for range 1000 {
				i := len(keys)
				if i%10_000 == 0 {
					run = &dagbridgev1.Run{Id: newID(), Deployment: "default", Orchestrator: "airflow", Workflow: fmt.Sprintf("workflow_%03d", i/100_000), Run: fmt.Sprintf("scheduled__2026-01-%05dT00:00:00+00:00", i/10_000)}
					tx.PutRun(run)
				}
				rec := benchRecord(i, run.GetId())
				job := rec.GetJob()
				job.NativeId = fmt.Sprint(i)
				job.Attempts = []*dagbridgev1.Attempt{{Number: 1, Cluster: "hpc", NativeId: job.NativeId, SubmitTime: timestamppb.Now(), Token: job.Id + ".1"}}
				if i < n-1000 {
					job.State, job.EndTime = dagbridgev1.Job_SUCCEEDED, timestamppb.Now()
				}
				if i%1000 == 0 {
					job.State = dagbridgev1.Job_FAILED
				}
				if err := admit(tx, rec); err != nil {
					return err
				}
				keys = append(keys, job.GetKey())
			}
			return nil
		}))
	}
	require.NoError(b, s.Close())
	b.Logf("loaded %d jobs in %v", n, time.Since(begin))
	return keys
}

func copyFile(b *testing.B, from, to string) {
	src, err := os.Open(from)
	require.NoError(b, err)
	defer func() { require.NoError(b, src.Close()) }()
	dst, err := os.Create(to)
	require.NoError(b, err)
	_, err = io.Copy(dst, src)
	require.NoError(b, err)
	require.NoError(b, dst.Close())
}

func reportPercentiles(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	for name, share := range map[string]float64{"p50-ns": 0.5, "p99-ns": 0.99} {
		b.ReportMetric(float64(took[int(share*float64(len(took)-1))]), name)
	}
}
