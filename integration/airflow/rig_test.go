package airflowtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	gatewaytest "github.com/dagbridge/dagbridge/integration/gateway"
	"github.com/dagbridge/dagbridge/integration/loopback"
	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/proto/jsoncodec"
)

// long says that it is the long tier.
var long = os.Getenv("DAGBRIDGE_LONG") != ""

// rig is an Airflow, the gateway that its connection leads to, and the Slurm behind that, in whose accounting nothing else is.
type rig struct {
	*Airflow
	g *gatewaytest.Gateway
}

func newRig(t *testing.T, version string) *rig {
	t.Helper()
	port := loopback.FreePorts()
	g := gatewaytest.NewAt(t, slurmtest.Start(t, slurmtest.Options{}), "rest", port+10)
	return &rig{g: g, Airflow: Start(t, Options{
		Version: version, Dags: []string{"dags", "../examples/airflow"}, Port: port,
		Env: []string{"AIRFLOW__OPERATORS__DEFAULT_DEFERRABLE=True", fmt.Sprintf(`AIRFLOW_CONN_DAGBRIDGE_DEFAULT={"conn_type": "dagbridge", "host": "127.0.0.1", "port": %d}`, port+11)},
	})}
}

// One Airflow, since it takes a minute to start: first what leaves its components alone, side by side, then the kills.
func TestAirflow(t *testing.T) {
	versions := []string{"3.3"}
	if long {
		versions = []string{"3.3", "2.11"}
	}
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			r := newRig(t, version)
			t.Run("alive", func(t *testing.T) {
				for name, test := range map[string]func(*testing.T){
					"a chain of deferred tasks": r.chain, "a chain that Slurm goes on with by itself": r.chained,
					"marked failed": r.marked, "a run marked failed is torn down": r.torn, "cleared in the middle": r.cleared, "deleted and made again": r.again,
					"over as soon as it is deferred":   r.hasty,
					"300 simulations and their report": r.risk,
				} {
					t.Run(name, func(t *testing.T) {
						t.Parallel()
						test(t)
					})
				}
			})
			if long {
				t.Run("handed in ahead", r.lookAhead)
			}
			t.Run("whatever is killed", r.killed)
			t.Run("a hundred wait over one stream", r.crowd)
		})
	}
}

// gates is a folder in which a file of a task's name lets its job end.
type gates string

func (r *rig) gates(t *testing.T) gates { return gates(r.g.Slurm.WorkDir(t)) }

func (g gates) open(t *testing.T, task string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(string(g), task), nil, 0o644))
}

// jobs are what the gateway knows of a run, oldest first.
func (r *rig) jobs(t *testing.T, run *Run) []*dagbridgev1.Job {
	t.Helper()
	status, text := r.g.Get(t, "/v1/jobs?pageSize=1000&workflow="+url.QueryEscape(run.DAG)+"&run="+url.QueryEscape(run.ID))
	require.Equal(t, http.StatusOK, status, text)
	page := &dagbridgev1.ListJobsResponse{}
	require.NoError(t, jsoncodec.Unmarshal([]byte(text), page))
	slices.Reverse(page.Jobs)
	return page.GetJobs()
}

// job is what the gateway knows of a task's newest try.
func (r *rig) job(t *testing.T, run *Run, task string) *dagbridgev1.Job {
	t.Helper()
	job := r.try(t, run, task, 0)
	require.NotNil(t, job, "the gateway knows no job of %s", task)
	return job
}

// try is what the gateway knows of one of a task's tries, 0 for the newest; nil when that has not been submitted.
func (r *rig) try(t *testing.T, run *Run, task string, try int) *dagbridgev1.Job {
	t.Helper()
	query := url.Values{"orchestrator": {"airflow"}, "workflow": {run.DAG}, "run": {run.ID}, "task": {task}, "tryNumber": {strconv.Itoa(try)}}
	status, text := r.g.Get(t, "/v1/lookup?"+query.Encode())
	if status == http.StatusNotFound {
		return nil
	}
	require.Equal(t, http.StatusOK, status, text)
	answer := &dagbridgev1.LookupJobResponse{}
	require.NoError(t, jsoncodec.Unmarshal([]byte(text), answer))
	return answer.GetJob()
}

// awaitRunning waits until the job of a task runs in Slurm.
func (r *rig) awaitRunning(t *testing.T, run *Run, task string) *dagbridgev1.Job {
	t.Helper()
	var job *dagbridgev1.Job
	Eventually(t, func() bool {
		job = r.try(t, run, task, 0)
		return job.GetState() == dagbridgev1.Job_RUNNING
	}, "%s does not run in Slurm: %v", task, lazily(func() string { return job.String() }))
	return job
}

// accounted are the states of all native jobs that Slurm's accounting has of a task's name, by native id.
func (r *rig) accounted(t *testing.T, task string) map[string]string {
	return r.account(t, "JobIDRaw", task)
}

// elements are those of arrays, by the array's id and the index.
func (r *rig) elements(t *testing.T, task string) map[string]string {
	return r.account(t, "JobID", task)
}

func (r *rig) account(t *testing.T, id, task string) map[string]string {
	t.Helper()
	all := map[string]string{}
	output := r.g.Slurm.Run(t, "sacct", "-a", "-X", "-D", "-n", "-P", "-S", "1970-01-02", "-E", "now+300", "-o", id+",State,JobName")
	for line := range strings.Lines(output) {
		fields := strings.SplitN(strings.TrimSpace(line), "|", 3)
		require.Len(t, fields, 3, line)
		if strings.HasPrefix(fields[2], task+".") {
			all[fields[0]], _, _ = strings.Cut(fields[1], " ") // CANCELLED by 0
		}
	}
	return all
}

// awaitAccounted waits until the accounting has the ends of a task's native jobs, which are these and no others.
func (r *rig) awaitAccounted(t *testing.T, task string, want map[string]string) {
	t.Helper()
	var all map[string]string
	ended := func(state string) bool { return state != "PENDING" && state != "RUNNING" }
	Eventually(t, func() bool {
		all = r.accounted(t, task)
		live := 0
		for _, state := range all {
			if !ended(state) {
				live++
			}
		}
		return len(all) >= len(want) && live == 0
	}, "the accounting has no end of all jobs of %s: %v", task, &all)
	require.Equal(t, want, all, "the native jobs of %s in Slurm's accounting", task)
}

// field of a JSON object, as JSON.
func field(t *testing.T, object, name string) string {
	t.Helper()
	fields := map[string]json.RawMessage{}
	require.NoError(t, json.Unmarshal([]byte(object), &fields), "%s", object)
	return string(fields[name])
}
