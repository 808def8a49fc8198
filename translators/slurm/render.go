package slurm

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// argument is one option of sbatch's with its value; a flag has none.
type argument struct{ name, value string }

func (a argument) String() string {
	if a.value == "" {
		return "--" + a.name
	}
	return "--" + a.name + "=" + a.value
}

// arguments is the description as options of sbatch's.
func (j *Job) arguments() []argument {
	var list []argument
	add := func(name, value string) {
		if value != "" {
			list = append(list, argument{name, value})
		}
	}
	number := func(name string, value int64, unit string) {
		if value > 0 {
			add(name, strconv.FormatInt(value, 10)+unit)
		}
	}
	add("job-name", j.Name)
	add("comment", j.Comment)
	add("partition", j.Partition)
	add("account", j.Account)
	add("qos", j.QOS)
	add("chdir", j.WorkingDirectory)
	add("output", j.Stdout)
	add("error", j.Stderr)
	// A requeued job goes on in its logs, so that those who follow them lose nothing.
	add("open-mode", "append")
	number("nodes", int64(j.Nodes), "")
	number("ntasks", int64(j.Tasks), "")
	number("ntasks-per-node", int64(j.TasksPerNode), "")
	number("cpus-per-task", int64(j.CPUsPerTask), "")
	number("mem", j.MemoryPerNodeMiB, "M")
	number("time", j.TimeLimitMinutes, "")
	add("gres", j.Gres)
	add("array", j.Array)
	add("dependency", j.Dependency)
	// What becomes of a job whose dependency can never hold is decided by the gateway, whatever the site's default.
	add("kill-on-invalid-dep", "no")
	if j.Hold {
		list = append(list, argument{name: "hold"})
	}
	for _, name := range slices.Sorted(maps.Keys(j.Options)) {
		list = append(list, argument{name, j.Options[name]})
	}
	return list
}

// Directives are the description as #SBATCH lines.
func (j *Job) Directives() []string {
	var lines []string
	for _, a := range j.arguments() {
		if a.value != "" {
			a.value = quoteDirective(a.value)
		}
		lines = append(lines, "#SBATCH "+a.String())
	}
	return lines
}

// quoteDirective writes a value so that sbatch reads it back from an #SBATCH line, where blanks, quotes and # are special.
func quoteDirective(s string) string {
	if !strings.ContainsAny(s, " \t\"'\\#") {
		return s
	}
	return `"` + directiveEscapes.Replace(s) + `"`
}

var directiveEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// Arguments are the description as arguments of sbatch's. The script is read from standard input: Text.
func (j *Job) Arguments() []string {
	// Said outright, since SBATCH_EXPORT could say otherwise. NONE and NIL would start a login shell on the node.
	// And sbatch would take #PBS and #BSUB lines for options, wherever in a user's text they are.
	arguments := []string{"--parsable", "--export=ALL", "--ignore-pbs"}
	for _, a := range j.arguments() {
		arguments = append(arguments, a.String())
	}
	return arguments
}

// Text is the whole job script, as a person could hand it to sbatch.
func (j *Job) Text() string { return j.head() + j.Script + sameForAll }

// head is the first line and the #SBATCH lines.
func (j *Job) head() string { return "#!/bin/bash\n" + strings.Join(j.Directives(), "\n") + "\n\n" }
