package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"

	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend/slurm"
)

// TestCauses has real attempts fail for each cause, and looks at what follows.
func TestCauses(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"rest", "cli"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := slurmtest.Start(t, slurmtest.Options{NoAccounting: true}) // its own, since nodes fail
			way := slurm.Options{CLI: &slurm.CLI{Path: c.Bin()}}
			if name == "rest" {
				way = slurm.Options{REST: &slurm.REST{URL: c.URL, User: slurmtest.User, TokenFile: c.TokenFile(t)}}
			}
			t.Run("what follows natively stays in the queue while its upstream is retried", func(t *testing.T) { retriedInFront(t, newRig(t, c, way)) })
			t.Run("and so it does while some of an array are", func(t *testing.T) { retriedInFront(t, newRig(t, c, way), array(3)) })
			t.Run("a job that Slurm requeues is the same attempt", func(t *testing.T) { requeued(t, c, newRig(t, c, way)) })
			t.Run("nodes that fail are left out, while there are others", func(t *testing.T) { nodesFail(t, c, newRig(t, c, way)) })
			t.Run("what ran out of time is given more", func(t *testing.T) { runsOutOfTime(t, c, newRig(t, c, way)) })
		})
	}
}

func retries(own, infrastructure int32) edit {
	return func(task *dagbridgev1.Task) {
		task.Retry = &dagbridgev1.Retry{MaxRetries: own, MaxInfrastructureRetries: infrastructure, Backoff: durationpb.New(0), MaxBackoff: durationpb.New(0)}
	}
}

// gated programs wait in their first attempts, up to a number, until a file is there.
func (w *workload) gated(attempts int, then string) (gate string, e edit) {
	gate = w.path + ".gate"
	var first []string
	for i := range attempts {
		first = append(first, fmt.Sprintf("*/%d.output", i+1))
	}
	return gate, func(task *dagbridgev1.Task) {
		task.Command = w.program(fmt.Sprintf(`case $DAGBRIDGE_OUTPUT in %s) until [ -e %s ]; do sleep 0.1; done ;; esac; %s`, strings.Join(first, " | "), gate, then))
	}
}

// one is the job of a task.
func (r *rig) one(t *testing.T, task string) *dagbridgev1.Job {
	t.Helper()
	jobs := r.jobs(t)
	i := slices.IndexFunc(jobs, func(job *dagbridgev1.Job) bool { return job.GetKey().GetTask() == task })
	require.GreaterOrEqual(t, i, 0, task)
	return jobs[i]
}

// awaitOne waits until the job of a task is as wanted.
func (r *rig) awaitOne(t *testing.T, task, what string, wanted func(*dagbridgev1.Job) bool) *dagbridgev1.Job {
	t.Helper()
	if !poll(patience, func() bool { return wanted(r.one(t, task)) }) {
		require.Fail(t, "it is not "+what, "%v", r.one(t, task))
	}
	return r.one(t, task)
}

func running(job *dagbridgev1.Job) bool { return job.GetState() == dagbridgev1.Job_RUNNING }

// retriedInFront: the second of three fails once. The third was there all the time, and waits for the retry.
func retriedInFront(t *testing.T, r *rig, edits ...edit) {
	r.add("retried", r.task("first", nil), r.task("second", []string{"first"}, append(edits, r.flaky)...), r.task("third", []string{"second"}))
	r.submit(t)
	third := r.awaitOne(t, "third", "in the queue", func(job *dagbridgev1.Job) bool { return job.GetNativeId() != "" })
	require.Equal(t, dagbridgev1.Job_SUBMITTED, third.GetState())
	r.awaitEnd(t)
	second := r.one(t, "second")
	require.Equal(t, dagbridgev1.Job_SUCCEEDED, second.GetState())
	require.Len(t, second.GetAttempts(), 2)
	require.Equal(t, dagbridgev1.Job_FAILED, second.GetAttempts()[0].GetState())
	ended := r.one(t, "third")
	require.Equal(t, dagbridgev1.Job_SUCCEEDED, ended.GetState())
	require.Len(t, ended.GetAttempts(), 1)
	require.Equal(t, third.GetNativeId(), ended.GetNativeId(), "it was rewritten, not submitted again")
	inOrder(t, r.ledger, r.runs, r.jobs(t))
}

// requeued: an administrator requeues a job that runs. Its program runs again, under the same id, and the end is the second run's.
func requeued(t *testing.T, c *slurmtest.Cluster, r *rig) {
	r.add("requeued", r.task("only", nil, func(task *dagbridgev1.Task) {
		task.Command = r.program(`[ "${SLURM_RESTART_COUNT:-0}" -gt 0 ] || sleep 600; exit 7`)
		retries(0, 1)(task)
	}))
	r.submit(t)
	before := r.awaitOne(t, "only", "running", func(job *dagbridgev1.Job) bool { return running(job) && len(r.entries(t)) == 1 })
	c.Run(t, "scontrol", "requeue", before.GetNativeId())
	again := r.awaitOne(t, "only", "back in the queue", func(job *dagbridgev1.Job) bool {
		return job.GetState() == dagbridgev1.Job_SUBMITTED && job.GetReason() == "BeginTime"
	})
	require.Nil(t, again.GetStartTime())
	// Or it waits two minutes, and not for nothing: the node must be done with the first run, else its end is taken for the
	// second's, and takes no credential of the second in which it killed that.
	require.True(t, poll(patience, func() bool {
		log, err := os.ReadFile(filepath.Join(c.Prefix, "log", "slurmd-"+before.GetAttempts()[0].GetNode()+".log"))
		return err == nil && strings.Contains(string(log), "["+before.GetNativeId()+".batch] done with job")
	}), "the node is not done with the first run")
	c.Run(t, "scontrol", "update", "JobId="+before.GetNativeId(), "StartTime=now+2")
	r.awaitEnd(t)
	after := r.one(t, "only")
	require.Equal(t, dagbridgev1.Job_FAILED, after.GetState())
	require.EqualValues(t, 7, after.GetExitCode(), "%v", after)
	require.Len(t, after.GetAttempts(), 1)
	require.Equal(t, before.GetNativeId(), after.GetNativeId())
	what := after.GetAttempts()[0].GetToken()
	require.Equal(t, []entry{{what, after.GetNativeId(), "0"}, {what, after.GetNativeId(), "1"}}, r.entries(t), "the program ran twice, as one attempt")
	marker, err := os.ReadFile(strings.TrimSuffix(after.GetLogs().GetStdout(), ".out") + ".exit")
	require.NoError(t, err)
	require.Contains(t, string(marker), "restart=1\n")
	require.Contains(t, string(marker), "exit=7\n")
}

// nodesFail: of two nodes one fails, then the other, under a task that Slurm is not to requeue. The second attempt is kept off
// the first node; a third, kept off both, is refused; so the fourth goes anywhere.
func nodesFail(t *testing.T, c *slurmtest.Cluster, r *rig) {
	gate, wait := r.gated(2, "exit 0")
	r.add("nodes", r.task("only", nil, wait, retries(0, 2), func(task *dagbridgev1.Task) {
		task.Slurm.Options = map[string]string{"no-requeue": ""}
	}))
	r.submit(t)
	t.Cleanup(func() {
		for _, node := range []string{"n1", "n2"} {
			resume(t, c, node)
		}
	})
	fail := func() string {
		node := r.awaitOne(t, "only", "running", running).GetAttempts()
		name := node[len(node)-1].GetNode()
		c.Run(t, "scontrol", "update", "NodeName="+name, "State=DOWN", "Reason=test")
		r.awaitOne(t, "only", "on its next attempt", func(job *dagbridgev1.Job) bool { return len(job.GetAttempts()) > len(node) })
		return name
	}
	first := fail()
	second := fail()
	require.NotEqual(t, first, second)
	resume(t, c, first)
	require.NoError(t, os.WriteFile(gate, nil, 0o600))
	r.awaitEnd(t)
	var told []string
	for _, at := range r.one(t, "only").GetAttempts() {
		told = append(told, fmt.Sprintf("%s %s on %s, off %v", at.GetState(), at.GetReason(), at.GetNode(), at.GetExcludedNodes()))
	}
	require.Equal(t, []string{
		fmt.Sprintf("FAILED NODE_FAIL on %s, off []", first),
		fmt.Sprintf("FAILED NODE_FAIL on %s, off [%s]", second, first),
		fmt.Sprintf("FAILED SUBMISSION_REFUSED on , off [%s %s]", first, second),
		fmt.Sprintf("SUCCEEDED  on %s, off []", first),
	}, told)
}

// resume brings a node back that was set down. Its slurmd may be faster to say that it lives.
func resume(t *testing.T, c *slurmtest.Cluster, node string) {
	t.Helper()
	is := func() bool {
		if strings.HasPrefix(c.Run(t, "sinfo", "-h", "-n", node, "-o", "%T"), "down") {
			c.Run(t, "scontrol", "update", "NodeName="+node, "State=RESUME")
			return false
		}
		return true
	}
	require.True(t, poll(time.Minute, is), "%s stays down", node)
}

// runsOutOfTime: Slurm ends an attempt by its time limit, and the next has three times as much.
func runsOutOfTime(t *testing.T, c *slurmtest.Cluster, r *rig) {
	_, wait := r.gated(1, "exit 0")
	r.add("time", r.task("only", nil, wait, retries(1, 0), func(task *dagbridgev1.Task) {
		task.Resources.TimeLimit = durationpb.New(2 * time.Minute)
		task.Retry.TimeLimitGrowth = &dagbridgev1.Growth{Factor: 3}
	}))
	r.submit(t)
	first := r.awaitOne(t, "only", "running", running)
	c.Run(t, "scontrol", "update", "JobId="+first.GetNativeId(), "EndTime=now") // rather than to wait for two minutes
	r.awaitEnd(t)
	job := r.one(t, "only")
	require.Equal(t, dagbridgev1.Job_SUCCEEDED, job.GetState())
	require.Len(t, job.GetAttempts(), 2)
	require.Equal(t, "TIMEOUT", job.GetAttempts()[0].GetReason())
	require.Equal(t, 6*time.Minute, job.GetAttempts()[1].GetTimeLimit().AsDuration())
	require.Equal(t, "6:00", c.Run(t, "squeue", "-h", "-t", "all", "-j", job.GetNativeId(), "-o", "%l"), "Slurm was asked for it")
}
