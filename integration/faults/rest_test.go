package faults

import (
	"testing"

	"github.com/stretchr/testify/require"

	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// TestRESTFails has slurmrestd hang, or die, in the middle of a submission of dozens of jobs. What it had taken and what it had
// not is found out: nothing is lost, and nothing runs twice.
func TestRESTFails(t *testing.T) {
	c := slurmtest.Shared(t)
	for name, fault := range map[string]struct{ do, undo []string }{
		"it is killed, and started again":                 {[]string{"kill"}, []string{"start"}},
		"it hangs, and goes on with what it has received": {[]string{"hang"}, []string{"wake"}},
		"it hangs, and is killed":                         {[]string{"hang"}, []string{"kill", "start"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, c, reach(t, c, "rest"))
			for range 40 {
				r.single()
			}
			r.chain(4)
			r.fan(4)
			r.mapped(4)
			r.submit(t)
			require.True(t, poll(patience, func() bool { return r.known(t) > 0 }), "nothing is submitted")
			for _, action := range fault.do {
				c.Daemon(t, action, "slurmrestd")
			}
			in := r.known(t)
			require.True(t, poll(patience, func() bool { return !r.engine.Clusters()[0].GetReachable() }), "nobody notices")
			for _, action := range fault.undo {
				c.Daemon(t, action, "slurmrestd")
			}
			sum := r.finish(t, c)
			require.Equal(t, r.programs, sum.programs)
			require.Equal(t, r.programs, sum.attempts, "no attempt was given up")
			t.Logf("%d of %d jobs were known when it failed; %d native jobs ran nothing", in, len(r.jobs(t)), sum.doubles)
		})
	}
}

// known is how many jobs have a native id.
func (r *rig) known(t *testing.T) int {
	t.Helper()
	n := 0
	for _, job := range r.jobs(t) {
		if job.GetNativeId() != "" && job.GetState() != dagbridgev1.Job_ACCEPTED {
			n++
		}
	}
	return n
}
