package faults

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend/slurm"
)

// TestControllerForgets kills slurmctld right after it has done something. It saves its state every few seconds only, so it
// forgets what it did, and gives the ids of the jobs it forgot to others.
func TestControllerForgets(t *testing.T) {
	c := slurmtest.Shared(t)
	for _, way := range []string{"rest", "cli"} {
		t.Run("jobs that it accepted/"+way, func(t *testing.T) { forgetsJobs(t, c, way) })
	}
	t.Run("a release", func(t *testing.T) { forgetsRelease(t, c) })
	for _, way := range []string{"rest", "cli"} {
		t.Run("a cancel/"+way, func(t *testing.T) { forgetsCancel(t, c, way) })
	}
}

// forgetful starts a gateway over a cluster whose partition is closed, so that nothing has started when slurmctld is killed.
func forgetful(t *testing.T, c *slurmtest.Cluster, way, url string) *rig {
	o := slurm.Options{Timeout: 10 * time.Second}
	if way == "rest" {
		o.REST = &slurm.REST{URL: url, User: slurmtest.User, TokenFile: c.TokenFile(t)}
	} else {
		o.CLI = &slurm.CLI{Path: c.Bin()}
	}
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

// amnesia kills slurmctld and starts it again. The partition is open then, and what it still has may start at once.
func amnesia(t *testing.T, c *slurmtest.Cluster) {
	t.Helper()
	c.Daemon(t, "kill", "slurmctld")
	require.NoError(t, os.Remove(inTheWay(c)))
	c.Daemon(t, "start", "slurmctld")
	c.AwaitController(t)
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
	r := forgetful(t, c, way, c.URL)
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
	amnesia(t, c)
	sum := r.finish(t, c)
	require.Equal(t, r.programs, sum.programs)
	require.Greater(t, sum.attempts, r.programs, "nothing was forgotten: this has tested nothing")
	t.Logf("%d of %d native jobs were forgotten; %d programs, %d attempts, %d native jobs ran nothing", all-kept, all, sum.programs, sum.attempts, sum.doubles)
}

// queued is how many native jobs of a workload are in the queue.
func queued(t *testing.T, c *slurmtest.Cluster, r *rig) int {
	t.Helper()
	queue, n := c.Run(t, "squeue", "-h", "-a", "-o", "%j"), 0
	for _, id := range r.ids {
		n += strings.Count(queue, id)
	}
	return n
}

func forgetsRelease(t *testing.T, c *slurmtest.Cluster) {
	p := newProxy(t, c.URL)
	r := forgetful(t, c, "rest", p.URL)
	r.chain(3)
	asked, open := make(chan struct{}), make(chan struct{})
	// the first order is the release
	p.gate = sync.OnceFunc(func() {
		close(asked)
		<-open
	})
	r.submit(t)
	root := r.jobs(t)[0]
	<-asked
	r.awaitSaved(t, c) // held
	freeze(t, c)
	close(open)
	p.await(p.released, slurmName(root))
	amnesia(t, c)
	sum := r.finish(t, c)
	require.Equal(t, r.programs, sum.programs)
	require.Equal(t, r.programs, sum.attempts, "no native job was lost")
	require.Greater(t, p.count(p.released, slurmName(root))-1, 1, "the release was not forgotten: this has tested nothing")
}

func forgetsCancel(t *testing.T, c *slurmtest.Cluster, way string) {
	r := forgetful(t, c, way, c.URL)
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
	amnesia(t, c)
	t.Logf("%d cancelled native jobs are back", queued(t, c, r)) // those that have not been cancelled again, or started in vain
	r.finish(t, c)
}

// awaitKnown waits until all native jobs of a workload are there.
func (r *rig) awaitKnown(t *testing.T) {
	t.Helper()
	r.await(t, "known to Slurm", func(job *dagbridgev1.Job) bool { return job.GetNativeId() != "" || job.GetReason() == "UPSTREAM" })
}

func (r *rig) awaitSaved(t *testing.T, c *slurmtest.Cluster) {
	t.Helper()
	require.True(t, poll(patience, func() bool { return saved(t, c, r) }), "slurmctld does not save its state")
}

// saved says whether slurmctld's saved state has all jobs of a workload that are known to Slurm.
func saved(t *testing.T, c *slurmtest.Cluster, r *rig) bool {
	t.Helper()
	state, err := os.ReadFile(filepath.Join(c.Prefix, "state", "job_state"))
	if err != nil {
		return false // it is being replaced
	}
	for _, job := range r.jobs(t) {
		if job.GetParent() == "" && job.GetNativeId() != "" && !bytes.Contains(state, []byte(slurmName(job))) {
			return false
		}
	}
	return true
}

// slurmName is the name of a job's native job.
func slurmName(job *dagbridgev1.Job) string {
	at := job.GetAttempts()[len(job.GetAttempts())-1]
	return job.GetKey().GetTask() + "." + at.GetToken()
}
