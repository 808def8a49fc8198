package engine

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// ahead is a bench on which prepare runs and train, which waits for it, is reserved.
type ahead struct {
	*bench
	prepare, train string
}

func newAhead(t *testing.T) *ahead {
	b := &ahead{bench: newBench(t)}
	prepare := train(1, "p1", "true")
	prepare.Key.Task = "prepare"
	b.prepare = b.submit(&dagbridgev1.SubmitTaskRequest{Task: prepare}).GetId()
	b.train = b.reserve("p1/ahead", "train.py").GetId()
	b.look()
	return b
}

func (b *ahead) reserve(uid string, argv ...string) *dagbridgev1.Job {
	task := train(0, uid, argv...)
	task.Upstream = []*dagbridgev1.Edge{{Task: "prepare"}}
	return b.submit(&dagbridgev1.SubmitTaskRequest{Task: task, Reserve: durationpb.New(10 * time.Minute)})
}

// claim is what the orchestrator submits when it is the task's turn, and what it is warned of.
func (b *ahead) claim(argv ...string) (*dagbridgev1.Job, []string) {
	resp, err := b.SubmitTask(context.Background(), "somebody", &dagbridgev1.SubmitTaskRequest{Task: train(1, "t1", argv...)})
	require.NoError(b.t, err)
	return resp.GetJob(), resp.GetWarnings()
}

// start has the reserved job run.
func (b *ahead) start() {
	b.end(b.prepare, 0)
	for _, j := range b.hpc.jobs {
		if j.jobID == b.train {
			b.hpc.begin(j)
		}
	}
	b.look()
	require.Equal(b.t, dagbridgev1.Job_RUNNING, b.job(b.train).GetState())
}

func TestAReservedJobIsClaimedOnce(t *testing.T) {
	t.Parallel()
	for name, claimed := range map[string]func(b *ahead){
		"pending": func(b *ahead) { b.end(b.prepare, 0) },
		"running": func(b *ahead) { b.start() },
		"at its end": func(b *ahead) {
			b.end(b.prepare, 0)
			b.end(b.train, 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newAhead(t)
			require.Equal(t, dagbridgev1.Job_SUBMITTED, b.job(b.train).GetState(), "it is in the queue before what it waits for has ended")
			require.NotNil(t, b.job(b.train).GetReserved())
			claimed(b)
			for range 2 {
				job, warnings := b.claim("train.py")
				require.Equal(t, b.train, job.GetId())
				require.Nil(t, job.GetReserved())
				require.Empty(t, warnings)
			}
			b.hpc.w.now = b.hpc.w.now.Add(time.Hour)
			b.look()
			require.Nil(t, b.job(b.train).GetCancelRequestTime(), "what is claimed has no lease")
			found, err := b.store.Lookup(b.job(b.train).GetKey(), 1)
			require.NoError(t, err)
			require.Equal(t, b.train, found.GetId())
		})
	}
}

func TestAReservedJobThatIsNotWantedGivesWay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before func(b *ahead)
		claim  string
		says   string
		old    dagbridgev1.Job_State
	}{
		"changed, pending": {func(b *ahead) { b.end(b.prepare, 0) }, "other.py", "another job takes its place", dagbridgev1.Job_CANCELLED},
		"changed, running": {func(b *ahead) { b.start() }, "other.py", "it had started by then, is cancelled, and runs again", dagbridgev1.Job_CANCELLED},
		"changed, at its end": {func(b *ahead) {
			b.end(b.prepare, 0)
			b.end(b.train, 0)
		}, "other.py", "it had run by then, and runs again", dagbridgev1.Job_SUCCEEDED},
		"its upstream goes on":    {func(*ahead) {}, "train.py", "has not ended as it has for who asks", dagbridgev1.Job_CANCELLED},
		"its upstream has failed": {func(b *ahead) { b.end(b.prepare, 1) }, "train.py", "", dagbridgev1.Job_UPSTREAM_FAILED},
		"its upstream ran again": {func(b *ahead) {
			b.start()
			b.hpc.w.now = b.hpc.w.now.Add(5 * time.Second)
			again := train(2, "p2", "true")
			again.Key.Task = "prepare"
			b.submit(&dagbridgev1.SubmitTaskRequest{Task: again})
		}, "train.py", "prepare has been submitted again since it ran; it had started", dagbridgev1.Job_CANCELLED},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newAhead(t)
			c.before(b)
			job, warnings := b.claim(c.claim)
			require.NotEqual(t, b.train, job.GetId())
			require.Nil(t, job.GetReserved())
			if c.says == "" {
				require.Empty(t, warnings)
			} else {
				require.Len(t, warnings, 1)
				require.Contains(t, warnings[0], c.says)
			}
			b.look()
			b.look()
			b.end(job.GetId(), 0)
			require.Equal(t, dagbridgev1.Job_SUCCEEDED, b.job(job.GetId()).GetState())
			require.Equal(t, c.old, b.job(b.train).GetState())
		})
	}
}

// Nobody claims it: it is cancelled so long after the end of its last upstream, by whatever gateway is there then.
func TestALeaseRunsOut(t *testing.T) {
	t.Parallel()
	for _, restarted := range []bool{false, true} {
		b := newAhead(t)
		b.hpc.w.now = b.hpc.w.now.Add(time.Hour)
		b.look()
		require.Nil(t, b.job(b.train).GetCancelRequestTime(), "the lease begins when the upstream has ended")
		b.end(b.prepare, 0)
		b.hpc.w.now = b.hpc.w.now.Add(9 * time.Minute)
		b.look()
		require.Nil(t, b.job(b.train).GetCancelRequestTime())
		if restarted {
			e, err := New(Options{
				Store: b.store, Clusters: []Cluster{{Name: "hpc", Backend: b.hpc}, {Name: "here", Backend: b.here}},
				Now: func() time.Time { return b.hpc.w.now }, Grace: simGrace,
			})
			require.NoError(t, err)
			b.Engine = e
		}
		b.hpc.w.now = b.hpc.w.now.Add(2 * time.Minute)
		b.look()
		b.look()
		job := b.job(b.train)
		require.Equal(t, dagbridgev1.Job_CANCELLED, job.GetState(), "restarted: %v", restarted)
		require.Equal(t, "it was reserved, and nobody has claimed it", job.GetMessage())
		later, warnings := b.claim("train.py")
		require.NotEqual(t, b.train, later.GetId(), "who comes later has a job of his own")
		require.Empty(t, warnings)
	}
}

func TestReservationsMeetWhatIsThere(t *testing.T) {
	t.Parallel()
	b := newAhead(t)
	require.Equal(t, b.train, b.reserve("p2/ahead", "train.py").GetId(), "an equal reservation is the same one")
	other := b.reserve("p3/ahead", "other.py").GetId()
	require.NotEqual(t, b.train, other)
	b.look()
	b.look()
	require.Equal(t, dagbridgev1.Job_CANCELLED, b.job(b.train).GetState(), "a changed one takes its place")
	b.end(b.prepare, 0)
	b.look()
	claimed, _ := b.claim("other.py")
	require.Equal(t, other, claimed.GetId())
	require.Equal(t, other, b.reserve("p4/ahead", "third.py").GetId(), "a job that has been claimed is left alone while it lives")
	require.Nil(t, b.job(other).GetReserved())
	b.end(other, 0)
	next := b.reserve("p5/ahead", "train.py")
	require.NotEqual(t, other, next.GetId(), "of a task that has run the next try can be reserved")
	require.NotNil(t, next.GetReserved())

	array := train(0, "x", "true")
	array.Key.Task, array.Array = "array", &dagbridgev1.Array{Items: []*dagbridgev1.Array_Item{{}}}
	_, err := b.SubmitTask(context.Background(), "somebody", &dagbridgev1.SubmitTaskRequest{Task: array, Reserve: durationpb.New(time.Minute)})
	require.ErrorContains(t, err, "task.array: an array cannot be reserved")
}
