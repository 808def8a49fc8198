package dags

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	gatewaytest "github.com/dagbridge/dagbridge/integration/gateway"
	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
)

// Every trigger rule decides as Airflow's does, whatever has become of up to three tasks before it; on this machine, where the gateway
// keeps every edge, and in Slurm, which keeps what it can.
func TestTriggerRules(t *testing.T) {
	settings := []string{`MARK=.*\..*`} // which tasks run is asked, not how
	least := 13 * (3 + 6 + 10)
	if long {
		settings, least = append(settings, "EVERY=yes"), 13*(4+16+64)
	}
	folder, all := inAirflow(t, settings, "dags/rules.py")
	in := all["rules"]
	require.Greater(t, len(in.Instances), least)
	g := gatewaytest.New(t, slurmtest.Shared(t), "rest")
	for _, cluster := range []string{"here", "hpc"} {
		t.Run(cluster, func(t *testing.T) {
			end := onGateway(t, g, cluster, filepath.Join(folder, "rules.json"), in)
			require.Equal(t, in.states(), end.states())
		})
	}
}
