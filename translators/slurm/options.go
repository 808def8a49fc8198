package slurm

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// kind is what values an option of sbatch's takes, and how slurmrestd wants them.
type kind int

const (
	// word is any text.
	word kind = iota
	// whole is a whole number; slurmrestd takes it as one.
	whole
	// flag takes no value. slurmrestd sets it whenever the field is there, even when it is false.
	flag
)

// option is one of sbatch's long options that both slurmrestd v0.0.38 and sbatch can carry. What only one of them carries is
// not offered: a task must not depend on how its cluster is reached.
type option struct {
	// field of slurmrestd's job description.
	field string
	kind  kind
	// bare is what the option means without a value; "" where it must have one.
	bare string
	// pattern of the values that slurmrestd takes; nil: any.
	pattern *regexp.Regexp
	// hint says what values are taken.
	hint string
}

var (
	size     = regexp.MustCompile(`^[0-9]+[KMGTkmgt]?$`)
	sizeHint = `a size as Slurm writes it ("100", "2G"; MiB without a unit)`
)

// wordsOf are lists of the table's words, in either case of letters.
func wordsOf(table map[string][]string) *regexp.Regexp {
	word := "(" + strings.Join(slices.Sorted(maps.Keys(table)), "|") + ")"
	return regexp.MustCompile("(?i)^" + word + "(," + word + ")*$")
}

func listOf(table map[string][]string) string {
	return strings.Join(slices.Sorted(maps.Keys(table)), ", ")
}

// options that a task may set in slurm.options, each tried on slurmrestd 22.05.
var options = map[string]option{
	"acctg-freq":         {field: "account_gather_frequency"},
	"bb":                 {field: "burst_buffer"},
	"begin":              {field: "begin_time"},
	"cluster-constraint": {field: "cluster_constraint"},
	"constraint":         {field: "constraints"},
	"core-spec":          {field: "core_specification", kind: whole},
	"cpu-freq":           {field: "cpu_frequency"},
	"cpus-per-gpu":       {field: "cpus_per_gpu", kind: whole},
	"deadline":           {field: "deadline"},
	"delay-boot":         {field: "delay_boot", kind: whole},
	"distribution":       {field: "distribution"},
	"exclude":            {field: "exclude_nodes"},
	"exclusive": {field: "exclusive", bare: "exclusive", pattern: regexp.MustCompile(`^(user|mcs)$`),
		hint: `"", "user" or "mcs"`},
	"gpu-bind":        {field: "gpu_binding"},
	"gpu-freq":        {field: "gpu_frequency"},
	"gpus":            {field: "gpus"},
	"gpus-per-node":   {field: "gpus_per_node"},
	"gpus-per-socket": {field: "gpus_per_socket"},
	"gpus-per-task":   {field: "gpus_per_task"},
	"gres":            {field: "gres"},
	"gres-flags": {field: "gres_flags", pattern: regexp.MustCompile(`^(disable|enforce)-binding$`),
		hint: `"disable-binding" or "enforce-binding"`},
	"licenses":          {field: "licenses"},
	"mail-type":         {field: "mail_type", pattern: wordsOf(mailTypes), hint: "a list of " + listOf(mailTypes)},
	"mail-user":         {field: "mail_user"},
	"mcs-label":         {field: "mcs_label"},
	"mem-per-cpu":       {field: "memory_per_cpu", pattern: size, hint: sizeHint},
	"mem-per-gpu":       {field: "memory_per_gpu", pattern: size, hint: sizeHint},
	"mincpus":           {field: "minimum_cpus_per_node", kind: whole},
	"nice":              {field: "nice", kind: whole, bare: "100"},
	"no-requeue":        {field: "no_requeue", kind: flag},
	"nodelist":          {field: "nodelist"},
	"ntasks":            {field: "tasks", kind: whole},
	"ntasks-per-core":   {field: "tasks_per_core", kind: whole},
	"ntasks-per-socket": {field: "tasks_per_socket", kind: whole},
	"oversubscribe":     {field: "oversubscribe", kind: flag},
	"prefer":            {field: "prefer"},
	"priority":          {field: "priority", pattern: regexp.MustCompile(`^[0-9]{1,9}$`), hint: "a number"},
	"requeue":           {field: "requeue", kind: flag},
	"profile":           {field: "profile", pattern: wordsOf(profiles), hint: "a list of " + listOf(profiles)},
	"reservation":       {field: "reservation"},
	"signal": {field: "signal", pattern: regexp.MustCompile(`^([BR]:)?(` + signalNames + `)(@[0-9]{1,5})?$`),
		hint: `a signal and seconds ("USR1@60"), for the program itself with "B:" before it`},
	"sockets-per-node": {field: "sockets_per_node", kind: whole},
	"spread-job":       {field: "spread_job", kind: flag},
	"thread-spec":      {field: "thread_specification", kind: whole},
	"threads-per-core": {field: "threads_per_core", kind: whole},
	"time-min": {field: "time_minimum", pattern: regexp.MustCompile(`^[0-9]{1,6}(:[0-9]{1,2}){0,2}$|^[0-9]{1,4}-[0-9]{1,2}(:[0-9]{1,2}){0,2}$`),
		hint: `a time as Slurm writes it ("90", "1:30:00", "1-12:00:00"; minutes without a unit)`},
	"tmp":           {field: "temporary_disk_per_node", kind: whole},
	"use-min-nodes": {field: "minimum_nodes", kind: flag},
	"wckey":         {field: "wckey"},
}

// elsewhere are options that the task says in a field of its own.
var elsewhere = map[string]string{
	"account":         "slurm.account",
	"array":           "array.items",
	"chdir":           "workingDirectory",
	"container":       "container.image, with oci in slurm.container",
	"container-image": "container.image, with pyxis in slurm.container",
	"cpus-per-task":   "resources.cpu",
	"dependency":      "upstream",
	"mem":             "resources.memory",
	"nodes":           "resources.nodes",
	"ntasks-per-node": "resources.tasksPerNode",
	"partition":       "slurm.partition",
	"qos":             "slurm.qos",
	"time":            "resources.timeLimit",
	"wrap":            "script.text",
}

// reserved are options that the gateway needs for itself, or that make no sense under it, and why.
var reserved = map[string]string{
	"batch":               "a job's script is always started once, on its first node",
	"clusters":            "the cluster is the task's cluster",
	"comment":             "the gateway recognises its jobs by it; use labels",
	"error":               "the gateway keeps the job's standard error itself; see logs",
	"export":              "the program's environment is the task's env",
	"export-file":         "the program's environment is the task's env",
	"get-user-env":        "the program's environment is the task's env; a login shell is the cluster's configuration",
	"gid":                 "jobs run as the cluster's configured user",
	"hold":                "the gateway holds and releases its jobs itself",
	"ignore-pbs":          "#PBS and #BSUB lines are never read",
	"input":               "the program has no standard input",
	"job-name":            "the gateway recognises its jobs by it; people find them by the task's name, which is a part of it",
	"kill-on-invalid-dep": "the gateway decides what becomes of a job whose dependency cannot hold",
	"open-mode":           "logs are always appended to",
	"output":              "the gateway keeps the job's standard output itself; see logs",
	"parsable":            "it is about sbatch's own output",
	"quiet":               "it is about sbatch's own output",
	"test-only":           "a job is always submitted; use plan to see it before",
	"uid":                 "jobs run as the cluster's configured user",
	"umask":               "the gateway must be able to read the job's files",
	"verbose":             "it is about sbatch's own output",
	"wait":                "waiting is the caller's: waitFor, or dagbridge submit --wait",
	"wait-all-nodes":      "whether a job starts before all of its nodes have booted is the site's",
}

// oneWay are options of sbatch's that slurmrestd refuses, or takes for something else.
var oneWay = []string{
	"batch-features", "bbf", "contiguous", "cores-per-socket", "extra-node-info", "hint", "mem-bind", "network", "no-kill", "nodefile",
	"ntasks-per-gpu", "overcommit", "power", "propagate", "reboot", "switches",
}

// newer are options of sbatch's that the oldest release here does not have.
var newer = []string{
	"consolidate-segments", "container-id", "container-type", "extra", "mem-update", "oom-kill-step", "resources", "resv-ports", "segment",
	"spread-segments", "stepmgr", "tres-bind", "tres-per-task",
}

// conflicts are options that say what a field of the task says too.
var conflicts = []struct {
	option, field string
	said          func(*Job) bool
}{
	{"mem-per-cpu", "resources.memory", func(j *Job) bool { return j.MemoryPerNodeMiB > 0 }},
	{"mem-per-gpu", "resources.memory", func(j *Job) bool { return j.MemoryPerNodeMiB > 0 }},
	{"cpus-per-gpu", "resources.cpu", func(j *Job) bool { return j.CPUsPerTask > 0 }},
	{"gpus", "resources.gpus", func(j *Job) bool { return j.Gres != "" }},
	{"gpus-per-node", "resources.gpus", func(j *Job) bool { return j.Gres != "" }},
	{"gpus-per-task", "resources.gpus", func(j *Job) bool { return j.Gres != "" }},
	{"gpus-per-socket", "resources.gpus", func(j *Job) bool { return j.Gres != "" }},
}

// options checks slurm.options and takes them over.
func (t *translation) options() {
	given := t.submission.Task.GetSlurm().GetOptions()
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if why := refuseOption(name, given[name]); why != "" {
			t.fault(fmt.Sprintf("slurm.options[%q]", name), "%s", why)
		}
	}
	for _, c := range conflicts {
		if _, ok := given[c.option]; ok && c.said(t.job) {
			t.fault(fmt.Sprintf("slurm.options[%q]", c.option), "%s says it already; use one of the two", c.field)
		}
	}
	if _, ok := given["requeue"]; ok {
		if _, ok := given["no-requeue"]; ok {
			t.fault(`slurm.options["requeue"]`, "no-requeue says the opposite; use one of the two")
		}
	}
	t.job.Options = maps.Clone(given)
	if more, ok := given["gres"]; ok {
		// Both kinds of generic resources share one option.
		if t.job.Gres != "" && strings.Contains(","+more, ",gpu") {
			t.fault(`slurm.options["gres"]`, "resources.gpus asks for GPUs already; use one of the two")
		}
		t.job.Gres = strings.Trim(t.job.Gres+","+more, ",")
		delete(t.job.Options, "gres")
	}
	t.exclude()
	t.signal()
}

// exclude leaves out the nodes that failed earlier attempts, beside those that the task itself leaves out.
func (t *translation) exclude() {
	failed := strings.Join(t.submission.ExcludeNodes, ",")
	if failed == "" {
		return
	}
	if list, ok := t.job.Options["nodelist"]; ok {
		t.notice(`slurm.options["nodelist"] wants %s; that an earlier attempt failed on %s does not count`, list, failed)
		return
	}
	if t.job.Options == nil {
		t.job.Options = map[string]string{}
	}
	t.job.Options["exclude"] = strings.Trim(t.job.Options["exclude"]+","+failed, ",")
}

// refuseOption says why an option is not taken; "" when it is.
func refuseOption(name, value string) string {
	o, known := options[name]
	switch {
	case elsewhere[name] != "":
		return "use " + elsewhere[name]
	case reserved[name] != "":
		return "not for tasks: " + reserved[name]
	case slices.Contains(oneWay, name):
		return "slurmrestd cannot carry it, so it is not taken on any cluster"
	case slices.Contains(newer, name):
		return "Slurm 22.05 does not have it, so it is not taken on any cluster"
	case !known:
		return "sbatch has no such option that a task may set" + nearest(name, "", slices.Sorted(maps.Keys(options)))
	case o.kind == flag && value != "":
		return `it takes no value; give it ""`
	case o.kind == flag:
		return ""
	case value == "" && o.bare == "":
		return "it needs a value"
	case value == "":
		return ""
	case o.kind == whole:
		if _, err := strconv.ParseInt(value, 10, 32); err != nil {
			return fmt.Sprintf("%q is not a whole number", value)
		}
	case o.pattern != nil && !o.pattern.MatchString(value):
		return fmt.Sprintf("%q is not %s", value, o.hint)
	}
	return ""
}

// nearest says which name, after its dashes, a misspelt one was probably meant to be, of several the first; "" when it looks
// like none.
func nearest(name, dashes string, candidates []string) string {
	best, least := "", len(name)/2+1
	for _, candidate := range candidates {
		if d := distance(name, candidate); d < least {
			best, least = candidate, d
		}
	}
	if best == "" {
		return ""
	}
	return "; the nearest one is " + dashes + best
}

// distance is Levenshtein's, over bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
