package faults

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators/graph"
)

// TestControllerDown kills slurmctld for a while: a minute, in the short form ten seconds. What comes meanwhile is accepted,
// what runs goes on, and nothing ends for want of news.
func TestControllerDown(t *testing.T) {
	t.Parallel()
	c := slurmtest.Start(t, slurmtest.Options{})
	down := 10 * time.Second
	if os.Getenv("DAGBRIDGE_LONG") != "" {
		down = time.Minute
	}
	var rigs []*rig
	for _, way := range []string{"rest", "cli"} {
		r := newRig(t, c, reach(t, c, way))
		r.runOn(t)
		rigs = append(rigs, r)
	}
	awaitSave(t, c) // that all have started
	c.Daemon(t, "kill", "slurmctld")
	began := time.Now()
	for _, r := range rigs {
		r.dags()
		r.submit(t)
		require.NoError(t, os.WriteFile(r.path+".end", nil, 0o644))
	}
	for time.Since(began) < down {
		for _, r := range rigs {
			for _, job := range r.jobs(t) {
				require.False(t, graph.IsTerminal(job.GetState()), "it has ended, and nobody can have said so: %v", job)
			}
		}
		time.Sleep(time.Second)
	}
	for _, r := range rigs {
		r.await(t, "waiting for the cluster", func(job *dagbridgev1.Job) bool {
			return job.GetNativeId() != "" || job.GetParent() != "" || job.GetState() == dagbridgev1.Job_ACCEPTED && (job.GetReason() == "CLUSTER_UNREACHABLE" || job.GetReason() == "UPSTREAM")
		})
	}
	c.Daemon(t, "start", "slurmctld")
	c.AwaitController(t)
	for _, r := range rigs {
		sum := r.finish(t, c)
		require.Equal(t, r.programs, sum.programs)
		require.Equal(t, r.programs, sum.attempts, "none was given up")
	}
}

// runOn submits a chain and an array whose first programs run until a file is there, and waits until they do.
func (r *rig) runOn(t *testing.T) {
	t.Helper()
	until := func(task *dagbridgev1.Task) {
		task.Command = r.program("until [ -e " + r.path + ".end ]; do sleep 0.1; done")
	}
	r.add("run on", r.task("first", nil, until), r.task("map", nil, until, array(3)), r.task("second", []string{"first", "map"}))
	r.submit(t)
	require.True(t, poll(patience, func() bool { return len(r.entries(t)) == 4 }), "they do not start")
	r.awaitKnown(t)
}
