package endtoend_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dagbridge/dagbridge/integration/examples"
	gatewaytest "github.com/dagbridge/dagbridge/integration/gateway"
	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/proto/jsoncodec"
)

// deadline is for how long anything is waited for.
const deadline = 2 * time.Minute

func TestMain(m *testing.M) { slurmtest.Main(m) }

// The pipeline of the demo, in the oldest and the newest Slurm, over the ways in.
func TestPipeline(t *testing.T) {
	for _, release := range []slurmtest.Release{slurmtest.Oldest, slurmtest.Newest} {
		t.Run(string(release), func(t *testing.T) {
			t.Parallel()
			cluster := slurmtest.Start(t, slurmtest.Options{Release: release})
			for _, way := range []string{"rest", "cli"} {
				t.Run(way, func(t *testing.T) {
					g := gatewaytest.New(t, cluster, way)
					t.Run("it is in the queue at once, chained, and outlives the gateway", func(t *testing.T) { chained(t, g) })
					t.Run("as JSON it is the same, and success is told everywhere", func(t *testing.T) { asJSON(t, g) })
					t.Run("its planned texts can be submitted by hand", func(t *testing.T) { byHand(t, g) })
					t.Run("when the training fails", func(t *testing.T) { trainingFails(t, g) })
				})
			}
		})
	}
}

func pipeline(t *testing.T) string {
	t.Helper()
	text, err := examples.Files.ReadFile("ml-pipeline.yaml")
	require.NoError(t, err)
	return string(text)
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// chained: nothing may start, so that the queue can be read; the four are chained by afterok and the simulations are one array.
func chained(t *testing.T, g *gatewaytest.Gateway) {
	g.Slurm.Run(t, "scontrol", "update", "PartitionName=main", "State=DOWN")
	up := func() { g.Slurm.Run(t, "scontrol", "update", "PartitionName=main", "State=UP") }
	defer up()
	file := write(t, "ml-pipeline.yaml", pipeline(t))
	g.Dagbridge(t, 0, "run", "--run", "chained", "--cluster", "hpc", "-f", file)
	ids := map[string]string{}
	tasks := []string{"preprocess", "train", "evaluate", "deploy", "simulate", "report"}
	require.Eventually(t, func() bool {
		for _, task := range tasks {
			ids[task] = lookup(t, g, "chained", task).GetNativeId()
		}
		return ids["preprocess"] != "" && ids["train"] != "" && ids["evaluate"] != "" && ids["deploy"] != "" && ids["simulate"] != "" && ids["report"] != ""
	}, deadline, 100*time.Millisecond, "%v", ids)
	queue := func(task string) string { return g.Slurm.Run(t, "squeue", "-h", "-o", "%i %E", "-j", ids[task]) }
	require.Equal(t, ids["train"]+" afterok:"+ids["preprocess"]+"(unfulfilled)", queue("train"))
	require.Equal(t, ids["evaluate"]+" afterok:"+ids["train"]+"(unfulfilled)", queue("evaluate"))
	require.Equal(t, ids["deploy"]+" afterok:"+ids["evaluate"]+"(unfulfilled)", queue("deploy"))
	require.Regexp(t, `^`+ids["simulate"]+`_\[0-19\] `, queue("simulate"))
	require.Contains(t, queue("report"), "afterany:"+ids["evaluate"]+"(unfulfilled)")
	require.Eventually(t, func() bool {
		return strings.Contains(g.Dagbridge(t, 0, "get", "cli/ml-pipeline/chained/preprocess"), "PartitionDown")
	}, deadline, 200*time.Millisecond, "why it waits is told in Slurm's words")

	g.Stop(t)
	up()
	g.Start(t)
	for task, id := range ids {
		require.Equal(t, id, lookup(t, g, "chained", task).GetNativeId(), "after a restart %s is where it was", task)
	}
	g.Dagbridge(t, 0, "run", "--wait", "--run", "chained", "--cluster", "hpc", "-f", file)
	for _, task := range tasks {
		require.Equal(t, dagbridgev1.Job_SUCCEEDED, lookup(t, g, "chained", task).GetState(), task)
		require.Equal(t, ids[task], lookup(t, g, "chained", task).GetNativeId(), task)
	}
}

// asJSON: the file's JSON is the body of POST /v1/runs.
func asJSON(t *testing.T, g *gatewaytest.Gateway) {
	workflow := &dagbridgev1.Workflow{}
	require.NoError(t, jsoncodec.UnmarshalYAML([]byte(pipeline(t)), workflow))
	workflow.Cluster = "hpc"
	workflow.Run = &dagbridgev1.Run{Orchestrator: "cli", Workflow: "ml-pipeline", Run: "as:json/50%"}
	body, err := jsoncodec.Marshal(workflow)
	require.NoError(t, err)
	_, rest := g.Addresses()
	answer, err := http.Post("http://"+rest+"/v1/runs", "application/json", strings.NewReader(string(body)))
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusOK, answer.StatusCode)
	var report *dagbridgev1.Job
	require.Eventually(t, func() bool {
		report = lookup(t, g, "as:json/50%", "report")
		return report.GetState() == dagbridgev1.Job_SUCCEEDED
	}, deadline, 200*time.Millisecond)
	// Outputs have flowed: training to evaluation to report, and twenty simulations as a list.
	require.Equal(t, "20", report.GetOutputs()["simulations"].GetText())
	train := lookup(t, g, "as:json/50%", "train")
	require.Equal(t, train.GetOutputs()["auc"].GetText(), report.GetOutputs()["auc"].GetText())
	status, text := g.Get(t, "/v1/orchestrators/cli/workflows/ml-pipeline/runs/as:json%2F50%25/tasks/train/job/outputs/auc")
	require.Equal(t, http.StatusOK, status, text)
	require.Equal(t, train.GetOutputs()["auc"].GetText(), strings.TrimSpace(text))
	require.Contains(t, g.Dagbridge(t, 0, "logs", train.GetId()), "training on 2000 rows for 4 epochs\nepoch 1: loss")
}

// byHand: what plan shows is taken by sbatch, and runs.
func byHand(t *testing.T, g *gatewaytest.Gateway) {
	file := write(t, "ml-pipeline.yaml", pipeline(t))
	for _, task := range []string{"preprocess", "simulate"} {
		text := g.Dagbridge(t, 0, "plan", "--config", g.Config, "--text", task, "-f", file)
		folder := regexp.MustCompile(`(?m)^#SBATCH --chdir=(.+)$`).FindStringSubmatch(text)
		require.Len(t, folder, 2)
		require.NoError(t, os.MkdirAll(folder[1], 0o755))
		out := g.Slurm.Run(t, "sbatch", "--wait", write(t, task+".sbatch", text))
		require.Regexp(t, `^Submitted batch job \d+$`, out, "--wait fails when the job does")
	}
}

// trainingFails: what cannot run any more ends here and leaves Slurm's queue; the report, which takes any end, runs.
func trainingFails(t *testing.T, g *gatewaytest.Gateway) {
	failing := strings.Replace(pipeline(t), `echo "training on $rows rows for $EPOCHS epochs"`, `echo "no convergence" >&2; exit 7`, 1)
	require.NotEqual(t, pipeline(t), failing)
	out := g.Dagbridge(t, 1, "run", "--wait", "--run", "failing", "--cluster", "hpc", "-f", write(t, "failing.yaml", failing))
	require.Regexp(t, regexp.MustCompile(`(?m)^train +FAILED +hpc +\d+$`), out)
	train := lookup(t, g, "failing", "train")
	require.EqualValues(t, 7, train.GetExitCode())
	for _, task := range []string{"evaluate", "deploy"} {
		job := lookup(t, g, "failing", task)
		require.Equal(t, dagbridgev1.Job_UPSTREAM_FAILED, job.GetState(), task)
		require.NotEmpty(t, job.GetNativeId(), "%s was in the queue", task)
		require.Eventually(t, func() bool {
			return !slices.Contains(strings.Fields(g.Slurm.Run(t, "squeue", "-h", "-o", "%i", "-t", "PENDING,RUNNING")), job.GetNativeId())
		}, deadline, 200*time.Millisecond, "%s leaves the queue", task)
	}
	require.Equal(t, dagbridgev1.Job_SUCCEEDED, lookup(t, g, "failing", "report").GetState())
	require.Equal(t, "null", lookup(t, g, "failing", "report").GetOutputs()["auc"].GetText())
}

// lookup is lookupIn the demo's pipeline.
func lookup(t *testing.T, g *gatewaytest.Gateway, run, task string) *dagbridgev1.Job {
	t.Helper()
	return lookupIn(t, g, "ml-pipeline", run, task)
}

// lookupIn asks by both REST forms, which must agree.
func lookupIn(t *testing.T, g *gatewaytest.Gateway, workflow, run, task string) *dagbridgev1.Job {
	t.Helper()
	escaped := strings.NewReplacer("%", "%25", "/", "%2F").Replace(run)
	status, byQuery := g.Get(t, "/v1/lookup?orchestrator=cli&workflow="+workflow+"&run="+escaped+"&task="+task)
	require.Equal(t, http.StatusOK, status, byQuery)
	status, byPath := g.Get(t, "/v1/orchestrators/cli/workflows/"+workflow+"/runs/"+escaped+"/tasks/"+task+"/job")
	require.Equal(t, http.StatusOK, status, byPath)
	one, other := &dagbridgev1.LookupJobResponse{}, &dagbridgev1.LookupJobResponse{}
	require.NoError(t, jsoncodec.Unmarshal([]byte(byQuery), one))
	require.NoError(t, jsoncodec.Unmarshal([]byte(byPath), other))
	require.Equal(t, one.GetJob().GetId(), other.GetJob().GetId())
	require.True(t, json.Valid([]byte(byPath)))
	return other.GetJob()
}
