package faults

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators/graph"
)

// forgets are the lines of slurm.conf by which slurmctld forgets ended jobs after some ten seconds, with a partition in which
// nothing starts until it is opened.
var forgets = []string{
	"MinJobAge=2",
	"PartitionName=main Nodes=ALL Default=YES DefaultTime=60 State=UP\nPartitionName=" + closed + " Nodes=ALL DefaultTime=60 State=DOWN",
}

// TestAccountingIsLate has hundreds of jobs run, and slurmctld forget them, while nobody looks and slurmdbd is down, or hangs.
// Those that left an exit marker are told by it; of the others nothing is known until accounting has heard of them, which takes
// a while when it is back. None is lost, and none has succeeded without evidence.
func TestAccountingIsLate(t *testing.T) {
	n := 25
	if os.Getenv("DAGBRIDGE_LONG") != "" {
		n = 300
	}
	onReleases(t, slurmtest.Options{Set: forgets}, func(t *testing.T, c *slurmtest.Cluster) {
		// Hung comes first: five minutes after its start, and then every five minutes, slurmctld tells slurmdbd of its nodes in the
		// thread that also forgets jobs, and waits up to fifteen minutes for the answer (controller.c, PERIODIC_NODE_ACCT).
		t.Run("hung", func(t *testing.T) { late(t, c, n, "hang", "wake") })
		t.Run("down", func(t *testing.T) { late(t, c, n, "stop", "start") })
	})
}

// late does something to slurmdbd, has the jobs of two gateways run, and undoes it. The jobs are somewhat more than 4n.
func late(t *testing.T, c *slurmtest.Cluster, n int, do, undo string) {
	c.Run(t, "scontrol", "update", "PartitionName="+closed, "State=DOWN")
	var rigs []*rig
	for _, way := range []string{"rest", "cli"} {
		r := newRig(t, c, reach(t, c, way))
		r.partition = closed
		for range n {
			r.single()
			r.add("silent", r.task("silent", nil, r.dies))
		}
		r.chain(3)
		r.mapped(4)
		r.submit(t)
		r.awaitKnown(t)
		r.awaitReleased(t, c)
		r.stop()
		rigs = append(rigs, r)
	}
	c.Daemon(t, do, "slurmdbd")
	back := false
	t.Cleanup(func() {
		if !back {
			c.Daemon(t, undo, "slurmdbd")
		}
	})
	runUnseen(t, c, rigs...)

	for _, r := range rigs {
		r.start(t)
		silent := func(job *dagbridgev1.Job) bool { return job.GetKey().GetTask() == "silent" }
		r.await(t, "told by its marker", func(job *dagbridgev1.Job) bool { return silent(job) || graph.IsTerminal(job.GetState()) })
		// meanwhile others come and go
		r.chain(3)
		r.submit(t)
		r.await(t, "told by its marker, or by slurmctld", func(job *dagbridgev1.Job) bool { return silent(job) || graph.IsTerminal(job.GetState()) })
		r.awaitLooks(t)
		for _, job := range r.jobs(t) {
			require.Equal(t, !silent(job), graph.IsTerminal(job.GetState()), "only of what left no marker nobody knows: %v", job)
		}
	}
	_, queue, _ := strings.Cut(c.Run(t, "sdiag"), "DBD Agent queue size:")
	c.Daemon(t, undo, "slurmdbd")
	back = true
	for _, r := range rigs {
		sum := r.finish(t, c)
		require.Equal(t, r.programs, sum.programs)
		require.Equal(t, r.programs, sum.attempts, "none was run again")
	}
	t.Logf("slurmctld had %s messages for accounting", strings.Fields(queue)[0])
}
