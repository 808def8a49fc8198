package slurm

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/dagbridge/dagbridge/translators"
)

// Versions of slurmrestd's interface in which a job can be described, newest first. v0.0.39 is left out: every release that
// has it has a neighbour of it too.
var Versions = []string{"v0.0.45", "v0.0.44", "v0.0.43", "v0.0.42", "v0.0.41", "v0.0.40", plainVersion}

// plainVersion is the last one that takes a job as sbatch's options, word for word. The later ones take it in a structure of
// their own, which has hardly changed since.
const plainVersion = "v0.0.38"

// missing are options of which a version of slurmrestd has no field, or takes the field and ignores it.
var missing = map[string][]string{
	"v0.0.40": {"distribution"},
}

// REST is the body of slurmrestd's POST /slurm/VERSION/job/submit, of one of Versions. It has faults when that version
// cannot say what the task asks for: slurmrestd would ignore it, and run another job.
func (j *Job) REST(version string) (map[string]any, translators.Faults) {
	var faults translators.Faults
	if !slices.Contains(Versions, version) {
		faults.Add("slurm", "slurmrestd %s is not known here; known are %v", version, Versions)
		return nil, faults
	}
	for _, name := range missing[version] {
		if _, asked := j.Options[name]; asked {
			faults.Add(fmt.Sprintf("slurm.options[%q]", name), "slurmrestd %s cannot carry it", version)
		}
	}
	switch {
	case len(faults) > 0:
		return nil, faults
	case version == plainVersion:
		return map[string]any{"script": j.Text(), "job": map[string]any(j.plain())}, nil
	default:
		return map[string]any{"job": map[string]any(j.structured())}, nil
	}
}

// description is slurmrestd's job description, by the names of its fields.
type description map[string]any

// text sets a field, unless there is nothing to say.
func (d description) text(field, value string) {
	if value != "" {
		d[field] = value
	}
}

// whole sets a field, unless there is nothing to say.
func (d description) whole(field string, value int64) {
	if value > 0 {
		d[field] = value
	}
}

// words are what both shapes say alike.
func (j *Job) words() description {
	d := description{}
	d.text("name", j.Name)
	d.text("comment", j.Comment)
	d.text("partition", j.Partition)
	d.text("account", j.Account)
	d.text("qos", j.QOS)
	d.text("current_working_directory", j.WorkingDirectory)
	d.text("standard_output", j.Stdout)
	d.text("standard_error", j.Stderr)
	d.whole("tasks", int64(j.Tasks))
	d.whole("tasks_per_node", int64(j.TasksPerNode))
	d.whole("cpus_per_task", int64(j.CPUsPerTask))
	d.text("array", j.Array)
	d.text("dependency", j.Dependency)
	if j.Hold {
		// Only when true: false is a release, which gives the job the highest priority there is.
		d["hold"] = true
	}
	return d
}

// plain is the description that v0.0.38 takes.
func (j *Job) plain() description {
	d := j.words()
	d["open_mode"] = "append"
	// A number, not the documented pair of numbers: slurmrestd 22.05 takes a pair without a word and forgets it.
	d.whole("nodes", int64(j.Nodes))
	d.whole("memory_per_node", j.MemoryPerNodeMiB)
	d.whole("time_limit", j.TimeLimitMinutes)
	d.text("gres", j.Gres)
	d["kill_on_invalid_dependency"] = false
	d["environment"] = maps.Clone(j.Environment)
	for name, value := range j.Options {
		o := options[name]
		value = o.said(value)
		switch o.kind {
		case flag:
			d[o.field] = true
		case whole:
			d[o.field] = integer(value)
		default:
			d[o.field] = value
		}
	}
	return d
}

// said is an option's value, or what it means without one.
func (o option) said(value string) string {
	if value == "" {
		return o.bare
	}
	return value
}

// integer is a number that Translate has checked.
func integer(value string) int64 {
	n, _ := strconv.ParseInt(value, 10, 32)
	return n
}
