package store_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	storev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/store/v1"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/store"
)

// outcome is how one caller's Update ended.
type outcome struct {
	err      error
	panicked any
}

func update(s *store.Store, ctx context.Context, fn func(*store.Tx) error) (o outcome) {
	defer func() { o.panicked = recover() }()
	o.err = s.Update(ctx, fn)
	return o
}

// together runs fns as one batch, in their order, while another caller's update is under way.
func together(t *testing.T, s *store.Store, fns ...func(*store.Tx) error) []outcome {
	t.Helper()
	begun, release := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	var once sync.Once
	wg.Go(func() {
		_ = s.Update(context.Background(), func(*store.Tx) error {
			once.Do(func() { close(begun) })
			<-release
			return nil
		})
	})
	<-begun
	outcomes := make([]outcome, len(fns))
	for i, fn := range fns {
		done := make(chan struct{})
		wg.Go(func() {
			defer close(done)
			outcomes[i] = update(s, context.Background(), fn)
		})
		require.Eventually(t, func() bool { return s.Waiting() == i+1 }, 10*time.Second, 100*time.Microsecond)
	}
	close(release)
	wg.Wait()
	return outcomes
}

// putting is a function for Update that puts a record, and counts its runs.
func putting(rec *storev1.JobRecord, runs *atomic.Int32) func(*store.Tx) error {
	return func(tx *store.Tx) error {
		runs.Add(1)
		tx.Put(rec)
		return nil
	}
}

func TestWaitingCallersShareACommit(t *testing.T) {
	t.Parallel()
	s := open(t, newPath(t), store.Options{})
	var commits [][]*storev1.JobRecord
	s.OnCommit(func(recs []*storev1.JobRecord) { commits = append(commits, recs) })
	var fns []func(*store.Tx) error
	var want []*storev1.JobRecord
	var runs atomic.Int32
	for i := range 64 {
		rec := newRecord(fmt.Sprint("task", i), 1, "")
		want = append(want, rec)
		fns = append(fns, putting(rec, &runs))
	}
	for _, o := range together(t, s, fns...) {
		require.Equal(t, outcome{}, o)
	}
	require.Equal(t, [][]*storev1.JobRecord{want}, commits)
	require.EqualValues(t, 64, runs.Load())
}

func TestConcurrentUpdates(t *testing.T) {
	t.Parallel()
	const callers, each = 64, 10
	s := open(t, newPath(t), store.Options{})
	followed := map[string]bool{}
	s.OnCommit(func(recs []*storev1.JobRecord) {
		for _, rec := range recs {
			followed[rec.GetJob().GetId()] = true
		}
	})
	ids := make([][]string, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for j := range each {
				rec := newRecord(fmt.Sprint(i, "/", j), 1, "")
				if o := update(s, context.Background(), func(tx *store.Tx) error { tx.Put(rec); return nil }); o == (outcome{}) {
					ids[i] = append(ids[i], rec.GetJob().GetId())
				}
				if job, err := s.Lookup(rec.GetJob().GetKey(), 0); err != nil || job.GetId() != rec.GetJob().GetId() {
					ids[i] = nil // what was acknowledged can be read at once
				}
			}
		})
	}
	wg.Wait()
	for _, of := range ids {
		require.Len(t, of, each)
		for _, id := range of {
			require.True(t, followed[id])
		}
	}
	require.EqualValues(t, callers*each, s.Seq())
}

// The same request at the same moment: one caller wins, the others see its job.
func TestCheckAndPutInOneBatch(t *testing.T) {
	t.Parallel()
	s := open(t, newPath(t), store.Options{})
	var won atomic.Int32
	found := make([]string, 16)
	fns := make([]func(*store.Tx) error, 16)
	for i := range fns {
		rec := newRecord("train", 1, "same")
		fns[i] = func(tx *store.Tx) error {
			if found[i] = tx.Named(rec.GetJob().GetKey(), 1, "same"); found[i] == "" {
				tx.Put(rec)
				won.Add(1)
				found[i] = rec.GetJob().GetId()
			}
			return nil
		}
	}
	for _, o := range together(t, s, fns...) {
		require.Equal(t, outcome{}, o)
	}
	require.EqualValues(t, 1, won.Load())
	for _, id := range found {
		require.Equal(t, found[0], id)
	}
}

// A function reads what it has put itself: by every index, and as it put it last.
func TestOwnPutsAreRead(t *testing.T) {
	t.Parallel()
	s := open(t, newPath(t), store.Options{})
	array, run := newRecord("train", 1, "u"), newID()
	array.Job.RunId = run
	var kids []*storev1.JobRecord
	for i := range 3 {
		kid := newRecord("train", 1, "u")
		kid.Job.Key.MapIndex, kid.Job.Parent, kid.Position = []int32{int32(i)}, array.GetJob().GetId(), int32(i)
		kids = append(kids, kid)
	}
	all := func(each func(fn func(string) bool)) (ids []string) {
		each(func(id string) bool { ids = append(ids, id); return true })
		return ids
	}
	require.NoError(t, s.Update(context.Background(), func(tx *store.Tx) error {
		for i := range kids { // last first, so that none goes in where it was put
			tx.Put(kids[len(kids)-1-i])
		}
		tx.Put(array)
		id, key := array.GetJob().GetId(), array.GetJob().GetKey()
		tx.PutTask(id, benchTask(key))
		tx.PutRun(&dagbridgev1.Run{Id: run, Deployment: "default", Orchestrator: "airflow", Workflow: "risk", Run: "manual__1"})
		require.Equal(t, id, tx.Named(key, 1, "u"))
		require.Equal(t, id, tx.Newest(key))
		require.Equal(t, kids[2].GetJob().GetId(), tx.Newest(kids[2].GetJob().GetKey()))
		require.Equal(t, run, tx.RunNamed("default", "airflow", "risk", "manual__1"))
		require.Equal(t, key.GetTask(), tx.Task(id).GetKey().GetTask())
		require.Equal(t, []string{id}, all(func(fn func(string) bool) { tx.RunJobs(run, fn) }))
		children := all(func(fn func(string) bool) { tx.Children(id, fn) })
		require.Equal(t, []string{kids[0].GetJob().GetId(), kids[1].GetJob().GetId(), kids[2].GetJob().GetId()}, children)

		ended := proto.CloneOf(array)
		ended.Job.State, ended.Job.NativeId, ended.Job.Cluster = dagbridgev1.Job_SUCCEEDED, "77", "hpc"
		tx.Put(ended)
		tx.Put(array)
		tx.Put(ended)
		var live []string
		tx.Live(func(rec *storev1.JobRecord) bool { live = append(live, rec.GetJob().GetId()); return true })
		require.ElementsMatch(t, children, live)
		var native []string
		tx.Native("hpc", "77", func(id string, _ int32) bool { native = append(native, id); return true })
		require.Equal(t, []string{id}, native)
		return nil
	}))
	job, err := s.Job(array.GetJob().GetId())
	require.NoError(t, err)
	require.Equal(t, dagbridgev1.Job_SUCCEEDED, job.GetState())
}

func TestFailuresFailTheirCallerAlone(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	bad := newRecord("bad", 1, "")
	for name, c := range map[string]struct {
		fn     func(*store.Tx) error
		want   outcome
		reruns int32
	}{
		"error before a put": {func(*store.Tx) error { return refused }, outcome{err: refused}, 0},
		"error after a put":  {func(tx *store.Tx) error { tx.Put(bad); return refused }, outcome{err: refused}, 1},
		"panic before a put": {func(*store.Tx) error { panic("crash") }, outcome{panicked: "crash"}, 1},
		"panic after a put":  {func(tx *store.Tx) error { tx.Put(bad); panic("crash") }, outcome{panicked: "crash"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := newPath(t)
			s := open(t, path, store.Options{})
			first, last := newRecord("first", 1, ""), newRecord("last", 1, "")
			var firstRuns, lastRuns atomic.Int32
			got := together(t, s, putting(first, &firstRuns), c.fn, putting(last, &lastRuns))
			require.Equal(t, []outcome{{}, c.want, {}}, got)
			require.Equal(t, 1+c.reruns, firstRuns.Load())
			require.EqualValues(t, 1, lastRuns.Load())

			// The caller at the head, alone and with another behind it.
			require.Equal(t, c.want, update(s, context.Background(), c.fn))
			var runs atomic.Int32
			require.Equal(t, []outcome{c.want, {}}, together(t, s, c.fn, putting(newRecord("after", 1, ""), &runs)))

			require.NoError(t, s.Close())
			s = open(t, path, store.Options{})
			for _, rec := range []*storev1.JobRecord{first, last} {
				_, err := s.Job(rec.GetJob().GetId())
				require.NoError(t, err)
			}
			_, err := s.Job(bad.GetJob().GetId())
			require.ErrorIs(t, err, store.ErrNotFound)
			_, err = s.Lookup(bad.GetJob().GetKey(), 0)
			require.ErrorIs(t, err, store.ErrNotFound)
		})
	}
}

func TestPutThatCannotBeKept(t *testing.T) {
	t.Parallel()
	s := open(t, newPath(t), store.Options{})
	rec := newRecord(strings.Repeat("x", 40_000), 1, "") // longer than a key may be
	require.ErrorContains(t, s.Update(context.Background(), func(tx *store.Tx) error { tx.Put(rec); return nil }), "key too large")
	_, err := s.Job(rec.GetJob().GetId())
	require.ErrorIs(t, err, store.ErrNotFound)
	rec = newRecord("train", 1, "")
	rec.Job.Id = "1234"
	require.Contains(t, update(s, context.Background(), func(tx *store.Tx) error { tx.Put(rec); return nil }).panicked, "not a UUID")
	put(t, s, newRecord("train", 1, ""))
}

// Who was in a commit that the engine did not follow must not go on as if it had.
func TestPanicInTheCommitHook(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	s := open(t, path, store.Options{})
	s.OnCommit(func([]*storev1.JobRecord) { panic("crash") })
	a, b := newRecord("a", 1, ""), newRecord("b", 1, "")
	var runs atomic.Int32
	require.Equal(t, []outcome{{panicked: "crash"}, {panicked: "crash"}}, together(t, s, putting(a, &runs), putting(b, &runs)))

	require.NoError(t, s.Close())
	s = open(t, path, store.Options{})
	for _, rec := range []*storev1.JobRecord{a, b} {
		_, err := s.Job(rec.GetJob().GetId())
		require.NoError(t, err)
	}
	put(t, s, newRecord("c", 1, ""))
}

// A function that ends its goroutine, as a failing test does, leaves nobody waiting.
func TestGoexitInAFunction(t *testing.T) {
	t.Parallel()
	s := open(t, newPath(t), store.Options{})
	var runs atomic.Int32
	rec := newRecord("a", 1, "")
	got := together(t, s, func(*store.Tx) error { runtime.Goexit(); return nil }, putting(rec, &runs))
	require.Error(t, got[1].err)
	_, err := s.Job(rec.GetJob().GetId())
	require.ErrorIs(t, err, store.ErrNotFound)
	put(t, s, rec)
}

func TestContextEndsTheWaitOnly(t *testing.T) {
	t.Parallel()
	s := open(t, newPath(t), store.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	var runs atomic.Int32
	gone := newRecord("gone", 1, "")
	waited := make(chan error, 1)
	begun, release := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = s.Update(context.Background(), func(*store.Tx) error { close(begun); <-release; return nil })
	})
	<-begun
	wg.Go(func() { waited <- s.Update(ctx, putting(gone, &runs)) })
	require.Eventually(t, func() bool { return s.Waiting() == 1 }, 10*time.Second, 100*time.Microsecond)
	cancel()
	require.ErrorIs(t, <-waited, context.Canceled)
	close(release)
	wg.Wait()
	require.ErrorIs(t, s.Update(ctx, putting(gone, &runs)), context.Canceled)
	require.Zero(t, runs.Load())

	// Once it runs, its outcome counts.
	ctx, cancel = context.WithCancel(context.Background())
	rec := newRecord("a", 1, "")
	require.NoError(t, s.Update(ctx, func(tx *store.Tx) error { cancel(); tx.Put(rec); return nil }))
	_, err := s.Job(rec.GetJob().GetId())
	require.NoError(t, err)
}

// A caller whose context ends as it is told to lead does lead, or the others would wait for ever.
func TestContextEndsWithTheTurn(t *testing.T) {
	t.Parallel()
	s := open(t, newPath(t), store.Options{NoSync: true})
	for range 300 {
		ctx, cancel := context.WithCancel(context.Background())
		begun, release := make(chan struct{}), make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			_ = s.Update(context.Background(), func(*store.Tx) error { close(begun); <-release; cancel(); return nil })
		})
		<-begun
		rec := newRecord("a", 1, newID())
		var runs atomic.Int32
		var err error
		wg.Go(func() { err = s.Update(ctx, putting(rec, &runs)) })
		require.Eventually(t, func() bool { return s.Waiting() == 1 }, 10*time.Second, 10*time.Microsecond)
		close(release)
		wg.Wait()
		if _, missing := s.Job(rec.GetJob().GetId()); err == nil {
			require.NoError(t, missing)
		} else {
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorIs(t, missing, store.ErrNotFound)
		}
		put(t, s, newRecord("b", 1, newID()))
	}
}

// Many callers whose contexts end at any moment: each is told the truth.
func TestContextsThatEndAtAnyMoment(t *testing.T) {
	t.Parallel()
	s := open(t, newPath(t), store.Options{NoSync: true})
	const callers = 200
	recs := make([]*storev1.JobRecord, callers)
	errs := make([]error, callers)
	var wg sync.WaitGroup
	for i := range callers {
		recs[i] = newRecord(fmt.Sprint(i), 1, "")
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i)*50*time.Microsecond)
			defer cancel()
			var runs atomic.Int32
			errs[i] = s.Update(ctx, putting(recs[i], &runs))
		})
	}
	wg.Wait()
	for i, rec := range recs {
		_, err := s.Job(rec.GetJob().GetId())
		if errs[i] == nil {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, errs[i], context.DeadlineExceeded)
			require.ErrorIs(t, err, store.ErrNotFound)
		}
	}
	put(t, s, newRecord("after", 1, ""))
}

func TestClosed(t *testing.T) {
	t.Parallel()
	s, err := store.Open(filepath.Join(t.TempDir(), "dagbridge.db"), store.Options{})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.ErrorIs(t, s.Update(context.Background(), func(*store.Tx) error { return nil }), store.ErrClosed)
	_, err = s.Job(newID())
	require.ErrorIs(t, err, store.ErrClosed)
	require.NoError(t, s.Close())
}

// Functions that iterate may put.
func TestPutWhileIterating(t *testing.T) {
	t.Parallel()
	s := open(t, newPath(t), store.Options{NoSync: true})
	var recs []*storev1.JobRecord
	run := newID()
	for i := range 500 {
		rec := newRecord(fmt.Sprint(i), 1, "")
		rec.Job.RunId = run
		recs = append(recs, rec)
	}
	put(t, s, recs...)
	seen := 0
	require.NoError(t, s.Update(context.Background(), func(tx *store.Tx) error {
		tx.RunJobs(run, func(id string) bool {
			require.Equal(t, recs[seen].GetJob().GetId(), id)
			seen++
			again := newRecord("more", 1, id)
			again.Job.RunId = run
			tx.Put(again)
			return true
		})
		return nil
	}))
	require.Equal(t, 500, seen)
}
