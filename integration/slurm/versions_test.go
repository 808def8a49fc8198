package slurmtest_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/server/backend/backendtest"
	"github.com/dagbridge/dagbridge/server/backend/slurm"
	translator "github.com/dagbridge/dagbridge/translators/slurm"
)

// served are the versions that a cluster's slurmrestd and the gateway both speak, newest first.
func served(t *testing.T, c *slurmtest.Cluster) (versions []string) {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.URL+"/openapi/v3", nil)
	require.NoError(t, err)
	request.Header.Set("X-SLURM-USER-NAME", slurmtest.User)
	request.Header.Set("X-SLURM-USER-TOKEN", c.Token(t, slurmtest.User, "60"))
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	document, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	for _, version := range translator.Versions {
		if strings.Contains(string(document), `"/slurm/`+version+`/job/submit"`) ||
			strings.Contains(string(document), `"\/slurm\/`+version+`\/job\/submit"`) {
			versions = append(versions, version)
		}
	}
	require.NotEmpty(t, versions)
	return versions
}

// ofVersion makes a backend speak one version.
func ofVersion(version string) func(*slurm.Options) {
	return func(o *slurm.Options) { o.REST.Version = version }
}

// TestAnOptionIsTheSameOverEveryWay submits, held, a task with each of slurm.options by sbatch and by each version of
// slurmrestd, and compares what slurmctld shows of them, or that it refuses both.
func TestAnOptionIsTheSameOverEveryWay(t *testing.T) {
	t.Parallel()
	for _, release := range releases() {
		t.Run(string(release), func(t *testing.T) {
			t.Parallel()
			c := slurmtest.Start(t, slurmtest.Options{Release: release, NoAccounting: true, Set: []string{"Licenses=matlab:4"}})
			cli := newBench(t, c, ways["CLI"], nil)
			overREST := map[string]*bench{}
			for _, version := range served(t, c) {
				overREST[version] = newBench(t, c, ways["REST"], ofVersion(version))
			}
			for _, name := range slices.Sorted(maps.Keys(optionValues)) {
				for _, value := range optionValues[name] {
					sub := func() *dagbridgev1.Task {
						one := task("true")
						one.Slurm = &dagbridgev1.SlurmOptions{Options: map[string]string{name: value}}
						if resources := beside[name]; resources != nil {
							one.Resources = resources
						}
						return one
					}
					want := cli.shows(t, sub())
					for version, b := range overREST {
						if slices.Contains(cannotSay[name], version) {
							require.Contains(t, b.shows(t, sub())["refused"], version+" cannot carry it", name)
							continue
						}
						require.Equal(t, want, b.shows(t, sub()), "--%s=%s over %s", name, value, version)
					}
				}
			}
		})
	}
}

// cannotSay are the versions that cannot carry an option.
var cannotSay = map[string][]string{
	"distribution": {"v0.0.40"},
}

// beside are the resources that an option needs, or must have none beside it.
var beside = map[string]*dagbridgev1.Resources{
	"cpus-per-gpu":  {Gpus: []*dagbridgev1.Gpu{{}}},
	"gpu-bind":      {Cpu: "1", Gpus: []*dagbridgev1.Gpu{{}}},
	"gpu-freq":      {Cpu: "1", Gpus: []*dagbridgev1.Gpu{{}}},
	"gres-flags":    {Cpu: "1", Gpus: []*dagbridgev1.Gpu{{}}},
	"gpus-per-task": {Cpu: "1", TasksPerNode: 2},
	"mem-per-cpu":   {Cpu: "2"},
	"mem-per-gpu":   {Cpu: "1", Gpus: []*dagbridgev1.Gpu{{}}},
}

// optionValues are values of the options, each written in the ways that mean something else.
var optionValues = map[string][]string{
	"acctg-freq": {"task=1"}, "begin": {"2037-01-01T10:00:00", "now+1hour"}, "constraint": {"nowhere"}, "core-spec": {"1"},
	"delay-boot": {"2"}, "distribution": {"cyclic"}, "exclude": {"n1", "n[1-2]"}, "exclusive": {"", "user"},
	"gpu-bind": {"closest"}, "gpu-freq": {"low"}, "gpus": {"2"}, "gpus-per-node": {"1"}, "gpus-per-task": {"1"},
	"gres": {"gpu:1"}, "gres-flags": {"enforce-binding", "disable-binding"}, "licenses": {"matlab:2", "unknown:1"},
	"mail-type": {"END,FAIL", "ALL", "TIME_LIMIT_80", "ARRAY_TASKS,BEGIN"}, "mail-user": {"me@example.org"},
	"mem-per-cpu": {"40", "1G", "1500K"}, "mem-per-gpu": {"30M"}, "mincpus": {"2"}, "nice": {"", "7"}, "no-requeue": {""},
	"nodelist": {"n2"}, "ntasks": {"3"}, "ntasks-per-core": {"1"}, "ntasks-per-socket": {"1"}, "oversubscribe": {""},
	"prefer": {"nowhere"}, "priority": {"9"}, "requeue": {""}, "reservation": {"none"},
	"signal": {"USR1@90", "R:10@30"}, "sockets-per-node": {"1"}, "spread-job": {""}, "thread-spec": {"1"},
	"threads-per-core": {"1"}, "time-min": {"1"}, "tmp": {"10"}, "use-min-nodes": {""}, "wckey": {"x"},
}

var (
	shown      = regexp.MustCompile(`(?:^|\s)([A-Z][\w/:]*)=(\S*)`)
	cpuPerTask = regexp.MustCompile(`cpu[=:][0-9]+`)
	// unlike are what differs between any two jobs, the times at which they were looked at, and that slurmrestd says of every
	// job that running out of memory kills the process alone, where sbatch leaves it to the site.
	unlike = []string{
		"JobId", "JobName", "UserId", "GroupId", "Account", "Priority", "SubmitTime", "EligibleTime", "AccrueTime", "LastSchedEval", "Scheduler",
		"AllocNode:Sid", "MailUser", "Comment", "Command", "WorkDir", "StdErr", "StdOut", "StdIn", "SubmitLine", "StartTime", "EndTime", "SLUID", "OOMKillStep",
	}
)

// shows submits a task, held, and returns what slurmctld shows of it, or by "refused" why it does not take it.
func (b *bench) shows(t *testing.T, one *dagbridgev1.Task) map[string]string {
	t.Helper()
	sub := held(backendtest.Submission(t, one))
	result := b.try(t, sub)
	if result.Outcome != backend.Submitted {
		require.Equal(t, backend.Refused, result.Outcome, result.Message)
		require.NotContains(t, result.Message, "ignored", "a field that slurmrestd does not know")
		return map[string]string{"refused": strings.TrimPrefix(result.Message, "Batch job submission failed: ")}
	}
	fields := map[string]string{}
	for _, match := range shown.FindAllStringSubmatch(b.Run(t, "scontrol", "show", "job", result.Ref.ID), -1) {
		fields[match[1]] = match[2]
	}
	for _, key := range unlike {
		delete(fields, key)
	}
	// sbatch says --cpus-per-task a second time, as a resource per task
	fields["TresPerTask"] = strings.Trim(cpuPerTask.ReplaceAllString(fields["TresPerTask"], ""), ",")
	// once it was looked at by the scheduler, "1-1" is "1"
	fields["NumNodes"], _, _ = strings.Cut(fields["NumNodes"], "-")
	require.Equal(t, []error{nil}, b.backend.Cancel(t.Context(), []backend.Known{{Ref: result.Ref, Job: sub.Job}}), fmt.Sprint(one))
	return fields
}
