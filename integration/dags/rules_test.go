package dags

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	gatewaytest "github.com/dagbridge/dagbridge/integration/gateway"
	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
)

// Every trigger rule decides as Airflow's does, whatever has become of up to three tasks before it.
func TestTriggerRules(t *testing.T) {
	settings, least := []string{`MARK=.*\..*`}, 13*(3+6+10)
	if long {
		settings, least = append(settings, "EVERY=yes"), 13*(4+16+64)
	}
	sameDecisions(t, "rules", settings, least)
}

// Set-ups and tear-downs have Airflow's scope: what lies in that of a set-up which does not succeed does not run, whatever its own rule, and
// a tear-down waits for all of it.
func TestSetupsAndTeardowns(t *testing.T) {
	sameDecisions(t, "setups", []string{`MARK=.*\.[a-z]+(_inner|_outer)?`}, 9*(4+7+6+4+4+13*4))
}

// sameDecisions runs a DAG of so many tasks at least in Airflow; on this machine, where the gateway keeps every edge; and in Slurm, which keeps
// what it can. Of the tasks that MARK matches Airflow is asked whether they run, and they are not run there.
func sameDecisions(t *testing.T, dag string, settings []string, least int) {
	t.Helper()
	folder, all := inAirflow(t, settings, filepath.Join("dags", dag+".py"))
	in := all[dag]
	require.GreaterOrEqual(t, len(in.Instances), least)
	g := gatewaytest.New(t, slurmtest.Shared(t), "rest")
	for _, cluster := range []string{"here", "hpc"} {
		t.Run(cluster, func(t *testing.T) {
			end := onGateway(t, g, cluster, filepath.Join(folder, dag+".json"), in)
			require.Equal(t, in.states(), end.states())
		})
	}
}
