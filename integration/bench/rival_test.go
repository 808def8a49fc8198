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
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/dagbridge/dagbridge/integration/program"
	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/proto/jsoncodec"
	"github.com/dagbridge/dagbridge/server/backend/slurm"
)

// minJobAge is how long slurmctld remembers ended jobs, in seconds: so short that a round leaves little to the next.
const minJobAge = 10

// rival is a Slurm without a gateway. Its partition is down: what is measured is how jobs get into the queue, and how it is
// to look at them there.
type rival struct {
	*slurmtest.Cluster
	b         *testing.B
	user      string
	tokenFile string
	workDir   string
	// script does nothing.
	script string
	client *http.Client
}

// newRival starts a Slurm, of which a user gets a token.
func newRival(b *testing.B, release slurmtest.Release, user string) *rival {
	b.Helper()
	cluster := slurmtest.Start(b, slurmtest.Options{Release: release, Set: []string{fmt.Sprintf("MinJobAge=%d", minJobAge)}})
	cluster.Run(b, "scontrol", "update", "PartitionName=main", "State=DOWN")
	tokenFile := filepath.Join(b.TempDir(), "slurm.jwt")
	require.NoError(b, os.WriteFile(tokenFile, []byte(cluster.Token(b, user, "86400")), 0o600))
	workDir := cluster.WorkDir(b)
	script := filepath.Join(workDir, "job.sh")
	require.NoError(b, program.Write(script, []byte("#!/bin/sh\nexec true\n")))
	return &rival{
		Cluster: cluster, b: b, user: user, tokenFile: tokenFile, workDir: workDir, script: script,
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}},
	}
}

// overREST is how a gateway reaches it over slurmrestd.
func (r *rival) overREST() slurm.Options {
	return slurm.Options{
		Name: "hpc", REST: &slurm.REST{URL: r.URL, User: r.user, TokenFile: r.tokenFile}, WorkDir: r.workDir,
		Limits: slurm.Limits{MinJobAge: minJobAge * time.Second},
	}
}

// startGateway starts a gateway in front of it.
func (r *rival) startGateway(dir string, o slurm.Options) *process {
	return startProcess(r.b, gatewayRole(r.b, dir, clusterOptions{Slurm: &o})...)
}

// cpu is the processor time that one of Slurm's daemons has had.
func (r *rival) cpu(daemon string) time.Duration {
	text, err := os.ReadFile(filepath.Join(r.Prefix, "run", daemon+".pid"))
	require.NoError(r.b, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(r.b, err)
	return cpu(r.b, pid)
}

// measure tells how long something takes, and how much processor time of its caller's process and of Slurm's daemons. It leaves
// an empty queue.
func (r *rival) measure(caller int, do func()) (seconds, used float64) {
	spent := func() float64 { return (cpu(r.b, caller) + r.cpu("slurmrestd") + r.cpu("slurmctld")).Seconds() }
	before, began := spent(), time.Now()
	do()
	seconds, used = time.Since(began).Seconds(), spent()-before
	r.Run(r.b, "scancel", "--state=PENDING", "--partition=main")
	r.awaitEmpty("all")
	return seconds, used
}

// awaitEmpty waits until Slurm has no job in some states. While it ends thousands, it may not answer squeue in time.
func (r *rival) awaitEmpty(states string) {
	r.await("an empty queue", func() bool {
		output, err := exec.Command(filepath.Join(r.Bin(), "squeue"), "-h", "-t", states, "-o", "%i").Output()
		return err == nil && len(output) == 0
	})
}

// await waits until something is so.
func (r *rival) await(what string, is func() bool) {
	for end := time.Now().Add(10 * time.Minute); !is(); time.Sleep(200 * time.Millisecond) {
		require.True(r.b, time.Now().Before(end), "waiting for %s", what)
	}
}

// throughGateway measures a workflow that is handed to a gateway in one request, until every job has its native id.
func (r *rival) throughGateway(gateway *process, w *dagbridgev1.Workflow) (seconds, used float64) {
	// what became of the jobs before is its business too, and is not measured
	r.await("the gateway", func() bool { return gateway.live(r.b) == 0 })
	body := r.request(w)
	var answer []byte
	seconds, used = r.measure(gateway.pid, func() { answer = gateway.post(r.b, "/v1/runs", body) })
	require.Len(r.b, r.submitted(answer), len(w.GetTasks()))
	return seconds, used
}

// request is a workflow as a client sends it, in a run of its own: what it leaves out is not in the text.
func (r *rival) request(w *dagbridgev1.Workflow) []byte {
	w.Cluster, w.WaitFor = "hpc", dagbridgev1.WaitFor_SUBMITTED
	w.Run = &dagbridgev1.Run{Orchestrator: "airflow", Workflow: "fan", Run: uuid.NewString()}
	body, err := protojson.Marshal(w)
	require.NoError(r.b, err)
	return body
}

// submitted are the ids of the jobs in an answer, each of which has its native id.
func (r *rival) submitted(answer []byte) (ids []string) {
	resp := &dagbridgev1.SubmitWorkflowResponse{}
	require.NoError(r.b, jsoncodec.Unmarshal(answer, resp))
	for _, job := range resp.GetJobs() {
		require.NotEmpty(r.b, job.GetNativeId(), "%v", job)
		ids = append(ids, job.GetId())
	}
	return ids
}

// post submits a job description to slurmrestd.
func (r *rival) post(token string, body []byte) string {
	request, err := http.NewRequestWithContext(r.b.Context(), http.MethodPost, r.URL+"/slurm/v0.0.38/job/submit", bytes.NewReader(body))
	require.NoError(r.b, err)
	request.Header.Set("X-SLURM-USER-NAME", r.user)
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

// sbatch submits a script that does nothing.
func (r *rival) sbatch(arguments ...string) string {
	command := exec.Command(filepath.Join(r.Bin(), "sbatch"), append(append([]string{"--parsable", "--output=/dev/null"}, arguments...), r.script)...)
	out, err := command.Output()
	require.NoError(r.b, err)
	return strings.TrimSpace(string(out))
}
