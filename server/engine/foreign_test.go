package engine

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators"
)

// stranger puts somebody else's job into a simulated scheduler.
func (b *bench) stranger(s *sim) *simJob {
	j := &simJob{id: "900", position: -1, token: "somebody.1", foreign: true, state: dagbridgev1.Job_SUBMITTED, submit: s.w.now}
	s.jobs = append(s.jobs, j)
	return j
}

func after(id string) *dagbridgev1.Edge {
	return &dagbridgev1.Edge{Native: &dagbridgev1.NativeJob{Cluster: "hpc", Id: id}}
}

// nativeJob is the last native job of a job's.
func (b *bench) nativeJob(id string) *simJob {
	var last *simJob
	for _, j := range b.hpc.jobs {
		if j.jobID == id {
			last = j
		}
	}
	return last
}

func TestATaskWaitsForSomebodyElsesJob(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule string
		end  dagbridgev1.Job_State
		want dagbridgev1.Job_State
	}{
		{"all_success", dagbridgev1.Job_SUCCEEDED, dagbridgev1.Job_SUCCEEDED},
		{"all_success", dagbridgev1.Job_FAILED, dagbridgev1.Job_UPSTREAM_FAILED},
		{"all_done", dagbridgev1.Job_FAILED, dagbridgev1.Job_SUCCEEDED},
	} {
		t.Run(c.rule+" after "+c.end.String(), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			other := b.stranger(b.hpc)
			task := train(1, "u", "true")
			task.TriggerRule, task.Upstream = c.rule, []*dagbridgev1.Edge{after(other.id)}
			id := b.submit(&dagbridgev1.SubmitTaskRequest{Task: task}).GetId()
			b.look()
			require.Equal(t, dagbridgev1.Job_SUBMITTED, b.job(id).GetState())
			require.False(t, b.hpc.startable(b.nativeJob(id)))
			other.state = c.end
			b.look()
			if c.want == dagbridgev1.Job_UPSTREAM_FAILED {
				require.Equal(t, "upstream hpc:900 did not end as it must have (afterok)", b.job(id).GetMessage())
				b.look()
				require.Equal(t, dagbridgev1.Job_CANCELLED, b.nativeJob(id).state)
			} else {
				require.True(t, b.hpc.startable(b.nativeJob(id)))
				b.end(id, 0)
			}
			require.Equal(t, c.want, b.job(id).GetState())
		})
	}
}

// A task that the gateway holds for its own upstreams goes to the scheduler with what only the scheduler sees.
func TestAHeldTaskWaitsForSomebodyElsesJobToo(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	other := b.stranger(b.hpc)
	w := chain("first", "second")
	w.Tasks[0].Cluster = "here"
	w.Tasks[1].Upstream = append(w.Tasks[1].Upstream, after(other.id), &dagbridgev1.Edge{Condition: dagbridgev1.Edge_SINGLETON})
	resp, err := b.SubmitWorkflow(context.Background(), "somebody", w)
	require.NoError(t, err)
	first, second := resp.GetJobs()[0].GetId(), resp.GetJobs()[1].GetId()
	b.look()
	require.Nil(t, b.nativeJob(second))
	b.end(first, 0)
	b.look()
	require.Equal(t, translators.Dependencies{Terms: []translators.Dependency{
		{Type: translators.AfterOK, NativeID: other.id}, {Type: translators.Singleton},
	}}, b.nativeJob(second).depends)
	other.state = dagbridgev1.Job_SUCCEEDED
	b.look()
	b.end(second, 0)
	require.Equal(t, dagbridgev1.Job_SUCCEEDED, b.job(second).GetState())
}

// Once a job has started, what it waited for has held: another attempt does not ask again for a job that may be long gone.
func TestARetryDoesNotWaitForSomebodyElsesJobAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	other := b.stranger(b.hpc)
	task := train(1, "u", "true")
	task.Upstream, task.Retry = []*dagbridgev1.Edge{after(other.id)}, &dagbridgev1.Retry{MaxRetries: 1}
	id := b.submit(&dagbridgev1.SubmitTaskRequest{Task: task}).GetId()
	b.look()
	require.Len(t, b.nativeJob(id).depends.Terms, 1)
	other.state = dagbridgev1.Job_SUCCEEDED
	b.look()
	b.end(id, 1)
	b.hpc.w.now = b.hpc.w.now.Add(time.Minute)
	b.look()
	require.Len(t, b.job(id).GetAttempts(), 2)
	require.Empty(t, b.nativeJob(id).depends.Terms)
}

// An upstream of the gateway's that gets another native job has the dependency rewritten, and what is not the gateway's stays
// in it as long as it is waited for.
func TestARewrittenDependencyKeepsWhatIsNotTheGateways(t *testing.T) {
	t.Parallel()
	for _, over := range []bool{false, true} {
		b := newBench(t)
		other := b.stranger(b.hpc)
		w := chain("first", "second")
		w.Tasks[0].Retry = &dagbridgev1.Retry{MaxRetries: 1}
		w.Tasks[1].Upstream = append(w.Tasks[1].Upstream, after(other.id))
		resp, err := b.SubmitWorkflow(context.Background(), "somebody", w)
		require.NoError(t, err)
		first, second := resp.GetJobs()[0].GetId(), resp.GetJobs()[1].GetId()
		b.look()
		require.Len(t, b.nativeJob(second).depends.Terms, 2)
		if over {
			other.state = dagbridgev1.Job_SUCCEEDED
			b.look()
		}
		b.end(first, 1)
		b.hpc.w.now = b.hpc.w.now.Add(time.Minute)
		b.look()
		b.look()
		want := []translators.Dependency{{Type: translators.AfterOK, NativeID: b.nativeJob(first).id}}
		if !over {
			want = append(want, translators.Dependency{Type: translators.AfterOK, NativeID: other.id})
		}
		require.Equal(t, want, b.nativeJob(second).depends.Terms)
	}
}

func TestACancelledJobThatWaitsInVainIsCancelled(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	other := b.stranger(b.hpc)
	task := train(1, "u", "true")
	task.Upstream = []*dagbridgev1.Edge{after(other.id)}
	id := b.submit(&dagbridgev1.SubmitTaskRequest{Task: task}).GetId()
	b.look()
	_, err := b.Cancel(context.Background(), []string{id})
	require.NoError(t, err)
	other.state = dagbridgev1.Job_FAILED
	b.look()
	b.look()
	require.Equal(t, dagbridgev1.Job_CANCELLED, b.job(id).GetState())
}
