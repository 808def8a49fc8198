package dags

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	gatewaytest "github.com/dagbridge/dagbridge/integration/gateway"
	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
)

// Mapped tasks over the result of another one have as many instances as in Airflow, each with its own element, in its place. The
// provider's tasks go to the same gateway from Airflow, too.
func TestMappedOverAResult(t *testing.T) {
	g := gatewaytest.New(t, slurmtest.Shared(t), "rest")
	_, rest := g.Addresses()
	host, port, _ := strings.Cut(rest, ":")
	folder, all := inAirflow(t, []string{fmt.Sprintf(`AIRFLOW_CONN_DAGBRIDGE_DEFAULT={"conn_type": "dagbridge", "host": %q, "port": %s}`, host, port)}, "dags/dynamic.py")
	in := all["dynamic"]
	require.Equal(t, "success", in.Instances["size_5[4]"].State)
	for _, cluster := range []string{"here", "hpc"} {
		t.Run(cluster, func(t *testing.T) {
			end := onGateway(t, g, cluster, filepath.Join(folder, "dynamic.json"), in)
			require.Equal(t, in.states(), end.states())
			for task, want := range in.Instances {
				assert.JSONEq(t, string(want.XCom), string(end.Instances[task].XCom), task)
			}
		})
	}
}
