package slurm

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// structured is the description that v0.0.40 and later take: numbers that may be unset, lists of flags, resources by
// Slurm's names for what it tracks (TRES), and the script in it.
func (j *Job) structured() description {
	d := j.words()
	d["script"] = j.Text()
	d["open_mode"] = []string{"APPEND"}
	if j.Nodes > 0 {
		d["nodes"] = strconv.Itoa(j.Nodes)
	}
	if j.MemoryPerNodeMiB > 0 {
		d["memory_per_node"] = settable(j.MemoryPerNodeMiB)
	}
	if j.TimeLimitMinutes > 0 {
		d["time_limit"] = settable(j.TimeLimitMinutes)
	}
	d.tres("tres_per_node", "gres/", j.Gres)
	d.list("flags", "NO_KILL_INVALID_DEPENDENCY")
	var environment []string
	for _, name := range slices.Sorted(maps.Keys(j.Environment)) {
		environment = append(environment, name+"="+j.Environment[name])
	}
	d["environment"] = environment
	for _, name := range slices.Sorted(maps.Keys(j.Options)) {
		o := options[name]
		value := o.said(j.Options[name])
		switch say := structures[name]; {
		case say != nil:
			say(d, value)
		case o.kind == whole:
			d[o.field] = integer(value)
		default:
			d[o.field] = value
		}
	}
	return d
}

// settable is a number that could be left unset.
func settable(n int64) map[string]any {
	return map[string]any{"set": true, "infinite": false, "number": n}
}

// list adds to a field that is a list.
func (d description) list(field string, values ...string) {
	have, _ := d[field].([]string)
	d[field] = append(have, values...)
}

// tres adds terms such as "gpu:a100:2,gpu:1", each with a prefix, to a field that lists resources.
func (d description) tres(field, prefix, terms string) {
	for term := range strings.SplitSeq(terms, ",") {
		if term == "" {
			continue
		}
		have, _ := d[field].(string)
		if have != "" {
			have += ","
		}
		d[field] = have + prefix + term
	}
}

// structures are how options are said that sbatch and the structure say differently. All others are a field with the same
// name in every version, a text or a whole number.
var structures = map[string]func(d description, value string){
	"cpus-per-gpu":    func(d description, v string) { d.tres("cpus_per_tres", "gres/gpu:", v) },
	"delay-boot":      func(d description, v string) { d["delay_boot"] = 60 * integer(v) },
	"exclude":         func(d description, v string) { d.list("excluded_nodes", v) },
	"exclusive":       func(d description, v string) { d.list("shared", sharing[v]) },
	"gpu-bind":        func(d description, v string) { d["tres_bind"] = "gres/gpu:" + v },
	"gpu-freq":        func(d description, v string) { d["tres_freq"] = "gpu:" + v },
	"gpus":            func(d description, v string) { d.tres("tres_per_job", "gres/gpu:", v) },
	"gpus-per-node":   func(d description, v string) { d.tres("tres_per_node", "gres/gpu:", v) },
	"gpus-per-socket": func(d description, v string) { d.tres("tres_per_socket", "gres/gpu:", v) },
	"gpus-per-task":   gpusPerTask,
	"gres-flags":      func(d description, v string) { d.list("flags", binding[v]) },
	"mail-type":       func(d description, v string) { d.list("mail_type", flagsOf(v, mailTypes)...) },
	"mem-per-cpu":     func(d description, v string) { d["memory_per_cpu"] = settable(mebibytes(v)) },
	"mem-per-gpu": func(d description, v string) {
		d.tres("memory_per_tres", "gres/gpu:", strconv.FormatInt(mebibytes(v), 10))
	},
	"no-requeue":    func(d description, _ string) { d["requeue"] = false },
	"nodelist":      func(d description, v string) { d.list("required_nodes", v) },
	"oversubscribe": func(d description, _ string) { d.list("shared", "oversubscribe") },
	"priority":      priority,
	"profile":       func(d description, v string) { d.list("profile", flagsOf(v, profiles)...) },
	"requeue":       func(d description, _ string) { d["requeue"] = true },
	"signal":        signalBeforeEnd,
	"spread-job":    func(d description, _ string) { d.list("flags", "SPREAD_JOB") },
	"time-min":      func(d description, v string) { d["time_minimum"] = settable(minutes(v)) },
	"use-min-nodes": func(d description, _ string) { d.list("flags", "PREFER_MINIMUM_NODE_COUNT") },
}

// gpusPerTask also binds each task to its own GPUs, as sbatch does where the task says nothing of binding.
func gpusPerTask(d description, value string) {
	total := int64(0)
	var terms []string
	for term := range strings.SplitSeq(value, ",") {
		kind, count, typed := strings.Cut(term, ":")
		name := "gres/gpu:" + kind
		if !typed {
			name, count = "gres/gpu", kind
		}
		terms = append(terms, name+"="+count)
		total += integer(count)
	}
	d["tres_per_task"] = strings.Join(terms, ",")
	if _, bound := d["tres_bind"]; !bound {
		d["tres_bind"] = "gres/gpu:per_task:" + strconv.FormatInt(total, 10)
	}
}

// priority is not said of a job that is held: it would lift the hold. sbatch lets the hold win too.
func priority(d description, value string) {
	if _, held := d["hold"]; !held {
		d["priority"] = settable(integer(value))
	}
}

var (
	sharing = map[string]string{"exclusive": "none", "user": "user", "mcs": "mcs"}
	binding = map[string]string{"disable-binding": "GRES_BINDING_DISABLED", "enforce-binding": "GRES_BINDING_ENFORCED"}

	mailTypes = map[string][]string{
		"NONE": {}, "BEGIN": {"BEGIN"}, "END": {"END"}, "FAIL": {"FAIL"}, "REQUEUE": {"REQUEUE"},
		"ALL":            {"BEGIN", "END", "FAIL", "REQUEUE", "STAGE_OUT", "INVALID_DEPENDENCY"},
		"INVALID_DEPEND": {"INVALID_DEPENDENCY"}, "STAGE_OUT": {"STAGE_OUT"}, "ARRAY_TASKS": {"ARRAY_TASKS"},
		"TIME_LIMIT": {"TIME=100%"}, "TIME_LIMIT_90": {"TIME=90%"}, "TIME_LIMIT_80": {"TIME=80%"}, "TIME_LIMIT_50": {"TIME=50%"},
	}
	profiles = map[string][]string{
		"NONE": {"NONE"}, "ENERGY": {"ENERGY"}, "TASK": {"TASK"}, "LUSTRE": {"LUSTRE"}, "NETWORK": {"NETWORK"},
		"ALL": {"ENERGY", "LUSTRE", "NETWORK", "TASK"},
	}
)

// flagsOf are the flags that a list of words means, in either case of letters.
func flagsOf(words string, table map[string][]string) []string {
	flags := []string{}
	for word := range strings.SplitSeq(words, ",") {
		flags = append(flags, table[strings.ToUpper(word)]...)
	}
	return flags
}

// signalBeforeEnd says "R:USR1@60".
func signalBeforeEnd(d description, value string) {
	rest, reservation := strings.CutPrefix(value, "R:")
	name, seconds, timed := strings.Cut(rest, "@")
	if !timed {
		seconds = "60" // as sbatch has it
	}
	d["kill_warning_signal"] = name
	d["kill_warning_delay"] = settable(integer(seconds))
	if reservation {
		d.list("kill_warning_flags", "RESERVATION_JOB")
	}
}

// mebibytes of a size such as "2G"; without a unit it is MiB. Rounded up.
func mebibytes(value string) int64 {
	digits := strings.TrimRight(value, "KMGTkmgt")
	n, _ := strconv.ParseInt(digits, 10, 64)
	switch strings.ToUpper(value[len(digits):]) {
	case "K":
		return ceil(n, 1<<10)
	case "G":
		return n << 10
	case "T":
		return n << 20
	}
	return n
}

// minutes of a time as Slurm writes it: "90", "90:00", "1:30:00", "1-12", "1-12:00", "1-12:00:00". Seconds are rounded up.
func minutes(value string) int64 {
	days, rest, dayed := strings.Cut(value, "-")
	if !dayed {
		rest = value
	}
	var parts [3]int64 // hours, minutes, seconds
	fields := strings.Split(rest, ":")
	first := 0
	if !dayed && len(fields) < 3 {
		first = 1
	}
	for i, field := range fields {
		parts[first+i] = integer(field)
	}
	total := parts[0]*60 + parts[1] + ceil(parts[2], 60)
	if dayed {
		total += 24 * 60 * integer(days)
	}
	return total
}
