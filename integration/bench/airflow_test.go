package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	airflowtest "github.com/dagbridge/dagbridge/integration/airflow"
	gatewaytest "github.com/dagbridge/dagbridge/integration/gateway"
	"github.com/dagbridge/dagbridge/integration/loopback"
	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
)

// BenchmarkSteps: how long Slurm is without work between two steps of a DAG in Airflow, of which there are ten.
func BenchmarkSteps(b *testing.B) {
	cluster := slurmtest.Start(b, slurmtest.Options{})
	port := loopback.FreePorts()
	gatewaytest.NewAt(b, cluster, "rest", port+10)
	a := airflowtest.Start(b, airflowtest.Options{Dags: []string{"dags"}, Port: port, Env: []string{
		fmt.Sprintf(`AIRFLOW_CONN_DAGBRIDGE_DEFAULT={"conn_type": "dagbridge", "host": "127.0.0.1", "port": %d}`, port+11),
		"PATH=" + cluster.Bin() + ":" + os.Getenv("PATH"),
	}})
	gaps := map[string][]float64{}
	for round := range *rounds {
		for _, dag := range []string{"sbatch", "deferred", "submitted"} {
			into := cluster.WorkDir(b)
			require.NoError(b, os.Chmod(into, 0o777)) // the jobs are another user's
			run := a.Trigger(b, dag, strconv.Itoa(round), map[string]any{"into": into})
			run.Await(b, "success")
			gaps[dag] = append(gaps[dag], gap(b, into))
		}
	}
	const than = "BashOperator, sbatch --wait"
	compare("between two steps in Airflow: deferred", than, "s", gaps["deferred"], gaps["sbatch"], aim{atMost: 0.5})
	compare("between two steps in Airflow: wait=submitted", than, "s", gaps["submitted"], gaps["sbatch"], aim{atMost: 0.1})
}

// gap is the median time from the end of a step to the start of the next, once all have ended.
func gap(b *testing.B, into string) float64 {
	b.Helper()
	var starts, ends []float64
	airflowtest.Eventually(b, func() bool {
		starts, ends = nil, nil
		for i := range 10 {
			text, err := os.ReadFile(filepath.Join(into, fmt.Sprintf("step_%d", i)))
			var start, end float64
			if n, _ := fmt.Sscan(string(text), &start, &end); err != nil || n != 2 {
				return false
			}
			starts, ends = append(starts, start), append(ends, end)
		}
		return true
	}, "the steps do not end")
	var gaps []float64
	for i := range 9 {
		gaps = append(gaps, starts[i+1]-ends[i])
	}
	return median(gaps)
}

// parse is what Airflow's dag-processor does with a file, in a process that has Airflow's own modules already: it tells the
// processor time, since it is nothing but work.
const parse = `
import sys, time
import airflow.sdk, airflow.models, airflow.providers.common.compat.sdk
from airflow.dag_processing.dagbag import DagBag
began = time.process_time()
bag = DagBag(dag_folder=sys.argv[1])
print(time.process_time() - began)
assert len(bag.dags) == 1 and not bag.import_errors, bag.import_errors
`

// BenchmarkParse: a DAG file with a hundred tasks.
func BenchmarkParse(b *testing.B) {
	python := filepath.Join(airflowtest.Environment(b, "3.3"), "bin", "python")
	seconds := func(file string) float64 {
		path, err := filepath.Abs(filepath.Join("dags", file))
		require.NoError(b, err)
		command := exec.Command(python, "-W", "ignore", "-c", parse, path)
		command.Env = append(os.Environ(), "AIRFLOW_HOME="+b.TempDir(), "AIRFLOW__LOGGING__LOGGING_LEVEL=ERROR")
		out, err := command.CombinedOutput()
		require.NoError(b, err, "%s", out)
		lines := strings.Fields(string(out))
		took, err := strconv.ParseFloat(lines[len(lines)-1], 64)
		require.NoError(b, err, "%s", out)
		return took
	}
	var ours, bare []float64
	for range *rounds {
		ours = append(ours, seconds("hundred_bridge.py")*1000)
		bare = append(bare, seconds("hundred_bash.py")*1000)
	}
	compare("parsing a DAG file of 100 tasks", "100 BashOperators", "ms", ours, bare, aim{atMost: 1.2})
}
