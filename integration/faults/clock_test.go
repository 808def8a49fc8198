package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dagbridge/dagbridge/integration/program"
	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// TestControllersClockIsOff has slurmctld's clock, and nobody else's, a minute fast and a minute slow.
func TestControllersClockIsOff(t *testing.T) {
	t.Parallel()
	for _, off := range []time.Duration{time.Minute, -time.Minute} {
		t.Run(off.String(), func(t *testing.T) {
			t.Parallel()
			c := slurmtest.Start(t, slurmtest.Options{})
			setClock(t, c, off)
			for _, way := range []string{"rest", "cli"} {
				t.Run(way, func(t *testing.T) {
					t.Parallel()
					r := newRig(t, c, reach(t, c, way))
					r.dags()
					r.retried()
					r.rules()
					began := time.Now()
					r.submit(t)
					sum := r.finish(t, c)
					require.Equal(t, r.programs, sum.programs)
					for _, job := range r.jobs(t) {
						plausible(t, job, began.Add(-2*time.Minute), time.Now().Add(2*time.Minute))
					}
				})
			}
		})
	}
}

// plausible: the times of a job follow each other, and lie where they may by any of the clocks.
func plausible(t *testing.T, job *dagbridgev1.Job, from, to time.Time) {
	t.Helper()
	for _, at := range job.GetAttempts() {
		if at.GetStartTime() != nil && at.GetEndTime() != nil {
			require.False(t, at.GetEndTime().AsTime().Before(at.GetStartTime().AsTime()), "it ends before it starts: %v", at)
		}
		for _, stamp := range []*timestamppb.Timestamp{at.GetSubmitTime(), at.GetStartTime(), at.GetEndTime()} {
			if stamp != nil {
				require.WithinRange(t, stamp.AsTime(), from, to, "%v", at)
			}
		}
	}
}

// setClock restarts slurmctld with its clock off, by libfaketime.
func setClock(t *testing.T, c *slurmtest.Cluster, off time.Duration) {
	t.Helper()
	libraries, err := filepath.Glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
	require.NoError(t, err)
	require.NotEmpty(t, libraries, "libfaketime is not installed")
	start := filepath.Join(c.Prefix, "run", "slurmctld.cmd")
	text, err := os.ReadFile(start)
	require.NoError(t, err)
	before, command, found := strings.Cut(string(text), " slurmctld ")
	require.True(t, found, "%s", text)
	faked := fmt.Sprintf("%s LD_PRELOAD=%s FAKETIME=%+ds slurmctld %s", before, libraries[0], int(off.Seconds()), command)
	require.NoError(t, program.Write(start, []byte(faked)))
	c.Daemon(t, "restart", "slurmctld")
	c.AwaitController(t)
}
