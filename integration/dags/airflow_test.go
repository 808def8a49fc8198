// Package dags runs whole Airflow DAGs twice: in Airflow, and, as Airflow serializes them, on the gateway. Every task has to end in
// the same way.
package dags

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	airflowtest "github.com/dagbridge/dagbridge/integration/airflow"
	gatewaytest "github.com/dagbridge/dagbridge/integration/gateway"
	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/proto/jsoncodec"
)

func TestMain(m *testing.M) { slurmtest.Main(m) }

// long: the tests take all the cases there are, not only those that differ in what matters.
var long = os.Getenv("DAGBRIDGE_LONG") != ""

// ended is what has become of a DAG.
type ended struct {
	State string `json:"state"`
	// Instances by task, of mapped ones by task[index].
	Instances map[string]instance `json:"instances"`
}

// instance is what has become of a task.
type instance struct {
	// State is Airflow's word.
	State string `json:"state"`
	// XCom is its result, JSON; null: none.
	XCom json.RawMessage `json:"xcom"`
}

// states by task.
func (e ended) states() map[string]string {
	states := map[string]string{}
	for name, each := range e.Instances {
		states[name] = each.State
	}
	return states
}

// inAirflow runs the DAGs of some files in Airflow, with settings of oracle.py. It returns the folder with their serialized forms,
// DAG_ID.json.
func inAirflow(t *testing.T, settings []string, files ...string) (folder string, all map[string]ended) {
	t.Helper()
	folder = t.TempDir()
	command := exec.Command(filepath.Join(airflowtest.Environment(t, "3.3"), "bin", "python"), append([]string{"oracle.py", folder}, files...)...)
	command.Env = append(append(os.Environ(), "AIRFLOW_HOME="+t.TempDir()), settings...)
	said, err := command.CombinedOutput()
	require.NoError(t, err, "%s", said)
	found, err := filepath.Glob(filepath.Join(folder, "*.ended.json"))
	require.NoError(t, err)
	require.NotEmpty(t, found, "%s", said)
	all = map[string]ended{}
	for _, file := range found {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var one ended
		require.NoError(t, json.Unmarshal(text, &one), "%s", text)
		all[strings.TrimSuffix(filepath.Base(file), ".ended.json")] = one
	}
	return folder, all
}

// words are Airflow's for what has ended here.
var words = map[dagbridgev1.Job_State]string{
	dagbridgev1.Job_SUCCEEDED: "success", dagbridgev1.Job_FAILED: "failed", dagbridgev1.Job_SKIPPED: "skipped",
	dagbridgev1.Job_UPSTREAM_FAILED: "upstream_failed",
}

// onGateway runs a serialized DAG on a cluster, to its end, which is to be as Airflow says.
func onGateway(t *testing.T, g *gatewaytest.Gateway, cluster, dag string, in ended, flags ...string) ended {
	t.Helper()
	code := map[string]int{"success": 0, "failed": 1}[in.State]
	run := strings.TrimSuffix(filepath.Base(dag), ".json") + " on " + cluster
	g.Dagbridge(t, code, append([]string{"run", "--wait", "--cluster", cluster, "--run", run, "-f", dag}, flags...)...)
	end := ended{State: in.State, Instances: map[string]instance{}}
	for _, job := range jobs(t, g, "run="+url.QueryEscape(run)) {
		if len(job.GetCounts()) == 0 {
			end.Instances[job.GetKey().GetTask()] = of(job)
			continue
		}
		for _, one := range jobs(t, g, "parent="+job.GetId()) {
			end.Instances[fmt.Sprintf("%s%v", one.GetKey().GetTask(), one.GetKey().GetMapIndex())] = of(one)
		}
	}
	return end
}

func of(job *dagbridgev1.Job) instance {
	word, known := words[job.GetState()]
	if !known {
		word = fmt.Sprintf("%s (%s)", job.GetState(), job.GetMessage())
	}
	return instance{State: word, XCom: json.RawMessage(cmp.Or(job.GetOutputs()["return_value"].GetText(), "null"))}
}

// jobs are those of a list, with their outputs.
func jobs(t *testing.T, g *gatewaytest.Gateway, filter string) (all []*dagbridgev1.Job) {
	t.Helper()
	for token, more := "", true; more; more = token != "" {
		answer := &dagbridgev1.ListJobsResponse{}
		_, text := g.Get(t, "/v1/jobs?view=FULL&pageSize=1000&"+filter+"&pageToken="+token)
		require.NoError(t, jsoncodec.Unmarshal([]byte(text), answer), "%s", text)
		all, token = append(all, answer.GetJobs()...), answer.GetNextPageToken()
	}
	return all
}
