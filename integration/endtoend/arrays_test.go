package endtoend_test

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	gatewaytest "github.com/dagbridge/dagbridge/integration/gateway"
	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/proto/jsoncodec"
)

// unrolled is a DAG whose author made a task of each simulation in a loop.
func unrolled(simulations int) string {
	var b strings.Builder
	b.WriteString("name: risk\ncluster: hpc\ntasks:\n  - key: {task: load}\n    command: {argv: [\"true\"]}\n")
	var ups []string
	for i := range simulations {
		fmt.Fprintf(&b, "  - key: {task: sim_%03d}\n    upstream: [{task: load}]\n    command: {argv: [sh, -c, 'echo simulation %d']}\n", i, i)
		ups = append(ups, fmt.Sprintf("{task: sim_%03d}", i))
	}
	fmt.Fprintf(&b, "  - key: {task: report}\n    upstream: [%s]\n    command: {argv: [\"true\"]}\n", strings.Join(ups, ", "))
	return b.String()
}

// Three hundred tasks that differ only in their programs are one array in the queue, chained as a whole; each has its own look-up.
func TestUnrolledTasksAreOneArray(t *testing.T) {
	const simulations = 300
	g := gatewaytest.New(t, slurmtest.Shared(t), "rest")
	g.Slurm.Run(t, "scontrol", "update", "PartitionName=main", "State=DOWN")
	defer g.Slurm.Run(t, "scontrol", "update", "PartitionName=main", "State=UP")
	g.Dagbridge(t, 0, "run", "--run", "unrolled", "-f", write(t, "risk.yaml", unrolled(simulations)))
	ids := map[string]string{}
	require.Eventually(t, func() bool {
		for _, job := range list(t, g, "risk", "unrolled") {
			ids[job.GetKey().GetTask()] = job.GetNativeId()
		}
		return len(ids) == simulations+2 && !slices.Contains(slices.Collect(maps.Values(ids)), "")
	}, deadline, 200*time.Millisecond)
	bases := map[string]bool{}
	for i := range simulations {
		base, element, _ := strings.Cut(ids[fmt.Sprintf("sim_%03d", i)], "_")
		require.Equal(t, strconv.Itoa(i), element)
		bases[base] = true
	}
	require.Len(t, bases, 1, "one submission for all simulations")
	array := slices.Collect(maps.Keys(bases))[0]
	queue := func(id string) string { return g.Slurm.Run(t, "squeue", "-h", "-o", "%i %E", "-j", id) }
	require.Equal(t, fmt.Sprintf("%s_[0-299] afterok:%s(unfulfilled)", array, ids["load"]), queue(array))
	require.Equal(t, fmt.Sprintf("%s afterok:%s_*(unfulfilled)", ids["report"], array), queue(ids["report"]))

	// Cancelled are some, then the run.
	job := lookupIn(t, g, "risk", "unrolled", "sim_007")
	g.Dagbridge(t, 0, "cancel", job.GetId())
	require.Eventually(t, func() bool {
		return lookupIn(t, g, "risk", "unrolled", "sim_007").GetState() == dagbridgev1.Job_CANCELLED
	}, deadline, 200*time.Millisecond)
	require.Equal(t, dagbridgev1.Job_SUBMITTED, lookupIn(t, g, "risk", "unrolled", "sim_008").GetState())
	require.Equal(t, dagbridgev1.Job_UPSTREAM_FAILED, lookupIn(t, g, "risk", "unrolled", "report").GetState())
	g.Dagbridge(t, 0, "cancel", job.GetRunId())
	require.Eventually(t, func() bool {
		return !slices.ContainsFunc(list(t, g, "risk", "unrolled"), func(job *dagbridgev1.Job) bool {
			return job.GetState() != dagbridgev1.Job_CANCELLED && job.GetState() != dagbridgev1.Job_UPSTREAM_FAILED
		}) && queue(array) == ""
	}, deadline, 200*time.Millisecond)
}

// unlike are tasks with programs of their own that go in together, and others that wait for one of them each.
const unlike = `
name: unlike
cluster: hpc
tasks:
  - key: {task: shell}
    env: {WORD: "it's"}
    command: {argv: [sh, -c, 'echo "$WORD $DAGBRIDGE_TASK"; echo "said=$WORD" > "$DAGBRIDGE_OUTPUT"; : > mine; ls']}
  - key: {task: fails}
    command: {argv: [sh, -c, 'echo no >&2; exit 3']}
  - key: {task: script}
    script: {text: "#!/usr/bin/awk -f\nBEGIN { print \"by awk\" }\n"}
  - key: {task: after-shell}
    upstream: [{task: shell}]
    script: {text: 'cat "$DAGBRIDGE_INPUTS"'}
  - key: {task: after-fails}
    upstream: [{task: fails}]
    command: {argv: ["true"]}
  - key: {task: whatever-happens}
    triggerRule: all_done
    upstream: [{task: shell}, {task: fails}, {task: script}]
    command: {argv: ["true"]}
`

// Tasks that go in together keep their own programs, folders, logs, outputs, ends, retries and dependents.
func TestTasksThatGoInTogetherKnowNothingOfEachOther(t *testing.T) {
	for _, way := range []string{"rest", "cli"} {
		t.Run(way, func(t *testing.T) {
			g := gatewaytest.New(t, slurmtest.Shared(t), way)
			g.Dagbridge(t, 1, "run", "--wait", "--run", way, "-f", write(t, "unlike.yaml", unlike))
			jobs := map[string]*dagbridgev1.Job{}
			for _, job := range list(t, g, "unlike", way) {
				jobs[job.GetKey().GetTask()] = lookupIn(t, g, "unlike", way, job.GetKey().GetTask())
			}
			base, _, _ := strings.Cut(jobs["shell"].GetNativeId(), "_")
			require.Equal(t, []string{base + "_0", base + "_1", base + "_2"}, []string{jobs["shell"].GetNativeId(), jobs["fails"].GetNativeId(), jobs["script"].GetNativeId()})
			log := func(task string) string { return g.Dagbridge(t, 0, "logs", jobs[task].GetId()) }
			require.Equal(t, "it's shell\nmine\n", log("shell"), "its folder is its own")
			require.Equal(t, "by awk\n", log("script"))
			require.Equal(t, `"it's"`, jobs["shell"].GetOutputs()["said"].GetText())
			require.Equal(t, `{"shell":{"said":"it's"}}`, log("after-shell"))
			want := map[string]dagbridgev1.Job_State{
				"shell": dagbridgev1.Job_SUCCEEDED, "fails": dagbridgev1.Job_FAILED, "script": dagbridgev1.Job_SUCCEEDED,
				"after-shell": dagbridgev1.Job_SUCCEEDED, "after-fails": dagbridgev1.Job_UPSTREAM_FAILED, "whatever-happens": dagbridgev1.Job_SUCCEEDED,
			}
			for task, state := range want {
				require.Equal(t, state, jobs[task].GetState(), task)
			}
			require.EqualValues(t, 3, jobs["fails"].GetExitCode())

			retry(t, g, jobs["fails"].GetId())
			again := finished(t, g, jobs["fails"].GetId())
			require.Len(t, again.GetAttempts(), 2)
			require.NotContains(t, again.GetNativeId(), "_", "it goes on by itself")
			require.EqualValues(t, 3, again.GetExitCode())
		})
	}
}

// A large array goes in as several, within the site's MaxArraySize and under one bound on what runs at once; another waits for it instance
// for instance, over the chunks; what failed, and nothing else, is retried.
func TestALargeArrayGoesInAsChunks(t *testing.T) {
	for _, way := range []string{"rest", "cli"} {
		t.Run(way, func(t *testing.T) {
			g := gatewaytest.New(t, slurmtest.Shared(t), way, "limits: {maxArraySize: 4}")
			shared := g.Slurm.WorkDir(t)
			require.NoError(t, os.Chmod(shared, 0o777))
			var items []string
			for i := range 10 {
				items = append(items, fmt.Sprintf("{argv: [%q]}", strconv.Itoa(i)))
			}
			text := fmt.Sprintf(`
name: large
cluster: hpc
tasks:
  - key: {task: simulate}
    command: {argv: [sh, -c, 'n=$(ls %[1]s | grep -c running); : > %[1]s/running.$1; echo $((n + 1)) >> %[1]s/at-once; echo "index $1"; echo "$1" >> %[1]s/ran; sleep 0.5; rm %[1]s/running.$1; echo "i=$1" > "$DAGBRIDGE_OUTPUT"; [ "$1" != 7 ] || [ -e %[1]s/mended ]', sh]}
    array: {maxParallel: 5, items: [%[2]s]}
  - key: {task: refine}
    upstream: [{task: simulate, instances: SAME_INDEX}]
    command: {argv: [sh, -c, 'echo "refines $1"', sh]}
    array: {items: [%[2]s]}
  - key: {task: report}
    triggerRule: all_done
    upstream: [{task: simulate}]
    script: {text: 'cat "$DAGBRIDGE_INPUTS"'}
`, shared, strings.Join(items, ", "))
			g.Dagbridge(t, 1, "run", "--wait", "--run", "large", "-f", write(t, "large.yaml", text))
			simulate, refine := instances(t, g, "simulate"), instances(t, g, "refine")
			bases := map[string]int{}
			for i, job := range simulate {
				base, element, _ := strings.Cut(job.GetNativeId(), "_")
				require.Equal(t, strconv.Itoa(i%4), element)
				bases[base]++
				require.Equal(t, fmt.Sprintf("index %d\n", i), g.Dagbridge(t, 0, "logs", job.GetId()))
			}
			require.Equal(t, []int{2, 4, 4}, slices.Sorted(maps.Values(bases)))
			for i, job := range refine {
				state := dagbridgev1.Job_SUCCEEDED
				if i == 7 {
					state = dagbridgev1.Job_UPSTREAM_FAILED
				}
				require.Equal(t, state, job.GetState(), "refine %d: %s", i, job.GetMessage())
			}
			require.Equal(t, dagbridgev1.Job_FAILED, simulate[7].GetState())
			for _, line := range strings.Fields(read(t, shared, "at-once")) {
				n, err := strconv.Atoi(line)
				require.NoError(t, err)
				require.LessOrEqual(t, n, 5, "more run at once than may")
			}
			report := lookupIn(t, g, "large", "large", "report")
			require.Equal(t, `{"simulate":[{"i":"0"},{"i":"1"},{"i":"2"},{"i":"3"},{"i":"4"},{"i":"5"},{"i":"6"},{},{"i":"8"},{"i":"9"}]}`, g.Dagbridge(t, 0, "logs", report.GetId()))

			require.NoError(t, os.WriteFile(filepath.Join(shared, "mended"), nil, 0o666))
			parent := lookupIn(t, g, "large", "large", "simulate")
			retry(t, g, parent.GetId())
			require.Equal(t, dagbridgev1.Job_SUCCEEDED, finished(t, g, parent.GetId()).GetState())
			ran := map[string]int{}
			for _, index := range strings.Fields(read(t, shared, "ran")) {
				ran[index]++
			}
			for i, job := range instances(t, g, "simulate") {
				attempts := 1
				if i == 7 {
					attempts = 2
				}
				require.Len(t, job.GetAttempts(), attempts)
				require.Equal(t, attempts, ran[strconv.Itoa(i)], "runs of %d", i)
			}
		})
	}
}

func read(t *testing.T, folder, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, name))
	require.NoError(t, err)
	return string(text)
}

// list are the jobs of a run.
func list(t *testing.T, g *gatewaytest.Gateway, workflow, run string) []*dagbridgev1.Job {
	t.Helper()
	return jobsOf(t, g, "workflow="+workflow+"&run="+run+"&pageSize=1000")
}

// instances of an array of the run "large", in order, with their outputs.
func instances(t *testing.T, g *gatewaytest.Gateway, task string) []*dagbridgev1.Job {
	t.Helper()
	jobs := jobsOf(t, g, "parent="+lookupIn(t, g, "large", "large", task).GetId())
	slices.SortFunc(jobs, func(a, b *dagbridgev1.Job) int { return int(a.GetKey().GetMapIndex()[0] - b.GetKey().GetMapIndex()[0]) })
	return jobs
}

func jobsOf(t *testing.T, g *gatewaytest.Gateway, query string) []*dagbridgev1.Job {
	t.Helper()
	status, text := g.Get(t, "/v1/jobs?"+query)
	require.Equal(t, http.StatusOK, status, text)
	answer := &dagbridgev1.ListJobsResponse{}
	require.NoError(t, jsoncodec.Unmarshal([]byte(text), answer))
	return answer.GetJobs()
}

// retry asks for another attempt, once the old one is proven dead.
func retry(t *testing.T, g *gatewaytest.Gateway, id string) {
	t.Helper()
	_, rest := g.Addresses()
	require.Eventually(t, func() bool {
		answer, err := http.Post("http://"+rest+"/v1/jobs/"+id+":retry", "application/json", strings.NewReader("{}"))
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		return answer.StatusCode == http.StatusOK
	}, deadline, 200*time.Millisecond)
}

// finished is a job once it has ended.
func finished(t *testing.T, g *gatewaytest.Gateway, id string) *dagbridgev1.Job {
	t.Helper()
	var job *dagbridgev1.Job
	require.Eventually(t, func() bool {
		_, text := g.Get(t, "/v1/jobs/"+id)
		answer := &dagbridgev1.GetJobResponse{}
		require.NoError(t, jsoncodec.Unmarshal([]byte(text), answer))
		job = answer.GetJob()
		return job.GetState() >= dagbridgev1.Job_SUCCEEDED
	}, deadline, 200*time.Millisecond)
	return job
}
