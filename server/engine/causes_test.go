package engine

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/telemetry"
)

// atOnce is a retry without a pause.
func atOnce(retries, infrastructure int32) *dagbridgev1.Retry {
	return &dagbridgev1.Retry{MaxRetries: retries, MaxInfrastructureRetries: infrastructure, Backoff: durationpb.New(0), MaxBackoff: durationpb.New(0)}
}

// fail ends the live native job of a job by a cause that is not its program's doing. The engine hears of it, and does not act.
func (b *bench) fail(id, cause string) {
	b.t.Helper()
	for _, j := range b.hpc.jobs {
		if j.jobID == id && !ended(j.state) {
			b.hpc.begin(j)
			require.Equal(b.t, dagbridgev1.Job_RUNNING, j.state)
			b.hpc.kill(j, dagbridgev1.Job_FAILED, cause)
			c := b.byName["hpc"]
			b.observe(context.Background(), c, b.hpc.look(b.known(c)))
			return
		}
	}
	b.t.Fatalf("job %s has no live native job", id)
}

// attempt is a job's current attempt.
func (b *bench) attempt(id string) *dagbridgev1.Attempt {
	attempts := b.job(id).GetAttempts()
	return attempts[len(attempts)-1]
}

func TestEachCauseHasItsBudget(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	task := train(1, "u1", "true")
	task.Retry = atOnce(1, 2)
	id := b.submit(&dagbridgev1.SubmitTaskRequest{Task: task}).GetId()
	b.look()
	b.fail(id, "PREEMPTED")
	require.Equal(t, "attempt 1 failed (PREEMPTED); it is retried", b.job(id).GetMessage())
	b.look()
	b.end(id, 3)
	b.look()
	b.fail(id, "NODE_FAIL")
	b.look()
	b.fail(id, "NODE_FAIL")
	job := b.job(id)
	require.Equal(t, dagbridgev1.Job_FAILED, job.GetState())
	require.Equal(t, "NODE_FAIL", job.GetReason())
	var causes []string
	for _, at := range job.GetAttempts() {
		causes = append(causes, fmt.Sprintf("%s %s %d", at.GetState(), at.GetReason(), at.GetExitCode()))
	}
	require.Equal(t, []string{"FAILED PREEMPTED 0", "FAILED  3", "FAILED NODE_FAIL 0", "FAILED NODE_FAIL 0"}, causes)
}

func TestTheNodeThatFailedIsLeftOut(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	task := train(1, "u1", "true")
	task.Retry = atOnce(1, 9)
	id := b.submit(&dagbridgev1.SubmitTaskRequest{Task: task}).GetId()
	b.look()
	b.fail(id, "PREEMPTED")
	b.look()
	require.Empty(t, b.attempt(id).GetExcludedNodes(), "a preemption says nothing against the node")
	b.fail(id, "NODE_FAIL")
	require.Equal(t, "attempt 2 failed (NODE_FAIL); it is retried not on n1", b.job(id).GetMessage())
	b.look()
	require.Equal(t, []string{"n1"}, b.hpc.jobs[2].exclude)
	b.end(id, 3)
	b.look()
	require.Equal(t, []string{"n1"}, b.hpc.jobs[3].exclude, "it stays out")
	b.fail(id, "NODE_FAIL")
	b.look()
	b.look()
	job := b.job(id)
	require.Equal(t, dagbridgev1.Job_SUBMITTED, job.GetState(), "without n1 and n2 there is no node: it goes anywhere")
	require.Len(t, job.GetAttempts(), 6)
	require.Equal(t, []string{"n1", "n2"}, job.GetAttempts()[4].GetExcludedNodes())
	require.Equal(t, causeRefused, job.GetAttempts()[4].GetReason())
	require.Equal(t, "Requested node configuration is not available", job.GetAttempts()[4].GetMessage())
	require.Empty(t, b.attempt(id).GetExcludedNodes())
	b.end(id, 0)
	require.Equal(t, dagbridgev1.Job_SUCCEEDED, b.job(id).GetState())
}

func TestWhatRanOutGrows(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	task := train(1, "u1", "true")
	task.Resources = &dagbridgev1.Resources{Memory: "1Gi", TimeLimit: durationpb.New(time.Minute)}
	task.Retry = atOnce(9, 9)
	task.Retry.MemoryGrowth = &dagbridgev1.Growth{Factor: 2, Max: "3Gi"}
	task.Retry.TimeLimitGrowth = &dagbridgev1.Growth{Factor: 1.5}
	id := b.submit(&dagbridgev1.SubmitTaskRequest{Task: task}).GetId()
	b.hpc.w.asked = map[string]asked{}
	b.look()
	for _, step := range []struct {
		cause, memory string
		limit         time.Duration
		message       string
	}{
		{causeMemory, "2Gi", 60 * time.Second, "attempt 1 failed (OUT_OF_MEMORY); it is retried with 2Gi of memory"},
		{causeTime, "2Gi", 90 * time.Second, "attempt 2 failed (TIMEOUT); it is retried with 1m30s"},
		{causeMemory, "3Gi", 90 * time.Second, "attempt 3 failed (OUT_OF_MEMORY); it is retried with 3Gi of memory"},
		{causeMemory, "3Gi", 90 * time.Second, "attempt 4 failed (OUT_OF_MEMORY); it is retried"},
		{"PREEMPTED", "3Gi", 90 * time.Second, "attempt 5 failed (PREEMPTED); it is retried"},
	} {
		b.fail(id, step.cause)
		require.Equal(t, step.message, b.job(id).GetMessage())
		b.look()
		require.Equal(t, asked{step.memory, step.limit, nil}, b.hpc.w.asked[b.attempt(id).GetToken()])
	}
	require.Equal(t, "1Gi", b.mem.node(id).task.GetResources().GetMemory(), "the task itself is as it was")
}

func TestSomeExitCodesAreFinal(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		end    func(b *bench, id string)
		reason string
	}{
		"the program's": {func(b *bench, id string) { b.end(id, 2) }, "FINAL_EXIT_CODE"},
		"another":       {func(b *bench, id string) { b.end(id, 3) }, "RETRY"},
		"beside an end that is not the program's": {func(b *bench, id string) {
			b.hpc.jobs[0].code = 2
			b.fail(id, causeTime)
		}, "RETRY"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			task := train(1, "u1", "true")
			task.Retry = &dagbridgev1.Retry{MaxRetries: 1, FinalExitCodes: []int32{2}}
			id := b.submit(&dagbridgev1.SubmitTaskRequest{Task: task}).GetId()
			b.look()
			test.end(b, id)
			require.Equal(t, test.reason, b.job(id).GetReason(), b.job(id).GetMessage())
		})
	}
}

func TestASkipIsTheProgramsOwnWord(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	task := train(1, "u1", "true")
	task.SkipExitCodes = []int32{99}
	id := b.submit(&dagbridgev1.SubmitTaskRequest{Task: task}).GetId()
	b.look()
	b.hpc.jobs[0].code = 99
	b.fail(id, causeTime)
	require.Equal(t, dagbridgev1.Job_FAILED, b.job(id).GetState(), "it was ended by its time limit, however it took that")
}

// The instances of an array fail each by its own cause; the next attempt is one array that suits all of them.
func TestCausesOfAnArraysInstances(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	parent, kids := b.array(5, func(task *dagbridgev1.Task) {
		task.Resources = &dagbridgev1.Resources{Memory: "1Gi"}
		task.Retry = atOnce(1, 1)
		task.Retry.MemoryGrowth = &dagbridgev1.Growth{Factor: 2}
		task.Retry.FinalExitCodes = []int32{2}
	})
	b.end(kids[0], 0)
	b.end(kids[1], 2)
	b.fail(kids[2], causeMemory)
	b.fail(kids[3], "NODE_FAIL")
	b.end(kids[4], 3)
	b.look()
	require.Equal(t, dagbridgev1.Job_FAILED, b.job(kids[1]).GetState())
	for _, kid := range append([]string{parent}, kids[2:]...) {
		at := b.attempt(kid)
		require.EqualValues(t, 2, at.GetNumber())
		require.Equal(t, "2Gi", at.GetMemory())
		require.Equal(t, []string{"n1"}, at.GetExcludedNodes())
	}
	require.Len(t, b.hpc.jobs, 5+3)
	b.fail(kids[2], "NODE_FAIL")
	b.fail(kids[3], "NODE_FAIL")
	b.end(kids[4], 3)
	require.Equal(t, dagbridgev1.Job_FAILED, b.job(kids[3]).GetState(), "its budget has ended")
	require.Equal(t, dagbridgev1.Job_FAILED, b.job(kids[4]).GetState(), "its budget has ended")
	require.Len(t, b.job(kids[2]).GetAttempts(), 4, "the other's has not; its third was refused, since no node was left")
}

func TestTheOldestOfManyNodesIsTriedAgain(t *testing.T) {
	t.Parallel()
	var off []string
	for i := range maxExcluded + 2 {
		off = exclude(off, fmt.Sprintf("n%d", i))
	}
	require.Len(t, off, maxExcluded)
	require.Equal(t, "n2", off[0])
	require.Equal(t, off, exclude(off, "n5"), "none is named twice")
	for nodes, is := range map[string]bool{"n1": true, "n[1-2]": false, "n1,n2": false, "": false} {
		require.Equal(t, is, isOneNode(nodes), nodes)
	}
}

func TestAPauseDoublesUpToItsCap(t *testing.T) {
	t.Parallel()
	r := &dagbridgev1.Retry{Backoff: durationpb.New(30 * time.Second), MaxBackoff: durationpb.New(100 * time.Second)}
	for retries, want := range []time.Duration{30 * time.Second, 60 * time.Second, 100 * time.Second, 100 * time.Second} {
		for range 100 {
			d := backoff(r, int32(retries))
			require.LessOrEqual(t, d, want)
			require.GreaterOrEqual(t, d, want*8/10)
		}
	}
}

// While the caller may try again, what comes after a failure waits; a cancel of what has failed says that nobody will.
func TestNoMoreTries(t *testing.T) {
	t.Parallel()
	for name, up := range map[string]func(*dagbridgev1.Task){
		"a task":   func(*dagbridgev1.Task) {},
		"an array": func(t *dagbridgev1.Task) { t.Array = &dagbridgev1.Array{Items: []*dagbridgev1.Array_Item{{}}} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, way := range []string{"the job is cancelled", "the run is cancelled", "time passes"} {
				b := newBench(t)
				w := chain("first", "second")
				w.Tasks[0].MaxTries = 2
				up(w.Tasks[0])
				resp, err := b.SubmitWorkflow(context.Background(), "somebody", w)
				require.NoError(t, err)
				first, second := resp.GetJobs()[0], resp.GetJobs()[1]
				b.look()
				b.end(b.hpc.jobs[0].jobID, 3)
				b.look()
				require.Equal(t, dagbridgev1.Job_FAILED, b.job(first.GetId()).GetState())
				require.False(t, isOver(b.job(second.GetId())), "it waits for another try")
				switch way {
				case "the job is cancelled":
					_, err = b.Cancel(context.Background(), []string{first.GetId()})
				case "the run is cancelled":
					_, err = b.CancelRun(context.Background(), first.GetRunId())
				default:
					b.hpc.w.now = b.hpc.w.now.Add(time.Hour + time.Second)
				}
				require.NoError(t, err)
				b.look()
				b.look()
				require.Equal(t, dagbridgev1.Job_FAILED, b.job(first.GetId()).GetState())
				require.True(t, isOver(b.job(second.GetId())), way)
			}
		})
	}
}

func isOver(job *dagbridgev1.Job) bool { return job.GetState() > dagbridgev1.Job_RUNNING }

// How long a job waited to be submitted is told of its first attempt alone: a later one was not waiting since then.
func TestARetryIsNoSlowSubmission(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	registry := prometheus.NewRegistry()
	b.metrics = telemetry.New(registry)
	task := train(1, "u1", "true")
	task.Retry = atOnce(1, 0)
	id := b.submit(&dagbridgev1.SubmitTaskRequest{Task: task}).GetId()
	b.look()
	b.end(id, 3)
	b.look()
	require.EqualValues(t, 2, b.attempt(id).GetNumber())
	require.Equal(t, dagbridgev1.Job_SUBMITTED, b.job(id).GetState())
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() == "dagbridge_dispatch_seconds" {
			require.EqualValues(t, 1, family.GetMetric()[0].GetHistogram().GetSampleCount())
			return
		}
	}
	t.Fatal("no submission was told of")
}

// What an attempt has put goes with it: the outputs of a job are those of the attempt that succeeded.
func TestOutputsOfAFailedAttemptAreNotTheJobs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	task := train(1, "u1", "true")
	task.Retry = atOnce(1, 0)
	id := b.submit(&dagbridgev1.SubmitTaskRequest{Task: task}).GetId()
	put := func(name string) {
		_, err := b.PutOutputs(context.Background(), id, map[string]*dagbridgev1.Json{name: {Text: "1"}})
		require.NoError(t, err)
	}
	b.look()
	put("first")
	b.end(id, 3)
	b.look()
	put("second")
	b.end(id, 0)
	require.Equal(t, dagbridgev1.Job_SUCCEEDED, b.job(id).GetState())
	require.Contains(t, b.job(id).GetOutputs(), "second")
	require.NotContains(t, b.job(id).GetOutputs(), "first")
}
