package slurmtest_test

import (
	"maps"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"

	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/server/backend/backendtest"
	"github.com/dagbridge/dagbridge/translators/slurm"
)

// asked is something that a task may ask of Slurm, and what Slurm then shows of the job, beside what it shows of one that asks
// nothing.
type asked struct {
	options   map[string]string
	resources *dagbridgev1.Resources
	shows     map[string]string
}

// option asks for one option.
func option(name, value string, shows ...string) asked {
	a := asked{options: map[string]string{name: value}, shows: map[string]string{}}
	for i := 0; i < len(shows); i += 2 {
		a.shows[shows[i]] = shows[i+1]
	}
	return a
}

// everything is each option that scontrol shows, in its turn. What it does not show is left out: acctg-freq, core-spec, thread-spec,
// distribution, mcs-label, priority (an operator's), profile, signal and use-min-nodes.
var everything = []asked{
	option("bb", "capacity=1", "BurstBuffer", "capacity=1"),
	option("begin", "2037-01-02T03:04:05", "StartTime", "2037-01-02T03:04:05"),
	option("cluster-constraint", "ib", "ClusterFeatures", "ib"),
	option("constraint", "ib", "Features", "ib"),
	option("cpu-freq", "1000000", "CPU_max_freq", "1000000"),
	option("deadline", "2037-01-02T03:04:05", "Deadline", "2037-01-02T03:04:05"),
	option("delay-boot", "5", "DelayBoot", "00:05:00"),
	option("exclude", "n2", "ExcNodeList", "n2"),
	option("exclusive", "", "OverSubscribe", "NO"),
	option("gpu-bind", "closest", "TresBind", "gpu:closest"),
	option("gpu-freq", "medium", "TresFreq", "gpu:medium"),
	option("gpus", "h100:1", "TresPerJob", "gres:gpu:h100:1"),
	option("gpus-per-node", "a100:1", "TresPerNode", "gres:gpu:a100:1"),
	option("gres", "lustre:2", "TresPerNode", "gres:lustre:2"),
	option("gres-flags", "enforce-binding", "GresEnforceBind", "Yes"),
	option("licenses", "matlab:2", "Licenses", "matlab:2"),
	option("mail-type", "END,FAIL", "MailType", "END,FAIL"),
	{options: map[string]string{"mail-type": "ALL", "mail-user": "me@example.org"}, shows: map[string]string{"MailUser": "me@example.org"}},
	{options: map[string]string{"mem-per-cpu": "20M"}, resources: &dagbridgev1.Resources{Cpu: "2"}, shows: map[string]string{"MinMemoryCPU": "20M", "NumCPUs": "2"}},
	{options: map[string]string{"mem-per-gpu": "30M", "cpus-per-gpu": "2", "gpus": "1"}, resources: &dagbridgev1.Resources{}, shows: map[string]string{
		"MemPerTres": "gres:gpu:30", "CpusPerTres": "gres:gpu:2", "TresPerJob": "gres:gpu:1",
	}},
	{options: map[string]string{"gpus-per-task": "a100:1", "ntasks": "2"}, shows: map[string]string{"TresPerTask": "gres:gpu:a100:1", "NumTasks": "2"}},
	{options: map[string]string{"gpus-per-socket": "1", "sockets-per-node": "1"}, shows: map[string]string{"TresPerSocket": "gres:gpu:1"}},
	option("mincpus", "2", "MinCPUsNode", "2"),
	option("nice", "50", "Nice", "50"),
	option("nice", "", "Nice", "100"),
	option("no-requeue", "", "Requeue", "0"),
	option("requeue", "", "Requeue", "1"),
	option("nodelist", "n1", "ReqNodeList", "n1"),
	option("ntasks", "3", "NumTasks", "3"),
	option("ntasks-per-core", "1", "NtasksPerN:B:S:C", "0:0:*:1"),
	option("ntasks-per-socket", "2", "NtasksPerN:B:S:C", "0:0:2:*"),
	option("oversubscribe", "", "OverSubscribe", "YES"),
	option("prefer", "ib", "Prefer", "ib"),
	option("reservation", "maintenance", "Reservation", "maintenance"),
	option("sockets-per-node", "1", "Socks/Node", "1"),
	option("spread-job", "", "SpreadJob", "Yes"),
	option("threads-per-core", "1", "ReqB:S:C:T", "0:0:*:1"),
	option("time-min", "3", "TimeMin", "00:03:00"),
	option("tmp", "100", "MinTmpDiskNode", "100M"),
	option("wckey", "project", "WCKey", "project"),
	{resources: &dagbridgev1.Resources{Gpus: []*dagbridgev1.Gpu{{Type: "a100"}, {Type: "h100"}}, Memory: "50Mi"}, shows: map[string]string{
		"TresPerNode": "gres:gpu:a100:1,gres:gpu:h100:1", "MinMemoryNode": "50M",
	}},
	{resources: &dagbridgev1.Resources{Nodes: 2, TasksPerNode: 3, Cpu: "2", TimeLimit: durationpb.New(90 * time.Minute)}, shows: map[string]string{
		"NumNodes": "2-2", "NumTasks": "6", "NumCPUs": "12", "CPUs/Task": "2", "TimeLimit": "01:30:00", "NtasksPerN:B:S:C": "3:0:*:*",
	}},
}

// Every option is in the real job, the same whichever way it went in.
func TestWhatIsAskedForIsInTheJobOverEveryWay(t *testing.T) {
	t.Parallel()
	c := slurmtest.Shared(t)
	c.Run(t, "scontrol", "create", "reservation", "ReservationName=maintenance", "Users=root,"+slurmtest.User, "StartTime=2037-01-01T00:00:00", "Duration=60", "Nodes=n1")
	benches := map[string]*bench{}
	for _, way := range []string{"REST", "CLI"} {
		benches[way] = newBench(t, c, ways[way], nil)
	}
	for _, a := range everything {
		t.Run(describe(a), func(t *testing.T) {
			t.Parallel()
			jobs := map[string]map[string]string{}
			for way, b := range benches {
				asking := task("true")
				asking.Slurm = &dagbridgev1.SlurmOptions{Options: a.options}
				if a.resources != nil {
					asking.Resources = a.resources
				}
				result := b.try(t, held(backendtest.Submission(t, asking)))
				require.Equal(t, backend.Submitted, result.Outcome, "%s: %s", way, result.Message)
				jobs[way] = tellsOf(t, c, result.Ref.ID)
				for field, want := range a.shows {
					require.Equal(t, want, jobs[way][field], "%s: %s", way, field)
				}
				c.Run(t, "scancel", result.Ref.ID)
			}
			require.Equal(t, jobs["CLI"], jobs["REST"])
		})
	}
}

func describe(a asked) string {
	var words []string
	for name, value := range a.options {
		words = append(words, name+" "+value)
	}
	if a.resources != nil {
		words = append(words, a.resources.String())
	}
	return strings.Join(words, ", ")
}

// tellsOf is what Slurm shows of a job, but for what is each job's own.
func tellsOf(t *testing.T, c *slurmtest.Cluster, id string) map[string]string {
	t.Helper()
	fields := map[string]string{}
	text := regexp.MustCompile(`(=(?:Yes|No))([A-Z])`).ReplaceAllString(c.Run(t, "scontrol", "show", "job", id), "$1 $2") // 22.05 leaves a blank out
	for field := range strings.FieldsSeq(text) {
		if name, value, ok := strings.Cut(field, "="); ok {
			fields[name] = value
		}
	}
	maps.DeleteFunc(fields, func(name, value string) bool {
		return own.MatchString(name) || name == "MailUser" && !strings.Contains(value, "@") // else the job's user
	})
	return fields
}

var own = regexp.MustCompile(`^(JobId|JobName|UserId|GroupId|AllocNode:Sid|Account|Comment|Priority|SubmitTime|AccrueTime|EligibleTime|LastSchedEval|WorkDir|StdErr|StdOut|MCS_label|\S*/step)$`)

// Every option that a release's sbatch has is taken, or refused with a sentence of its own.
func TestNoOptionOfSbatchIsUnknown(t *testing.T) {
	t.Parallel()
	for _, release := range []slurmtest.Release{slurmtest.Oldest, slurmtest.Newest} {
		c := slurmtest.Shared(t)
		if release != slurmtest.Oldest {
			c = slurmtest.Start(t, slurmtest.Options{Release: release, NoAccounting: true})
		}
		names := regexp.MustCompile(`--([a-z][a-z-]+)`).FindAllStringSubmatch(c.Run(t, "sbatch", "--help"), -1)
		require.Greater(t, len(names), 80)
		for _, name := range names {
			if about[name[1]] {
				continue
			}
			asking := task("true")
			asking.Slurm = &dagbridgev1.SlurmOptions{Options: map[string]string{name[1]: "1"}}
			_, faults := slurm.Translate(slurm.Site{WorkDir: "/w", User: "u"}, backendtest.Submission(t, asking))
			require.NotContains(t, faults.Error(), "sbatch has no such option", "%s of %s", name[1], c.Version)
		}
	}
}

// about are options about sbatch itself.
var about = map[string]bool{"help": true, "usage": true, "version": true}

// A job sees the GPU of the type that it asked for, and no other.
func TestATypedGPU(t *testing.T) {
	t.Parallel()
	c := slurmtest.Shared(t)
	for _, way := range []string{"REST", "CLI"} {
		b := newBench(t, c, ways[way], nil)
		for kind, device := range map[string]string{"a100": "0\n", "h100": "1\n"} {
			gpu := task("sh", "-c", `echo "$CUDA_VISIBLE_DEVICES"`)
			gpu.Resources.Gpus = []*dagbridgev1.Gpu{{Type: kind}}
			known := b.submit(t, backendtest.Submission(t, gpu))
			b.await(t, known, "SUCCEEDED", is(dagbridgev1.Job_SUCCEEDED))
			require.Equal(t, device, (&containers{bench: b}).log(t, known, -1, "stdout"), kind)
		}
	}
}

// What comes before the time runs out comes to what srun has started, from Slurm, or with "B:" to the program, from the wrapper.
func TestAWarningBeforeTheTimeRunsOut(t *testing.T) {
	t.Parallel()
	c := slurmtest.Shared(t)
	for _, way := range []string{"REST", "CLI"} {
		for signal, launch := range map[string]dagbridgev1.Task_Launch{"USR1@50": dagbridgev1.Task_PER_TASK, "B:USR1@50": dagbridgev1.Task_ONCE} {
			t.Run(way+" "+signal, func(t *testing.T) {
				t.Parallel()
				b := newBench(t, c, ways[way], nil)
				warned := task("sh", "-c", `trap 'exit 7' USR1; while :; do sleep 0.2; done`)
				warned.Launch, warned.Slurm = launch, &dagbridgev1.SlurmOptions{Options: map[string]string{"signal": signal}}
				warned.Resources.TimeLimit = durationpb.New(time.Minute)
				known := b.submit(t, backendtest.Submission(t, warned))
				o := b.await(t, known, "FAILED", is(dagbridgev1.Job_FAILED))
				require.EqualValues(t, 7, *o.ExitCode)
			})
		}
	}
}
