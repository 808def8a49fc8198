package dags

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/timestamppb"

	airflowtest "github.com/dagbridge/dagbridge/integration/airflow"
	gatewaytest "github.com/dagbridge/dagbridge/integration/gateway"
	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators"
	"github.com/dagbridge/dagbridge/translators/airflow"
)

// native are the operators of the examples that do not need Airflow.
var native = []string{"BashOperator", "EmptyOperator"}

// refused is the one example that has no other operators, and is refused all the same.
const refused = "read_asset_event_from_classic"

// hooked is the one that fails in Airflow by its post_execute, a Python function of which nothing is serialized.
const hooked = "asset_with_extra_from_classic_operator"

// otherwise are the tasks of the examples whose results cannot be Airflow's, with the reason.
var otherwise = map[string]string{
	"tutorial.print_date":                         "the clock",
	"example_bash_operator.describe_dag_folder":   "AIRFLOW_HOME is a worker's, and an output_processor is not serialized",
	"example_bash_operator.show_dag_folder_stats": "it needs that result",
}

// Every DAG that Airflow ships as an example, and its standard provider: those of Bash and Empty operators run here, and end as in Airflow; each
// other one is refused, by sentences that name all of its tasks that only Airflow can run.
func TestShippedExamples(t *testing.T) {
	packages := filepath.Join(airflowtest.Environment(t, "3.3"), "lib", "python3*", "site-packages", "airflow")
	var files []string
	for _, folder := range []string{"example_dags", "providers/standard/example_dags"} {
		found, err := filepath.Glob(filepath.Join(packages, folder, "*.py"))
		require.NoError(t, err)
		require.NotEmpty(t, found)
		files = append(files, found...)
	}
	folder, all := inAirflow(t, []string{"KINDS=" + strings.Join(native, ",")}, files...)
	require.Contains(t, all, "example_complex")

	g := gatewaytest.New(t, slurmtest.Shared(t), "cli")
	documents, err := filepath.Glob(filepath.Join(folder, "*.json"))
	require.NoError(t, err)
	for _, document := range documents {
		dag, isDAG := strings.CutSuffix(filepath.Base(document), ".json")
		if !isDAG || strings.HasSuffix(dag, ".ended") {
			continue
		}
		t.Run(dag, func(t *testing.T) {
			in, ran := all[dag]
			if !ran || dag == refused {
				isRefused(t, document)
				return
			}
			if dag == hooked {
				require.Equal(t, "failed", in.State)
				in = ended{State: "success", Instances: map[string]instance{hooked: {State: "success", XCom: json.RawMessage(`""`)}}}
			}
			end := onGateway(t, g, "here", document, in, "--logical-date", "2026-03-09T06:05:04Z")
			require.Equal(t, in.states(), end.states())
			for task, want := range in.Instances {
				if _, known := otherwise[dag+"."+task]; !known && want.State == "success" {
					assert.JSONEq(t, string(want.XCom), string(end.Instances[task].XCom), task)
				}
			}
		})
	}
}

// isRefused: the DAG is refused, and the sentences name each task that has an operator of Airflow's own.
func isRefused(t *testing.T, document string) {
	t.Helper()
	text, err := os.ReadFile(document)
	require.NoError(t, err)
	var dag struct {
		DAG struct {
			Tasks []struct {
				Var struct {
					ID   string `json:"task_id"`
					Kind string `json:"task_type"`
				} `json:"__var"`
			}
		}
	}
	require.NoError(t, json.Unmarshal(text, &dag))
	_, faults := airflow.Translate(&dagbridgev1.Workflow{
		AirflowDag: &dagbridgev1.Json{Text: string(text)}, LogicalDate: &timestamppb.Timestamp{Seconds: 1773036304},
	}, false)
	require.NotEmpty(t, faults)
	for _, task := range dag.DAG.Tasks {
		if slices.Contains(native, task.Var.Kind) {
			continue
		}
		assert.True(t, slices.ContainsFunc(faults, func(f translators.Fault) bool {
			return strings.HasPrefix(f.Description, `task "`+task.Var.ID+`": `+task.Var.Kind+": ")
		}), "%s, %s:\n%v", task.Var.ID, task.Var.Kind, faults)
	}
}
