package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/store"
	"github.com/dagbridge/dagbridge/translators"
)

// bench is an engine over two simulated schedulers in which nothing happens but what a test does.
type bench struct {
	*Engine
	t         *testing.T
	hpc, here *sim
}

func newBench(t *testing.T) *bench {
	t.Helper()
	w := &world{now: time.Unix(1_800_000_000, 0), calm: true, fuse: -1, runs: map[string][]*run{}, onStart: func(_, _, _ string) {}}
	blank := func(name string, slurmLike bool) *sim {
		return &sim{outputs: `{"auc": 0.91}`, w: w, name: name, slurmLike: slurmLike, accounting: true, nextID: 1, arraySize: 100, start: map[string]marker{}, exit: map[string]int32{}, succeeded: map[string]bool{}, cancelled: map[string]bool{}, unreadable: map[string]bool{}}
	}
	b := &bench{t: t, hpc: blank("hpc", true), here: blank("here", false)}
	s, err := store.Open(filepath.Join(t.TempDir(), "test.db"), store.Options{NoSync: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	b.Engine, err = New(Options{
		Store: s, Clusters: []Cluster{{Name: "hpc", Backend: b.hpc}, {Name: "here", Backend: b.here}},
		Now: func() time.Time { return w.now }, Grace: simGrace,
	})
	require.NoError(t, err)
	return b
}

// look lets both clusters' news reach the engine, and the engine act on them.
func (b *bench) look() {
	for _, s := range []*sim{b.hpc, b.here} {
		c := b.byName[s.name]
		b.pass(context.Background(), c)
		b.observe(context.Background(), c, s.look(b.known(c)))
		b.pass(context.Background(), c)
	}
}

// end ends a job's native job.
func (b *bench) end(id string, code int32) {
	b.t.Helper()
	for _, s := range []*sim{b.hpc, b.here} {
		for _, j := range s.jobs {
			if j.jobID == id && !ended(j.state) {
				if j.state != dagbridgev1.Job_RUNNING {
					s.begin(j)
				}
				require.Equal(b.t, dagbridgev1.Job_RUNNING, j.state)
				s.succeeded[markerKey(jobOf(j.token), j.position)] = code == 0
				j.run.running, j.run.code, j.code, j.ended = false, code, code, s.w.now
				if j.state = dagbridgev1.Job_SUCCEEDED; code != 0 {
					j.state = dagbridgev1.Job_FAILED
				}
				b.look()
				return
			}
		}
	}
	b.t.Fatalf("job %s has no live native job", id)
}

func (b *bench) job(id string) *dagbridgev1.Job {
	b.t.Helper()
	job, err := b.store.Job(id)
	require.NoError(b.t, err)
	return job
}

func (b *bench) submit(req *dagbridgev1.SubmitTaskRequest) *dagbridgev1.Job {
	b.t.Helper()
	resp, err := b.SubmitTask(context.Background(), "somebody", req)
	require.NoError(b.t, err)
	return resp.GetJob()
}

func train(try int32, uid string, argv ...string) *dagbridgev1.Task {
	return &dagbridgev1.Task{
		Key:       &dagbridgev1.TaskKey{Orchestrator: "airflow", Workflow: "ml", Run: "manual__1", Task: "train"},
		TryNumber: try, Uid: uid, Command: &dagbridgev1.Command{Argv: argv},
	}
}

func TestOneKeyTryAndUidAreOneJob(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var mu sync.Mutex
	ids := map[string]bool{}
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			resp, err := b.SubmitTask(context.Background(), "somebody", &dagbridgev1.SubmitTaskRequest{Task: train(1, "u1", "python", "train.py")})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				ids[resp.GetJob().GetId()] = true
			}
		})
	}
	wg.Wait()
	require.Len(t, ids, 1)

	_, err := b.SubmitTask(context.Background(), "somebody", &dagbridgev1.SubmitTaskRequest{Task: train(1, "u1", "python", "other.py")})
	var refused *Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, AlreadyExists, refused.Kind)
	require.Contains(t, refused.Message, "command.argv[1]")

	resp, err := b.SubmitTask(context.Background(), "somebody", &dagbridgev1.SubmitTaskRequest{Task: train(1, "u1", "python", "other.py"), OnConflict: dagbridgev1.OnConflict_ATTACH})
	require.NoError(t, err)
	require.True(t, ids[resp.GetJob().GetId()])
	require.Len(t, resp.GetWarnings(), 1)
}

func TestTheSameRequestAfterTheEndIsTheSameJob(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.submit(&dagbridgev1.SubmitTaskRequest{Task: train(1, "u1", "true")})
	b.look()
	b.end(first.GetId(), 0)
	require.Equal(t, dagbridgev1.Job_SUCCEEDED, b.job(first.GetId()).GetState())
	again := b.submit(&dagbridgev1.SubmitTaskRequest{Task: train(1, "u1", "true")})
	require.Equal(t, first.GetId(), again.GetId())
	require.Len(t, b.hpc.jobs, 1)
}

func TestAnotherTryMeetsTheOldOne(t *testing.T) {
	t.Parallel()
	t.Run("a live job takes the higher try as another name", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		old := b.submit(&dagbridgev1.SubmitTaskRequest{Task: train(1, "u1", "true")})
		again := b.submit(&dagbridgev1.SubmitTaskRequest{Task: train(2, "u2", "true")})
		require.Equal(t, old.GetId(), again.GetId())
		found, err := b.store.Lookup(old.GetKey(), 2)
		require.NoError(t, err)
		require.Equal(t, old.GetId(), found.GetId())
		b.look()
		require.Len(t, b.hpc.jobs, 1)
	})
	t.Run("an ended job is followed by a new one", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		old := b.submit(&dagbridgev1.SubmitTaskRequest{Task: train(1, "u1", "true")})
		b.look()
		b.end(old.GetId(), 3)
		again := b.submit(&dagbridgev1.SubmitTaskRequest{Task: train(2, "u2", "true")})
		require.NotEqual(t, old.GetId(), again.GetId())
		b.look()
		require.Len(t, b.hpc.jobs, 2)
		found, err := b.store.Lookup(old.GetKey(), 0)
		require.NoError(t, err)
		require.Equal(t, again.GetId(), found.GetId(), "look-up answers the newest")
	})
	t.Run("REPLACE waits until the old one is dead", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		old := b.submit(&dagbridgev1.SubmitTaskRequest{Task: train(1, "u1", "true")})
		b.look()
		b.hpc.down = true // it cannot be cancelled yet
		again := b.submit(&dagbridgev1.SubmitTaskRequest{Task: train(2, "u2", "true"), IfLive: dagbridgev1.IfLive_REPLACE})
		require.NotEqual(t, old.GetId(), again.GetId())
		require.NotNil(t, b.job(old.GetId()).GetCancelRequestTime())
		b.look()
		require.Len(t, b.hpc.jobs, 1)
		b.hpc.down = false
		b.look()
		b.look()
		require.Equal(t, dagbridgev1.Job_CANCELLED, b.job(old.GetId()).GetState())
		b.look()
		require.Equal(t, dagbridgev1.Job_SUBMITTED, b.job(again.GetId()).GetState())
	})
	t.Run("a job whose cancel was requested is never attached to", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		old := b.submit(&dagbridgev1.SubmitTaskRequest{Task: train(1, "u1", "true")})
		_, err := b.Cancel(context.Background(), []string{old.GetId()})
		require.NoError(t, err)
		again := b.submit(&dagbridgev1.SubmitTaskRequest{Task: train(2, "u2", "true")})
		require.NotEqual(t, old.GetId(), again.GetId())
	})
	t.Run("a lower try answers with its own old job, or is too late", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		first := b.submit(&dagbridgev1.SubmitTaskRequest{Task: train(2, "u2", "true")})
		b.look()
		b.end(first.GetId(), 3)
		b.submit(&dagbridgev1.SubmitTaskRequest{Task: train(3, "u3", "true")})
		for _, uid := range []string{"u2", ""} {
			require.Equal(t, first.GetId(), b.submit(&dagbridgev1.SubmitTaskRequest{Task: train(2, uid, "true")}).GetId())
		}
		_, err := b.SubmitTask(context.Background(), "somebody", &dagbridgev1.SubmitTaskRequest{Task: train(1, "u1", "true")})
		var refused *Error
		require.ErrorAs(t, err, &refused)
		require.Equal(t, FailedPrecondition, refused.Kind)
	})
	// The caller deletes a run that has had several tries, and makes one of the same name.
	t.Run("a lower try of another uid is of a run that was made again", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		for try := range int32(3) {
			old := b.submit(&dagbridgev1.SubmitTaskRequest{Task: train(try+1, fmt.Sprint("old", try+1), "true")})
			b.look()
			b.end(old.GetId(), 0)
		}
		again := map[string]bool{}
		for try := range int32(4) {
			job := b.submit(&dagbridgev1.SubmitTaskRequest{Task: train(try+1, fmt.Sprint("new", try+1), "true")})
			require.Equal(t, dagbridgev1.Job_ACCEPTED, job.GetState(), "no result of the run that is gone")
			require.Equal(t, job.GetId(), b.submit(&dagbridgev1.SubmitTaskRequest{Task: train(try+1, fmt.Sprint("new", try+1), "true")}).GetId())
			found, err := b.store.Lookup(job.GetKey(), 0)
			require.NoError(t, err)
			require.Equal(t, job.GetId(), found.GetId(), "what depends on the task depends on this job")
			again[job.GetId()] = true
			b.look()
			b.end(job.GetId(), 0)
		}
		require.Len(t, again, 4)
		require.Len(t, b.hpc.jobs, 7)
	})
}

// chain is a -> b -> c on the cluster that keeps dependencies.
func chain(names ...string) *dagbridgev1.Workflow {
	w := &dagbridgev1.Workflow{Run: &dagbridgev1.Run{Orchestrator: "airflow", Workflow: "ml", Run: "manual__1", TryNumber: 1}}
	for i, name := range names {
		task := &dagbridgev1.Task{Key: &dagbridgev1.TaskKey{Task: name}, Command: &dagbridgev1.Command{Argv: []string{"true"}}}
		if i > 0 {
			task.Upstream = []*dagbridgev1.Edge{{Task: names[i-1]}}
		}
		w.Tasks = append(w.Tasks, task)
	}
	return w
}

func TestAChainGoesInAtOnceAndIsReleasedWhole(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	resp, err := b.SubmitWorkflow(context.Background(), "somebody", chain("a", "b", "c"))
	require.NoError(t, err)
	b.look()
	require.Len(t, b.hpc.jobs, 3)
	require.Equal(t, []translators.Dependency{{Type: translators.AfterOK, NativeID: "1"}}, b.hpc.jobs[1].depends.Terms)
	require.False(t, b.hpc.jobs[0].held, "all are in")
	b.end(resp.GetJobs()[0].GetId(), 3)
	require.Equal(t, dagbridgev1.Job_UPSTREAM_FAILED, b.job(resp.GetJobs()[1].GetId()).GetState())
	require.Equal(t, dagbridgev1.Job_UPSTREAM_FAILED, b.job(resp.GetJobs()[2].GetId()).GetState())
	require.Contains(t, b.job(resp.GetJobs()[1].GetId()).GetMessage(), "upstream a is FAILED")
	require.Equal(t, dagbridgev1.Job_CANCELLED, b.hpc.jobs[1].state, "no native job is left to wait for ever")
	run, err := b.Run(resp.GetRun().GetId())
	require.NoError(t, err)
	require.Equal(t, dagbridgev1.Run_FAILED, run.GetState())
}

func TestOnlyWhatFailedRunsAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := chain("a", "b", "c")
	resp, err := b.SubmitWorkflow(context.Background(), "somebody", w)
	require.NoError(t, err)
	b.look()
	b.end(resp.GetJobs()[0].GetId(), 0)
	b.end(resp.GetJobs()[1].GetId(), 3)
	w.Run.TryNumber, w.Run.Mode = 2, dagbridgev1.Run_ONLY_FAILED
	again, err := b.SubmitWorkflow(context.Background(), "somebody", w)
	require.NoError(t, err)
	require.Equal(t, resp.GetJobs()[0].GetId(), again.GetJobs()[0].GetId())
	require.NotEqual(t, resp.GetJobs()[1].GetId(), again.GetJobs()[1].GetId())
	require.NotEqual(t, resp.GetJobs()[2].GetId(), again.GetJobs()[2].GetId())
	b.look()
	b.end(again.GetJobs()[1].GetId(), 0)
	b.end(again.GetJobs()[2].GetId(), 0)
	run, err := b.Run(again.GetRun().GetId())
	require.NoError(t, err)
	require.Equal(t, dagbridgev1.Run_SUCCEEDED, run.GetState())
	require.Equal(t, map[string]int32{"SUCCEEDED": 3}, run.GetCounts())
}

func TestAFaultyWorkflowLeavesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := chain("a", "b")
	w.Tasks[0].Cluster = "hcp"
	w.Tasks[1].Upstream = append(w.Tasks[1].Upstream, &dagbridgev1.Edge{Task: "nobody"})
	_, err := b.SubmitWorkflow(context.Background(), "somebody", w)
	var faults translators.Faults
	require.True(t, errors.As(err, &faults))
	require.Len(t, faults, 2)
	b.look()
	require.Empty(t, b.hpc.jobs)
	jobs, _, _, err := b.store.List(&dagbridgev1.JobFilter{}, 10, "")
	require.NoError(t, err)
	require.Empty(t, jobs)
}

func TestAHeldTaskWaitsForTheOtherClusterAndGetsItsOutputs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := chain("a", "b")
	w.Tasks[1].Cluster = "here"
	resp, err := b.SubmitWorkflow(context.Background(), "somebody", w)
	require.NoError(t, err)
	b.look()
	require.Empty(t, b.here.jobs)
	require.Equal(t, "UPSTREAM", b.job(resp.GetJobs()[1].GetId()).GetReason())
	b.end(resp.GetJobs()[0].GetId(), 0)
	b.look()
	require.Len(t, b.here.jobs, 1)
	require.Equal(t, []translators.Input{{Task: "a", JSON: `{"auc":0.91}`}}, b.here.inputs)
}

func TestWhileAnotherTryMayComeDependentsWait(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := chain("a", "b")
	w.Tasks[0].MaxTries = 2
	resp, err := b.SubmitWorkflow(context.Background(), "somebody", w)
	require.NoError(t, err)
	b.look()
	b.end(resp.GetJobs()[0].GetId(), 3)
	second := resp.GetJobs()[1].GetId()
	require.Equal(t, dagbridgev1.Job_SUBMITTED, b.job(second).GetState())
	a2 := train(2, "", "true")
	a2.Key.Task = "a"
	a2.MaxTries = 2
	next := b.submit(&dagbridgev1.SubmitTaskRequest{Task: a2})
	b.look()
	b.look()
	require.Equal(t, b.job(next.GetId()).GetNativeId(), b.hpc.jobs[1].depends.Terms[0].NativeID, "the dependency leads to the new try")
	b.end(next.GetId(), 0)
	// Its script looks for the success of the first try's job, which there never was: it runs nothing, and goes in again.
	b.hpc.begin(b.hpc.jobs[1])
	b.look()
	b.look()
	b.end(second, 0)
	require.Equal(t, dagbridgev1.Job_SUCCEEDED, b.job(second).GetState())
	require.Len(t, b.job(second).GetAttempts(), 2)

	t.Run("but no longer than the window", func(t *testing.T) {
		b := newBench(t)
		resp, err := b.SubmitWorkflow(context.Background(), "somebody", w)
		require.NoError(t, err)
		b.look()
		b.end(resp.GetJobs()[0].GetId(), 3)
		b.hpc.w.now = b.hpc.w.now.Add(2 * time.Hour)
		b.look()
		require.Equal(t, dagbridgev1.Job_UPSTREAM_FAILED, b.job(resp.GetJobs()[1].GetId()).GetState())
	})
}

func TestOutputsPutByTheJobShowAtItsEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	job := b.submit(&dagbridgev1.SubmitTaskRequest{Task: train(1, "u1", "true")})
	b.look()
	put := func(text string) error {
		_, err := b.PutOutputs(context.Background(), job.GetId(), map[string]*dagbridgev1.Json{"rows": {Text: text}})
		return err
	}
	require.NoError(t, put("9007199254740993"))
	require.Empty(t, b.job(job.GetId()).GetOutputs())
	require.Error(t, put("{a:1"))
	var refused *Error
	require.ErrorAs(t, put(`"`+strings.Repeat("x", 49<<10)+`"`), &refused)
	require.Equal(t, ResourceExhausted, refused.Kind)
	b.end(job.GetId(), 0)
	require.Equal(t, "9007199254740993", b.job(job.GetId()).GetOutputs()["rows"].GetText())
	require.Error(t, put("1"), "a job that has ended takes none")
}

func TestABranchThatWasNotChosenIsSkipped(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := chain("branch", "left", "right")
	w.Tasks[2].Upstream = []*dagbridgev1.Edge{{Task: "branch"}}
	w.Tasks[1].SkipUnless = &dagbridgev1.SkipUnless{Task: "branch", Output: "chosen", Contains: "left"}
	w.Tasks[2].SkipUnless = &dagbridgev1.SkipUnless{Task: "branch", Output: "chosen", Contains: "right"}
	resp, err := b.SubmitWorkflow(context.Background(), "somebody", w)
	require.NoError(t, err)
	b.look()
	_, err = b.PutOutputs(context.Background(), resp.GetJobs()[0].GetId(), map[string]*dagbridgev1.Json{"chosen": {Text: `["left"]`}})
	require.NoError(t, err)
	b.end(resp.GetJobs()[0].GetId(), 0)
	require.Equal(t, dagbridgev1.Job_SKIPPED, b.job(resp.GetJobs()[2].GetId()).GetState())
	require.Equal(t, dagbridgev1.Job_SUBMITTED, b.job(resp.GetJobs()[1].GetId()).GetState())
}

func TestCancellingWhatIsFinishedOrUnknown(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	job := b.submit(&dagbridgev1.SubmitTaskRequest{Task: train(1, "u1", "true")})
	b.look()
	b.end(job.GetId(), 0)
	results, err := b.Cancel(context.Background(), []string{job.GetId(), "nobody"})
	require.NoError(t, err)
	require.Equal(t, "OK", results[0].GetStatus())
	require.Equal(t, dagbridgev1.Job_SUCCEEDED, results[0].GetJob().GetState())
	require.Equal(t, "NOT_FOUND", results[1].GetStatus())
	results, err = b.Cancel(context.Background(), nil)
	require.NoError(t, err)
	require.Empty(t, results)
}

func TestAnExplicitRetryIsAnotherAttempt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	job := b.submit(&dagbridgev1.SubmitTaskRequest{Task: train(1, "u1", "true")})
	b.look()
	b.end(job.GetId(), 3)
	_, err := b.Retry(context.Background(), job.GetId())
	require.NoError(t, err)
	b.look()
	b.end(job.GetId(), 0)
	got := b.job(job.GetId())
	require.Equal(t, dagbridgev1.Job_SUCCEEDED, got.GetState())
	require.Len(t, got.GetAttempts(), 2)
	_, err = b.Retry(context.Background(), job.GetId())
	require.ErrorContains(t, err, "has succeeded")
}
