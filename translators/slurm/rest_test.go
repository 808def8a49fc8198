package slurm_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/dagbridge/dagbridge/translators/slurm"
	"github.com/stretchr/testify/require"
)

// everyOption has each option that a task may set in its own task, with a value that tells it from others, and what the
// structure makes of it, by field.
var everyOption = map[string]struct {
	value string
	says  map[string]any
}{
	"acctg-freq":         {"task=30", map[string]any{"account_gather_frequency": "task=30"}},
	"bb":                 {"capacity=1G", map[string]any{"burst_buffer": "capacity=1G"}},
	"begin":              {"now+1hour", map[string]any{"begin_time": "now+1hour"}},
	"cluster-constraint": {"x", map[string]any{"cluster_constraint": "x"}},
	"constraint":         {"ib", map[string]any{"constraints": "ib"}},
	"core-spec":          {"1", map[string]any{"core_specification": 1}},
	"cpu-freq":           {"low", map[string]any{"cpu_frequency": "low"}},
	"cpus-per-gpu":       {"2", map[string]any{"cpus_per_tres": "gres/gpu:2"}},
	"deadline":           {"2030-01-01T00:00:00", map[string]any{"deadline": "2030-01-01T00:00:00"}},
	"delay-boot":         {"2", map[string]any{"delay_boot": 120}},
	"distribution":       {"cyclic", map[string]any{"distribution": "cyclic"}},
	"exclude":            {"n[1-3],n5", map[string]any{"excluded_nodes": []string{"n[1-3],n5"}}},
	"exclusive":          {"", map[string]any{"shared": []string{"none"}}},
	"gpu-bind":           {"closest", map[string]any{"tres_bind": "gres/gpu:closest"}},
	"gpu-freq":           {"low", map[string]any{"tres_freq": "gpu:low"}},
	"gpus":               {"a100:2,v100:1", map[string]any{"tres_per_job": "gres/gpu:a100:2,gres/gpu:v100:1"}},
	"gpus-per-node":      {"2", map[string]any{"tres_per_node": "gres/gpu:2"}},
	"gpus-per-socket":    {"2", map[string]any{"tres_per_socket": "gres/gpu:2"}},
	"gpus-per-task":      {"a100:2,1", map[string]any{"tres_per_task": "gres/gpu:a100=2,gres/gpu=1", "tres_bind": "gres/gpu:per_task:3"}},
	"gres":               {"lustre:1,gpu:a100:2", map[string]any{"tres_per_node": "gres/lustre:1,gres/gpu:a100:2"}},
	"gres-flags":         {"enforce-binding", map[string]any{"flags": []string{"NO_KILL_INVALID_DEPENDENCY", "GRES_BINDING_ENFORCED"}}},
	"licenses":           {"matlab:2", map[string]any{"licenses": "matlab:2"}},
	"mail-type":          {"end,TIME_LIMIT_90", map[string]any{"mail_type": []string{"END", "TIME=90%"}}},
	"mail-user":          {"me", map[string]any{"mail_user": "me"}},
	"mcs-label":          {"x", map[string]any{"mcs_label": "x"}},
	"mem-per-cpu":        {"2G", map[string]any{"memory_per_cpu": number(2048)}},
	"mem-per-gpu":        {"1025K", map[string]any{"memory_per_tres": "gres/gpu:2"}},
	"mincpus":            {"2", map[string]any{"minimum_cpus_per_node": 2}},
	"nice":               {"", map[string]any{"nice": 100}},
	"no-requeue":         {"", map[string]any{"requeue": false}},
	"nodelist":           {"n1", map[string]any{"required_nodes": []string{"n1"}}},
	"ntasks":             {"3", map[string]any{"tasks": 3}},
	"ntasks-per-core":    {"1", map[string]any{"tasks_per_core": 1}},
	"ntasks-per-socket":  {"1", map[string]any{"tasks_per_socket": 1}},
	"oversubscribe":      {"", map[string]any{"shared": []string{"oversubscribe"}}},
	"prefer":             {"ib", map[string]any{"prefer": "ib"}},
	"priority":           {"7", map[string]any{"priority": number(7)}},
	"profile":            {"all", map[string]any{"profile": []string{"ENERGY", "LUSTRE", "NETWORK", "TASK"}}},
	"requeue":            {"", map[string]any{"requeue": true}},
	"reservation":        {"x", map[string]any{"reservation": "x"}},
	"signal": {"R:USR1@90", map[string]any{
		"kill_warning_signal": "USR1", "kill_warning_delay": number(90), "kill_warning_flags": []string{"RESERVATION_JOB"},
	}},
	"sockets-per-node": {"1", map[string]any{"sockets_per_node": 1}},
	"spread-job":       {"", map[string]any{"flags": []string{"NO_KILL_INVALID_DEPENDENCY", "SPREAD_JOB"}}},
	"thread-spec":      {"1", map[string]any{"thread_specification": 1}},
	"threads-per-core": {"1", map[string]any{"threads_per_core": 1}},
	"time-min":         {"1-12:00:30", map[string]any{"time_minimum": number(36*60 + 1)}},
	"tmp":              {"10", map[string]any{"temporary_disk_per_node": 10}},
	"use-min-nodes":    {"", map[string]any{"flags": []string{"NO_KILL_INVALID_DEPENDENCY", "PREFER_MINIMUM_NODE_COUNT"}}},
	"wckey":            {"x", map[string]any{"wckey": "x"}},
}

func number(n int) map[string]any { return map[string]any{"set": true, "infinite": false, "number": n} }

// cannot are the versions that cannot carry an option.
var cannot = map[string][]string{
	"distribution": {"v0.0.40"},
}

// TestEveryOptionIsSaidInEveryVersion also holds each field against the version's own OpenAPI document, of which
// testdata/openapi is the part about jobs: a field that is not there, slurmrestd ignores.
func TestEveryOptionIsSaidInEveryVersion(t *testing.T) {
	t.Parallel()
	for _, name := range slurm.OptionNames() {
		require.Contains(t, everyOption, name, "an option of which this test knows nothing")
	}
	for name, o := range everyOption {
		job, faults := slurm.Translate(slurm.Site{WorkDir: "/w", User: "u"}, submission(options(name, o.value)))
		require.Empty(t, faults, name)
		for _, version := range slurm.Versions {
			body, faults := job.REST(version)
			if slices.Contains(cannot[name], version) {
				require.Len(t, faults, 1, "%s %s", version, name)
				require.Contains(t, faults.Error(), `slurm.options["`+name+`"]: slurmrestd `+version+" cannot carry it")
				continue
			}
			require.Empty(t, faults, "%s %s", version, name)
			if version == "v0.0.38" {
				continue // the goldens show it
			}
			said := reread(t, body["job"]).(map[string]any)
			for field, want := range o.says {
				require.Equal(t, reread(t, want), said[field], "%s %s", version, field)
			}
			checkFields(t, version, said)
		}
	}
}

// reread is a value as it reads from JSON.
func reread(t *testing.T, value any) (read any) {
	t.Helper()
	text, err := json.Marshal(value)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &read))
	return read
}

// times may be told as texts such as "now+1hour", whatever the document says.
var times = []string{"begin_time", "deadline"}

// checkFields compares a description with a version's fields and their types.
func checkFields(t *testing.T, version string, said map[string]any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata/openapi", version+".json"))
	require.NoError(t, err)
	var known map[string]any
	require.NoError(t, json.Unmarshal(text, &known))
	for field, value := range said {
		require.Contains(t, known, field, version)
		switch kind := known[field].(type) {
		case []any:
			for _, one := range value.([]any) {
				if !slices.Equal(kind, []any{"string"}) {
					require.Contains(t, kind, one, "%s %s", version, field)
				}
			}
		case map[string]any:
			if object, ok := value.(map[string]any); ok {
				require.Len(t, object, len(kind), "%s %s", version, field)
			} else {
				require.Contains(t, times, field, version)
			}
		default:
			if !slices.Contains(times, field) {
				require.Equal(t, kind, kindOf(value), "%s %s", version, field)
			}
		}
	}
}

// kindOf a value, in OpenAPI's words.
func kindOf(value any) string {
	switch value.(type) {
	case string:
		return "string"
	case float64:
		return "integer"
	case bool:
		return "boolean"
	default:
		return "another"
	}
}

// TestAHoldBeatsAPriority: v0.0.40 and later take a priority beside a hold as its end.
func TestAHoldBeatsAPriority(t *testing.T) {
	t.Parallel()
	s := submission(options("priority", "7"))
	s.Hold = true
	job, faults := slurm.Translate(slurm.Site{WorkDir: "/w", User: "u"}, s)
	require.Empty(t, faults)
	for _, version := range slurm.Versions[:len(slurm.Versions)-1] {
		body, faults := job.REST(version)
		require.Empty(t, faults)
		require.Equal(t, true, body["job"].(map[string]any)["hold"])
		require.NotContains(t, body["job"], "priority", version)
	}
}

func TestAVersionThatIsNotKnownIsRefused(t *testing.T) {
	t.Parallel()
	job, faults := slurm.Translate(slurm.Site{WorkDir: "/w", User: "u"}, submission(command("true")))
	require.Empty(t, faults)
	_, faults = job.REST("v0.0.39")
	require.ErrorContains(t, faults, "slurmrestd v0.0.39 is not known here")
}

// TestSizesAndTimesAreRead tells the structure's numbers from sbatch's texts.
func TestSizesAndTimesAreRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		option, value, field string
		want                 int
	}{
		{"mem-per-cpu", "100", "memory_per_cpu", 100},
		{"mem-per-cpu", "100m", "memory_per_cpu", 100},
		{"mem-per-cpu", "1K", "memory_per_cpu", 1},
		{"mem-per-cpu", "3g", "memory_per_cpu", 3 << 10},
		{"mem-per-cpu", "2T", "memory_per_cpu", 2 << 20},
		{"time-min", "90", "time_minimum", 90},
		{"time-min", "90:01", "time_minimum", 91},
		{"time-min", "1:30:00", "time_minimum", 90},
		{"time-min", "1-12", "time_minimum", 36 * 60},
		{"time-min", "1-12:30", "time_minimum", 36*60 + 30},
		{"time-min", "1-12:30:01", "time_minimum", 36*60 + 31},
		{"signal", "USR1", "kill_warning_delay", 60},
		{"signal", "10@30", "kill_warning_delay", 30},
	} {
		job, faults := slurm.Translate(slurm.Site{WorkDir: "/w", User: "u"}, submission(options(c.option, c.value)))
		require.Empty(t, faults, c.value)
		body, faults := job.REST(slurm.Versions[0])
		require.Empty(t, faults, c.value)
		require.Equal(t, reread(t, number(c.want)), reread(t, body["job"]).(map[string]any)[c.field], "%s=%s", c.option, c.value)
	}
}
