package faults

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend/slurm"
	"github.com/dagbridge/dagbridge/translators/graph"
)

// closed is a partition in which nothing starts until it is opened, also after slurmctld was killed.
const closed = "closed"

// forgetting is a Slurm whose slurmctld is killed again and again. What has ended is soon told by the accounting alone; jobs
// whose ends are forgotten are soon missed, and keep their CPUs until then.
var forgetting = slices.Concat(forgets, []string{"MinJobAge=20", "BatchStartTimeout=1", "MessageTimeout=5"})

// TestControllerForgets kills slurmctld right after it has done something. It saves its state every few seconds only, so it
// forgets what it did, and gives the ids of the jobs it forgot to others.
func TestControllerForgets(t *testing.T) {
	t.Parallel()
	long := os.Getenv("DAGBRIDGE_LONG") != ""
	for _, way := range []string{"rest", "cli"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			c := slurmtest.Start(t, slurmtest.Options{Set: forgetting})
			t.Run("jobs that it accepted", func(t *testing.T) { forgetsJobs(t, c, way) })
			t.Run("a release", func(t *testing.T) { forgetsRelease(t, c, way) })
			t.Run("a cancel", func(t *testing.T) { forgetsCancel(t, c, way) })
			// in the short form single jobs over one way, and arrays over the other
			if long || way == "rest" {
				t.Run("a rewritten dependency", func(t *testing.T) { forgetsRewrite(t, c, way) })
				t.Run("a start", func(t *testing.T) { forgetsStart(t, c, way) })
				t.Run("an end", func(t *testing.T) { forgetsEnd(t, c, way, false) })
			}
			if long || way == "cli" {
				t.Run("a rewritten dependency on an array", func(t *testing.T) { forgetsRewrite(t, c, way, array(3)) })
				t.Run("the start of an array", func(t *testing.T) { forgetsStart(t, c, way, array(3)) })
				t.Run("the end of an array", func(t *testing.T) { forgetsEnd(t, c, way, false, array(3)) })
			}
			if long {
				t.Run("an end that the gateway has seen", func(t *testing.T) { forgetsEnd(t, c, way, true) })
				t.Run("the end of an array that the gateway has seen", func(t *testing.T) { forgetsEnd(t, c, way, true, array(3)) })
			}
		})
	}
}

// forgetful starts a gateway over a cluster whose partition is closed, so that nothing has started when slurmctld is killed.
func forgetful(t *testing.T, c *slurmtest.Cluster, o slurm.Options) *rig {
	o.Timeout = 30 * time.Second
	c.Run(t, "scontrol", "update", "PartitionName="+closed, "State=DOWN")
	r := newRig(t, c, o)
	r.partition = closed
	return r
}

// freeze keeps slurmctld from saving what happens to jobs from here on, as if it were killed before it came to it: where it
// would write there is a folder.
func freeze(t *testing.T, c *slurmtest.Cluster) {
	t.Helper()
	require.NoError(t, os.Mkdir(inTheWay(c), 0o755))
	t.Cleanup(func() { _ = os.Remove(inTheWay(c)) }) // it is gone already, unless the test has failed
}

func inTheWay(c *slurmtest.Cluster) string { return filepath.Join(c.Prefix, "state", "job_state.new") }

// amnesia kills slurmctld and starts it again. Strangers are the first to submit then, if there are any. The partition is open
// after that, and what slurmctld still has may start.
func amnesia(t *testing.T, c *slurmtest.Cluster, s *strangers) {
	t.Helper()
	c.Daemon(t, "kill", "slurmctld")
	require.NoError(t, os.Remove(inTheWay(c)))
	c.Daemon(t, "start", "slurmctld")
	c.AwaitController(t)
	if s != nil {
		s.come(t, c)
		s.come(t, c)
	}
	c.Run(t, "scontrol", "update", "PartitionName="+closed, "State=UP")
}

func (w *workload) dags() {
	w.single()
	w.chain(4)
	w.fan(3)
	w.mapped(4)
	w.add("held", w.task("a", nil), w.task("b", nil), w.task("either", []string{"a", "b"}, rule("one_success")))
}

func forgetsJobs(t *testing.T, c *slurmtest.Cluster, way string) {
	r := forgetful(t, c, reach(t, c, way))
	r.dags()
	r.submit(t)
	r.awaitKnown(t)
	r.awaitSaved(t, c)
	kept := queued(t, c, r)
	freeze(t, c)
	r.dags()
	r.submit(t)
	r.awaitKnown(t)
	all := queued(t, c, r)
	others := &strangers{name: "stranger-" + way}
	amnesia(t, c, others)
	sum := r.finish(t, c)
	require.Equal(t, r.programs, sum.programs)
	require.Greater(t, sum.attempts, r.programs, "nothing was forgotten: this has tested nothing")
	natives := map[string]bool{}
	for _, job := range r.jobs(t) {
		for _, at := range job.GetAttempts() {
			natives[nativeID(at)] = true
		}
	}
	reused := others.verdict(t, c, natives)
	require.Positive(t, reused, "no stranger's job has an id that was forgotten: this has tested nothing")
	t.Logf("%d of %d native jobs were forgotten, and %d of their ids given to strangers; %d programs, %d attempts, %d native jobs ran nothing",
		all-kept, all, reused, sum.programs, sum.attempts, sum.doubles)
}

// queued is how many native jobs of a workload are in the queue.
func queued(t *testing.T, c *slurmtest.Cluster, r *rig) int { return len(queue(t, c, r)) }

// queue is why each native job of a workload that is in the queue is there.
func queue(t *testing.T, c *slurmtest.Cluster, r *rig) (reasons []string) {
	t.Helper()
	tokens := tokens(r.jobs(t))
	for line := range strings.Lines(c.Run(t, "squeue", "-h", "-a", "-o", "%r|%j")) {
		reason, name, _ := strings.Cut(strings.TrimSpace(line), "|")
		if _, token, _ := strings.Cut(name, "."); tokens[token] {
			reasons = append(reasons, reason)
		}
	}
	return reasons
}

// forgetsRelease: the root of a chain is released, and back in its hold.
func forgetsRelease(t *testing.T, c *slurmtest.Cluster, way string) {
	g := newGate(t, c, way, release)
	r := forgetful(t, c, g.options)
	r.chain(3)
	r.submit(t)
	g.await(t, g.asked)
	r.awaitSaved(t, c) // held
	freeze(t, c)
	g.open(t)
	g.await(t, g.done)
	amnesia(t, c, nil)
	sum := r.finish(t, c)
	require.Equal(t, r.programs, sum.programs)
	require.Equal(t, r.programs, sum.attempts, "no native job was lost")
	require.Greater(t, g.count(t, g.done), 1, "the release was not forgotten: this has tested nothing")
}

// forgetsRewrite: a job waits for the second attempt of its upstream, and then for the first again, which has failed.
func forgetsRewrite(t *testing.T, c *slurmtest.Cluster, way string, edits ...edit) {
	g := newGate(t, c, way, rewrite)
	r := forgetful(t, c, g.options)
	r.partition = ""
	again := r.path + ".again"
	r.add("rewritten", r.task("first", nil, append(edits, r.flaky, func(task *dagbridgev1.Task) {
		task.Command = r.program(fmt.Sprintf(`case $DAGBRIDGE_OUTPUT in */1.output | */1_*) exit 3 ;; esac; until [ -e %s ]; do sleep 0.1; done`, again))
	})...), r.task("second", []string{"first"}))
	r.submit(t)
	g.await(t, g.asked)
	instances := len(r.runs[0].GetTasks()[0].GetArray().GetItems())
	require.True(t, poll(patience, func() bool { return len(r.entries(t)) == 2*max(1, instances) }), "the second attempt does not start")
	awaitSave(t, c) // that it has
	freeze(t, c)
	g.open(t)
	g.await(t, g.done)
	amnesia(t, c, nil)
	require.True(t, poll(patience, func() bool { return g.count(t, g.done) > 1 }), "the dependency is not rewritten again")
	require.NoError(t, os.WriteFile(again, nil, 0o644))
	sum := r.finish(t, c)
	require.Equal(t, r.programs, sum.programs)
}

// forgetsStart: a program runs, and slurmctld has it waiting still. It is killed, and nothing runs a second time.
func forgetsStart(t *testing.T, c *slurmtest.Cluster, way string, edits ...edit) {
	r := forgetful(t, c, reach(t, c, way))
	lost := func(task *dagbridgev1.Task) {
		task.Command = r.program("sleep 600")
		task.Slurm.Options = map[string]string{"no-requeue": ""}
		becomes(dagbridgev1.Job_LOST, 1)(task)
	}
	r.add("started", r.task("first", nil, append(edits, lost)...), r.task("second", []string{"first"}, becomes(dagbridgev1.Job_UPSTREAM_FAILED, 0)))
	r.submit(t)
	r.awaitKnown(t)
	r.awaitSaved(t, c)
	freeze(t, c)
	c.Run(t, "scontrol", "update", "PartitionName="+closed, "State=UP")
	require.True(t, poll(patience, func() bool { return len(r.entries(t)) == r.programs }), "it does not start")
	amnesia(t, c, nil)
	r.awaitEndTended(t, c)
	require.Len(t, r.entries(t), r.programs)
	for _, job := range r.jobs(t) {
		if len(job.GetCounts()) == 0 {
			require.Equal(t, job.GetLabels()[labelEnds], job.GetState().String(), "%v", job)
		}
	}
}

// forgetsEnd: a program has ended, and slurmctld has it running still: it takes the job for one that vanished with its node. It
// has succeeded, whether Slurm may requeue it or not, and whether the gateway has seen the end or not.
func forgetsEnd(t *testing.T, c *slurmtest.Cluster, way string, seen bool, edits ...edit) {
	r := forgetful(t, c, reach(t, c, way))
	r.partition = ""
	end := r.path + ".end"
	for _, requeue := range []string{"requeue", "no-requeue"} {
		r.add(requeue, r.task("first", nil, append(edits, func(task *dagbridgev1.Task) {
			task.Command = r.program(fmt.Sprintf("until [ -e %s ]; do sleep 0.1; done", end))
			task.Slurm.Options = map[string]string{requeue: ""}
		})...), r.task("second", []string{"first"}))
	}
	r.submit(t)
	firsts := r.programs - len(r.runs)
	require.True(t, poll(patience, func() bool { return len(r.entries(t)) == firsts }), "they do not start")
	awaitSave(t, c)
	freeze(t, c)
	if !seen {
		r.stop()
	}
	require.NoError(t, os.WriteFile(end, nil, 0o644))
	require.True(t, poll(patience, func() bool { return len(r.entries(t)) == r.programs }), "they do not end")
	if seen {
		r.awaitEnd(t)
	}
	amnesia(t, c, nil)
	if !seen {
		r.start(t)
	}
	r.awaitEndTended(t, c)
	// those that come after a NODE_FAIL stay in the queue, when nobody looks after them any more
	require.True(t, poll(patience, func() bool {
		tend(t, c)
		return !slices.ContainsFunc(queue(t, c, r), func(reason string) bool { return reason != "DependencyNeverSatisfied" })
	}), "Slurm does not end them")
	clearAway(t, c, tokens(r.jobs(t)))
	require.Len(t, r.entries(t), r.programs, "each ran once")
	for _, job := range r.jobs(t) {
		require.Equal(t, dagbridgev1.Job_SUCCEEDED, job.GetState(), "%v", job)
	}
}

func forgetsCancel(t *testing.T, c *slurmtest.Cluster, way string) {
	r := forgetful(t, c, reach(t, c, way))
	r.chain(3)
	r.mapped(4)
	for _, w := range r.runs {
		for _, task := range w.GetTasks() {
			becomes(dagbridgev1.Job_CANCELLED, 0)(task)
		}
	}
	r.submit(t)
	r.awaitKnown(t)
	r.awaitSaved(t, c)
	freeze(t, c)
	_, err := r.engine.Cancel(t.Context(), r.ids)
	require.NoError(t, err)
	require.True(t, poll(patience, func() bool { return queued(t, c, r) == 0 }), "they are not cancelled")
	amnesia(t, c, nil)
	t.Logf("%d cancelled native jobs are back", queued(t, c, r)) // those that have not been cancelled again, or started in vain
	r.finish(t, c)
}

// awaitKnown waits until all native jobs of a workload are there.
func (r *rig) awaitKnown(t *testing.T) {
	t.Helper()
	r.await(t, "known to Slurm", func(job *dagbridgev1.Job) bool { return job.GetNativeId() != "" || job.GetReason() == "UPSTREAM" })
}

// awaitEndTended waits until all jobs have ended, in a cluster that is looked after.
func (r *rig) awaitEndTended(t *testing.T, c *slurmtest.Cluster) {
	t.Helper()
	var live []*dagbridgev1.Job
	ended := func() bool {
		tend(t, c)
		live = slices.DeleteFunc(r.jobs(t), func(job *dagbridgev1.Job) bool { return graph.IsTerminal(job.GetState()) })
		return len(live) == 0
	}
	if !poll(patience, ended) {
		require.Empty(t, live, "these do not end")
	}
}

// awaitSave waits until slurmctld has saved what there is now, by a job that comes after it.
func awaitSave(t *testing.T, c *slurmtest.Cluster) {
	t.Helper()
	name := "after-" + rand.Text()
	c.Run(t, "sbatch", "--parsable", "--hold", "--job-name="+name, "--wrap=true")
	require.True(t, poll(patience, func() bool { return savedName(c, name) }), "slurmctld does not save its state")
}

func (r *rig) awaitSaved(t *testing.T, c *slurmtest.Cluster) {
	t.Helper()
	require.True(t, poll(patience, func() bool { return saved(t, c, r) }), "slurmctld does not save its state")
}

// saved says whether slurmctld's saved state has all jobs of a workload that are known to Slurm.
func saved(t *testing.T, c *slurmtest.Cluster, r *rig) bool {
	t.Helper()
	return !slices.ContainsFunc(r.jobs(t), func(job *dagbridgev1.Job) bool {
		if job.GetNativeId() == "" || job.GetParent() != "" {
			return false
		}
		return !savedName(c, job.GetAttempts()[len(job.GetAttempts())-1].GetToken())
	})
}

// savedName says whether slurmctld's saved state has a job with something in its name.
func savedName(c *slurmtest.Cluster, name string) bool {
	state, err := os.ReadFile(filepath.Join(c.Prefix, "state", "job_state")) // it may be just being replaced
	return err == nil && bytes.Contains(state, []byte(name))
}
