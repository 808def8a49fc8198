package endtoend_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	gatewaytest "github.com/dagbridge/dagbridge/integration/gateway"
	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// waiting are two tasks that wait for what is not the gateway's, and one behind them.
const waiting = `
name: waiting
cluster: hpc
tasks:
  - key: {task: report}
    upstream: [{native: {cluster: hpc, id: "ID"}}]
    command: {argv: ["true"]}
  - key: {task: after-report}
    upstream: [{task: report}]
    command: {argv: ["true"]}
  - key: {task: clean}
    triggerRule: all_done
    upstream: [{native: {cluster: hpc, id: "ID"}}]
    command: {argv: ["true"]}
  - key: {task: alone}
    upstream: [{condition: SINGLETON}]
    command: {argv: ["true"]}
`

// A task may wait for somebody else's job, or for all jobs of its own name: Slurm keeps it, and the gateway hears the end.
func TestWaitingForJobsThatAreNotTheGateways(t *testing.T) {
	cluster := slurmtest.Shared(t)
	for _, way := range []string{"rest", "cli"} {
		t.Run(way, func(t *testing.T) {
			g := gatewaytest.New(t, cluster, way)
			t.Run("that succeed", func(t *testing.T) {
				waits(t, g, "true", map[string]dagbridgev1.Job_State{
					"report": dagbridgev1.Job_SUCCEEDED, "after-report": dagbridgev1.Job_SUCCEEDED,
					"clean": dagbridgev1.Job_SUCCEEDED, "alone": dagbridgev1.Job_SUCCEEDED,
				})
			})
			t.Run("that fail", func(t *testing.T) {
				waits(t, g, "false", map[string]dagbridgev1.Job_State{
					"report": dagbridgev1.Job_UPSTREAM_FAILED, "after-report": dagbridgev1.Job_UPSTREAM_FAILED,
					"clean": dagbridgev1.Job_SUCCEEDED, "alone": dagbridgev1.Job_SUCCEEDED,
				})
			})
		})
	}
}

func waits(t *testing.T, g *gatewaytest.Gateway, end string, want map[string]dagbridgev1.Job_State) {
	// Of the same user as the gateway's jobs, since only those are of one name for Slurm.
	user := []string{}
	if !strings.Contains(t.Name(), "cli") {
		user = []string{"--uid=" + slurmtest.User}
	}
	sbatch := func(arguments ...string) string {
		return g.Slurm.Run(t, "sbatch", append(append([]string{"--parsable", "--chdir=/tmp", "--output=/dev/null"}, user...), arguments...)...)
	}
	id := sbatch("--hold", "--wrap="+end)
	namesake := sbatch("--job-name=alone", "--wrap=sleep 600")
	file := write(t, "waiting.yaml", strings.ReplaceAll(waiting, "ID", id))
	g.Dagbridge(t, 0, "run", "--run", end, "-f", file)
	state := func(task string) dagbridgev1.Job_State { return lookupIn(t, g, "waiting", end, task).GetState() }
	expression := func(task string) string {
		return g.Slurm.Run(t, "squeue", "--noheader", "--format=%E", "--jobs="+lookupIn(t, g, "waiting", end, task).GetNativeId())
	}
	require.Eventually(t, func() bool {
		return state("report") == dagbridgev1.Job_SUBMITTED && state("clean") == dagbridgev1.Job_SUBMITTED && state("alone") == dagbridgev1.Job_SUBMITTED
	}, deadline, 100*time.Millisecond)
	require.Equal(t, "afterok:"+id+"(unfulfilled)", expression("report"))
	require.Equal(t, "afterany:"+id+"(unfulfilled)", expression("clean"))
	require.Equal(t, "singleton(unfulfilled)", expression("alone"))

	g.Slurm.Run(t, "scancel", namesake)
	g.Slurm.Run(t, "scontrol", "release", id)
	for task, wanted := range want {
		require.Eventually(t, func() bool { return state(task) == wanted }, deadline, 200*time.Millisecond, "%s is %s", task, state(task))
	}
	if end == "false" {
		require.Contains(t, lookupIn(t, g, "waiting", end, "report").GetMessage(), "upstream hpc:"+id+" did not end as it must have")
	}
	g.Dagbridge(t, 2, "run", "--run", end+"-elsewhere", "--cluster", "here", "-f", file)
}
