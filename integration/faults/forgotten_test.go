package faults

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// TestForgottenWithoutAccounting has jobs run, and slurmctld forget them, while nobody looks, on a site without accounting. What
// their markers do not tell is lost, after the grace: it has not succeeded, and it is not run again.
func TestForgottenWithoutAccounting(t *testing.T) {
	onReleases(t, slurmtest.Options{NoAccounting: true, Set: forgets}, forgottenWithoutAccounting)
}

func forgottenWithoutAccounting(t *testing.T, c *slurmtest.Cluster) {
	var rigs []*rig
	deleted := map[*rig]string{} // the id of a job whose folder somebody deletes
	for _, way := range []string{"rest", "cli"} {
		r := newRig(t, c, reach(t, c, way))
		r.partition = closed
		lost := becomes(dagbridgev1.Job_LOST, 1)
		r.add("ends",
			r.task("ok", nil), r.task("ko", nil, r.fails), r.task("after", []string{"ok"}),
			r.task("killed", nil, r.dies, lost))
		r.add("deleted", r.task("deleted", nil, lost)) // a run of its own: tasks that are alike may share a folder
		r.mapped(3)
		r.submit(t)
		r.awaitKnown(t)
		r.awaitReleased(t, c)
		deleted[r] = r.one(t, "deleted").GetId()
		r.stop()
		rigs = append(rigs, r)
	}
	runUnseen(t, c, rigs...)
	for _, r := range rigs {
		folders, err := filepath.Glob(filepath.Join(r.options.WorkDir, "*", deleted[r]))
		require.NoError(t, err)
		require.Len(t, folders, 1)
		require.NoError(t, os.RemoveAll(folders[0]))
		r.start(t)
		r.awaitEnd(t)
		ran := map[string]int{}
		for _, e := range r.entries(t) {
			ran[e.what]++
		}
		for _, job := range r.jobs(t) {
			if len(job.GetCounts()) > 0 {
				continue // its instances are told one by one
			}
			require.Equal(t, job.GetLabels()[labelEnds], job.GetState().String(), "%v", job)
			require.Len(t, job.GetAttempts(), 1, "%v", job)
			require.Equal(t, 1, ran[runs(job)[0]], "%v", job)
		}
		require.Contains(t, r.one(t, "killed").GetMessage(), "without a trace of its end")
		require.Contains(t, r.one(t, "deleted").GetMessage(), "has been deleted")
	}
}
