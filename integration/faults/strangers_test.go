package faults

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
)

// strangers submit jobs that are none of the gateway's, and that take the ids of the jobs which slurmctld forgot.
type strangers struct {
	// name of their jobs.
	name string
	ids  []string
}

// users of the strangers' jobs: the gateway's own, over REST and by the commands, and another.
var users = []string{slurmtest.User, "root", slurmtest.OtherUser}

// come has each submit a job, or an array.
func (s *strangers) come(t *testing.T, c *slurmtest.Cluster) {
	t.Helper()
	for i, user := range users {
		arguments := []string{"--parsable", "--uid=" + user, "--job-name=" + s.name, "--output=/dev/null", "--chdir=/tmp", "--mem=20"}
		if (len(s.ids)+i)%2 == 0 {
			arguments = append(arguments, "--array=0-2")
		}
		id, _, _ := strings.Cut(c.Run(t, "sbatch", append(arguments, "--wrap=sleep 0.5")...), ";")
		s.ids = append(s.ids, id)
	}
}

// verdict: nobody has cancelled a stranger's job. It says how many had an id of the natives.
func (s *strangers) verdict(t *testing.T, c *slurmtest.Cluster, natives map[string]bool) (reused int) {
	t.Helper()
	ended := func() bool {
		tend(t, c)
		for _, id := range strings.Fields(c.Run(t, "squeue", "-h", "-a", "-t", "PENDING", "--name="+s.name, "-o", "%A")) {
			// They have nobody else who does so when their launch has failed; they may have ended since.
			_ = exec.Command(filepath.Join(c.Bin(), "scontrol"), "release", id).Run()
		}
		return c.Run(t, "squeue", "-h", "-a", "--name="+s.name) == ""
	}
	if !poll(patience, ended) {
		// slurmctld 22.05 may not be able to release a job any more ("the DB index is being set").
		for _, reason := range strings.Split(c.Run(t, "squeue", "-h", "-a", "--name="+s.name, "-o", "%r"), "\n") {
			require.Regexp(t, "^(JobHeld|launch failed requeued held)", reason, "strangers' jobs do not end")
		}
	}
	states := c.Run(t, "sacct", "-a", "-X", "-D", "-n", "-P", "-S", "1970-01-02", "-E", "now", "--name="+s.name, "-o", "JobID,State,User")
	require.NotContains(t, states, "CANCELLED")
	for _, id := range s.ids {
		if natives[id] {
			reused++
		}
	}
	return reused
}
