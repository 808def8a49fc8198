package faults

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// TestLimits meets the limits of a site. What there is no room for yet waits, and says in Slurm's words for what; it goes on
// when there is room, and all run once. What is too large for ever fails with Slurm's sentence.
func TestLimits(t *testing.T) {
	onReleases(t, slurmtest.Options{Set: forgets}, limits)
}

func limits(t *testing.T, c *slurmtest.Cluster) {
	for _, way := range []string{"rest", "cli"} {
		user := map[string]string{"rest": slurmtest.User, "cli": "root"}[way]
		set := func(t *testing.T, limit, value string) {
			t.Helper()
			c.Run(t, "sacctmgr", "-i", "modify", "user", user, "set", limit+"="+value)
			// slurmctld hears of it a moment later
			shown := limit + "=" + strings.Replace(value, "-1", "", 1)
			require.True(t, poll(patience, func() bool {
				return strings.Contains(c.Run(t, "scontrol", "-o", "show", "assoc_mgr", "users="+user, "flags=assoc"), shown)
			}), "slurmctld does not hear of %s=%s", limit, value)
		}
		t.Run("how many jobs there may be/"+way, func(t *testing.T) {
			set(t, "MaxSubmitJobs", "3")
			defer set(t, "MaxSubmitJobs", "-1")
			r := newRig(t, c, reach(t, c, way))
			for range 6 {
				r.single()
			}
			r.chain(4)
			r.submit(t)
			r.awaitWaiting(t, "ADMISSION", "limit")
			sum := r.finish(t, c)
			require.Equal(t, r.programs, sum.attempts)
		})
		for limit, reason := range map[string]string{"MaxJobs=1": "AssocMaxJobsLimit", "GrpTRES=cpu=1": "AssocGrpCpuLimit"} {
			t.Run("how much may run/"+way+"/"+limit, func(t *testing.T) {
				name, value, _ := strings.Cut(limit, "=")
				set(t, name, value)
				defer set(t, name, strings.Replace(value, "1", "-1", 1))
				r := newRig(t, c, reach(t, c, way))
				gate, wait := r.gated(1, "exit 0")
				for range 3 {
					r.add("gated", r.task("gated", nil, wait))
				}
				r.submit(t)
				r.awaitWaiting(t, reason, "")
				require.NoError(t, os.WriteFile(gate, nil, 0o600))
				sum := r.finish(t, c)
				require.Equal(t, r.programs, sum.attempts)
			})
		}
	}
	t.Run("how large a job may be", func(t *testing.T) { tooLarge(t, c) })
	t.Run("how many jobs slurmctld holds", func(t *testing.T) { queueFull(t, c) })
}

// awaitWaiting waits until some job waits for a reason, with a word in its message.
func (r *rig) awaitWaiting(t *testing.T, reason, word string) {
	t.Helper()
	require.True(t, poll(patience, func() bool {
		for _, job := range r.jobs(t) {
			if job.GetReason() == reason && strings.Contains(strings.ToLower(job.GetMessage()), word) {
				return true
			}
		}
		return false
	}), "nothing waits for %s", reason)
}

// tooLarge asks for more CPUs than a QOS grants any job. slurmrestd does not tell this limit from one on how many jobs there
// may be, so that over it the job waits.
func tooLarge(t *testing.T, c *slurmtest.Cluster) {
	c.Run(t, "sacctmgr", "-i", "add", "qos", "small", "set", "MaxTRESPerJob=cpu=1", "Flags=DenyOnLimit")
	c.Run(t, "sacctmgr", "-i", "modify", "user", "root,"+slurmtest.User, "set", "qos+=small")
	large := func(task *dagbridgev1.Task) { task.Slurm.Qos, task.Resources.Cpu = "small", "2" }
	r := newRig(t, c, reach(t, c, "cli"))
	r.add("large", r.task("first", nil), r.task("large", []string{"first"}, large))
	require.True(t, poll(patience, func() bool {
		return exec.Command(filepath.Join(c.Bin(), "sbatch"), "--test-only", "--qos=small", "--wrap=true").Run() == nil
	}), "slurmctld does not hear of the QOS")
	r.submit(t)
	r.awaitEnd(t)
	require.Equal(t, "SUBMISSION_REFUSED", r.one(t, "large").GetReason())
	require.Contains(t, r.one(t, "large").GetMessage(), "QOSMaxCpuPerJobLimit")
	require.Equal(t, dagbridgev1.Job_FAILED, r.one(t, "first").GetState(), "a run goes in as a whole, or not at all")
	require.Empty(t, r.entries(t))

	r = newRig(t, c, reach(t, c, "rest"))
	r.add("large", r.task("large", nil, large))
	r.submit(t)
	r.awaitWaiting(t, "ADMISSION", "slurmrestd does not tell which limit")
	_, err := r.engine.Cancel(t.Context(), r.ids)
	require.NoError(t, err)
	r.awaitEnd(t)
}

// queueFull has two gateways submit more jobs than slurmctld holds at once. sbatch waits for a while by itself.
func queueFull(t *testing.T, c *slurmtest.Cluster) {
	conf := filepath.Join(c.Prefix, "etc", "slurm.conf")
	before, err := os.ReadFile(conf)
	require.NoError(t, err)
	reconfigure := func(text string) {
		require.NoError(t, os.WriteFile(conf, []byte(text), 0o644))
		c.Run(t, "scontrol", "reconfigure")
	}
	reconfigure(strings.Replace(string(before), "MaxJobCount=50000", "MaxJobCount=20", 1))
	defer reconfigure(string(before))
	require.Contains(t, c.Run(t, "scontrol", "show", "config"), "= 20\n")
	var rigs []*rig
	for _, way := range []string{"rest", "cli"} {
		o := reach(t, c, way)
		o.Timeout = time.Minute
		r := newRig(t, c, o)
		for range 16 {
			r.single()
		}
		r.chain(4)
		r.submit(t)
		rigs = append(rigs, r)
	}
	rigs[0].awaitWaiting(t, "ADMISSION", "")
	for _, r := range rigs {
		sum := r.finish(t, c)
		require.Equal(t, r.programs, sum.attempts)
	}
}
