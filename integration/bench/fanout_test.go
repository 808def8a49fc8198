package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators"
	"github.com/dagbridge/dagbridge/translators/slurm"
)

// fanned is how many tasks are between the first, which each of them needs, and the last, which needs all of them.
const fanned = 998

// BenchmarkFanOut compares a DAG of a thousand tasks, handed to the gateway in one request over REST, with a loop of sbatch and
// with bare calls of slurmrestd: from the start until the last native id is known.
func BenchmarkFanOut(b *testing.B) {
	r := newRival(b, slurmtest.Oldest, slurmtest.User)
	gateway := r.startGateway(b.TempDir(), r.overREST())
	var jobs, folded, array, bare, loop, cpuJobs, cpuBare []float64
	for range *rounds {
		seconds, cpu := r.throughGateway(gateway, single("off"))
		jobs, cpuJobs = append(jobs, seconds), append(cpuJobs, cpu)
		seconds, cpu = r.measure(os.Getpid(), r.calls)
		bare, cpuBare = append(bare, seconds), append(cpuBare, cpu)
		seconds, _ = r.throughGateway(gateway, single("auto"))
		folded = append(folded, seconds)
		seconds, _ = r.throughGateway(gateway, mapped())
		array = append(array, seconds)
		seconds, _ = r.measure(os.Getpid(), r.loop)
		loop = append(loop, seconds)
	}
	times("1,000 tasks into Slurm as single jobs", "sbatch loop", "s", jobs, loop, aim{atLeast: 5})
	compare("1,000 tasks into Slurm as single jobs", "bare slurmrestd calls", "s", jobs, bare, aim{atMost: 1.15})
	compare("  processor time of the caller, slurmrestd and slurmctld", "bare slurmrestd calls", "s", cpuJobs, cpuBare, aim{})
	times("1,000 equal tasks into Slurm, folded", "sbatch loop", "s", folded, loop, aim{atLeast: 20})
	times("1,000 tasks into Slurm as an array", "sbatch loop", "s", array, loop, aim{atLeast: 100})
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

// single has a task for each.
func single(fold string) *dagbridgev1.Workflow {
	w := &dagbridgev1.Workflow{Fold: fold, Tasks: []*dagbridgev1.Task{fan("first")}}
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
	site := slurm.Site{WorkDir: r.workDir, User: r.user}
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

// loop is what a shell script would do.
func (r *rival) loop() {
	first := r.sbatch("--mem=50M")
	between := make([]string, fanned)
	for i := range between {
		between[i] = r.sbatch("--mem=50M", "--dependency=afterok:"+first)
	}
	r.sbatch("--mem=50M", "--dependency=afterok:"+strings.Join(between, ":"))
}
