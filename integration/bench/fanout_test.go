package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/proto/jsoncodec"
	"github.com/dagbridge/dagbridge/translators"
	"github.com/dagbridge/dagbridge/translators/slurm"
)

// fanned is how many tasks are between the first, which each of them needs, and the last, which needs all of them.
const fanned = 998

// minJobAge is how long slurmctld remembers ended jobs: so short that a round leaves little to the next.
const minJobAge = 10

// rival is a Slurm without a gateway. Its partition is down: what is measured is how jobs get into the queue.
type rival struct {
	*slurmtest.Cluster
	b         *testing.B
	tokenFile string
	workDir   string
	client    *http.Client
}

// BenchmarkFanOut compares a DAG of a thousand tasks, handed to the gateway in one request over REST, with a loop of sbatch and
// with bare calls of slurmrestd: from the start until the last native id is known.
func BenchmarkFanOut(b *testing.B) {
	cluster := slurmtest.Start(b, slurmtest.Options{Set: []string{fmt.Sprintf("MinJobAge=%d", minJobAge)}})
	cluster.Run(b, "scontrol", "update", "PartitionName=main", "State=DOWN")
	r := &rival{Cluster: cluster, b: b, tokenFile: cluster.TokenFile(b), workDir: cluster.WorkDir(b), client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}}
	gateway := startProcess(b, "gateway", b.TempDir(), cluster.URL, slurmtest.User, r.tokenFile, r.workDir, strconv.Itoa(minJobAge))

	var jobs, array, bare, loop, cpuJobs, cpuBare []float64
	for range *rounds {
		seconds, cpu := r.measure(gateway.pid, func() { r.throughGateway(gateway, single()) })
		jobs, cpuJobs = append(jobs, seconds), append(cpuJobs, cpu)
		seconds, cpu = r.measure(os.Getpid(), r.calls)
		bare, cpuBare = append(bare, seconds), append(cpuBare, cpu)
		seconds, _ = r.measure(gateway.pid, func() { r.throughGateway(gateway, mapped()) })
		array = append(array, seconds)
		seconds, _ = r.measure(os.Getpid(), r.loop)
		loop = append(loop, seconds)
	}
	times("1,000 tasks into Slurm as single jobs", "sbatch loop", "s", jobs, loop, aim{atLeast: 5})
	compare("1,000 tasks into Slurm as single jobs", "bare slurmrestd calls", "s", jobs, bare, aim{atMost: 1.15})
	compare("  processor time of the caller, slurmrestd and slurmctld", "bare slurmrestd calls", "s", cpuJobs, cpuBare, aim{})
	times("1,000 tasks into Slurm as an array", "sbatch loop", "s", array, loop, aim{atLeast: 100})
}

// measure tells how long something takes, and how much processor time of its caller's process and of Slurm's daemons. It leaves
// an empty queue.
func (r *rival) measure(caller int, do func()) (seconds, used float64) {
	spent := func() float64 {
		sum := cpu(r.b, caller)
		for _, daemon := range []string{"slurmrestd", "slurmctld"} {
			text, err := os.ReadFile(filepath.Join(r.Prefix, "run", daemon+".pid"))
			require.NoError(r.b, err)
			pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
			require.NoError(r.b, err)
			sum += cpu(r.b, pid)
		}
		return sum.Seconds()
	}
	before, began := spent(), time.Now()
	do()
	seconds, used = time.Since(began).Seconds(), spent()-before
	r.Run(r.b, "scancel", "--state=PENDING", "--partition=main")
	require.Eventually(r.b, func() bool { return r.Run(r.b, "squeue", "-h", "-t", "all", "-o", "%i") == "" }, 5*time.Minute, 500*time.Millisecond)
	return seconds, used
}

// throughGateway submits a workflow and returns when every job has its native id.
func (r *rival) throughGateway(gateway *process, w *dagbridgev1.Workflow) {
	w.Cluster, w.WaitFor = "hpc", dagbridgev1.WaitFor_SUBMITTED
	w.Run = &dagbridgev1.Run{Orchestrator: "airflow", Workflow: "fan", Run: uuid.NewString()}
	body, err := jsoncodec.Marshal(w)
	require.NoError(r.b, err)
	resp, err := gateway.http.Post(gateway.url+"/v1/runs", "application/json", bytes.NewReader(body))
	require.NoError(r.b, err)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(r.b, err)
	require.Equal(r.b, http.StatusOK, resp.StatusCode, "%.1000s", text)
	answer := &dagbridgev1.SubmitWorkflowResponse{}
	require.NoError(r.b, jsoncodec.Unmarshal(text, answer))
	require.Len(r.b, answer.GetJobs(), len(w.GetTasks()))
	for _, job := range answer.GetJobs() {
		require.NotEmpty(r.b, job.GetNativeId(), "%v", job)
	}
}

// fan is a DAG's task, which needs others.
func fan(name string, upstream ...string) *dagbridgev1.Task {
	t := &dagbridgev1.Task{
		Key: &dagbridgev1.TaskKey{Task: name}, Command: &dagbridgev1.Command{Argv: []string{"true"}}, Resources: &dagbridgev1.Resources{Memory: "50Mi"},
	}
	for _, up := range upstream {
		t.Upstream = append(t.Upstream, &dagbridgev1.Edge{Task: up})
	}
	return t
}

func single() *dagbridgev1.Workflow {
	w := &dagbridgev1.Workflow{Tasks: []*dagbridgev1.Task{fan("first")}}
	var between []string
	for i := range fanned {
		between = append(between, fmt.Sprintf("task_%03d", i))
		w.Tasks = append(w.Tasks, fan(between[i], "first"))
	}
	w.Tasks = append(w.Tasks, fan("last", between...))
	return w
}

func mapped() *dagbridgev1.Workflow {
	between := fan("between", "first")
	between.Array = &dagbridgev1.Array{}
	for i := range fanned {
		between.Array.Items = append(between.Array.Items, &dagbridgev1.Array_Item{Argv: []string{strconv.Itoa(i)}})
	}
	return &dagbridgev1.Workflow{Tasks: []*dagbridgev1.Task{fan("first"), between, fan("last", "between")}}
}

// calls hands the same jobs to slurmrestd, as many at once as the gateway does.
func (r *rival) calls() {
	token, err := os.ReadFile(r.tokenFile)
	require.NoError(r.b, err)
	site := slurm.Site{WorkDir: r.workDir, User: slurmtest.User}
	submit := func(name string, depends ...string) string {
		id := uuid.NewString()
		s := translators.Submission{Token: id + ".1", Job: &dagbridgev1.Job{Id: id, Key: &dagbridgev1.TaskKey{Orchestrator: "airflow", Workflow: "fan", Run: "bare", Task: name}, TryNumber: 1}, Task: fan(name)}
		for _, id := range depends {
			s.Depends.Terms = append(s.Depends.Terms, translators.Dependency{Type: translators.AfterOK, NativeID: id})
		}
		job, faults := slurm.Translate(site, s)
		require.Empty(r.b, faults)
		job.WorkingDirectory = r.workDir
		description, faults := job.REST("v0.0.38")
		require.Empty(r.b, faults)
		body, err := json.Marshal(description)
		require.NoError(r.b, err)
		return r.post(strings.TrimSpace(string(token)), body)
	}
	first := submit("first")
	between := make([]string, fanned)
	spread(fanned, clients, func(_, i int) { between[i] = submit(fmt.Sprintf("task_%03d", i), first) })
	submit("last", between...)
}

func (r *rival) post(token string, body []byte) string {
	request, err := http.NewRequestWithContext(r.b.Context(), http.MethodPost, r.URL+"/slurm/v0.0.38/job/submit", bytes.NewReader(body))
	require.NoError(r.b, err)
	request.Header.Set("X-SLURM-USER-NAME", slurmtest.User)
	request.Header.Set("X-SLURM-USER-TOKEN", token)
	request.Header.Set("Content-Type", "application/json")
	resp, err := r.client.Do(request)
	require.NoError(r.b, err)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(r.b, err)
	var answer struct {
		JobID int `json:"job_id"`
	}
	require.NoError(r.b, json.Unmarshal(text, &answer), "%s", text)
	require.Positive(r.b, answer.JobID, "%s", text)
	return strconv.Itoa(answer.JobID)
}

// loop is what a shell script would do.
func (r *rival) loop() {
	script := filepath.Join(r.workDir, "job.sh")
	require.NoError(r.b, os.WriteFile(script, []byte("#!/bin/sh\nexec true\n"), 0o755))
	submit := func(args ...string) string {
		command := exec.Command(filepath.Join(r.Bin(), "sbatch"), append(append([]string{"--parsable", "--mem=50M", "--output=/dev/null"}, args...), script)...)
		out, err := command.Output()
		require.NoError(r.b, err)
		return strings.TrimSpace(string(out))
	}
	first := submit()
	between := make([]string, fanned)
	for i := range between {
		between[i] = submit("--dependency=afterok:" + first)
	}
	submit("--dependency=afterok:" + strings.Join(between, ":"))
}
