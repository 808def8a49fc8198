// Package slurm says things the way Slurm says them: a Submission as a batch job, edges as a dependency expression,
// Slurm's words and numbers as ours.
//
// A Job is the one description of a batch job. It is rendered three ways, and every option it holds can be said in each of
// them: #SBATCH lines for people (Text), sbatch's command line (Arguments), and the job description of slurmrestd's versions
// (REST). Over slurmrestd the #SBATCH lines count for nothing, and on the command line the arguments beat them: the
// description decides, the lines show it.
//
// The job's script is a wrapper around the program. On the compute node it makes sure that one try runs once (the start
// marker), gives the program its inputs and its environment, publishes its outputs, and records its end (the exit marker).
// Where these files are is said by Dir and its kin. The user's program is a payload in it, quoted byte for byte, so that
// no text of the user's is ever read as Slurm's or the wrapper's.
//
// A container is started by the wrapper around the program, and holds the program alone (container.go).
//
// The package is pure, as all translators are: no context, network, files, clock, randomness or logging. It does not know
// how Slurm is reached.
package slurm

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/dagbridge/dagbridge/translators"
)

// Limits of Slurm's own, measured on 22.05.
const (
	maxScriptBytes  = 4<<20 - 1
	maxCommentBytes = 1024
	// maxNameBytes is far below Slurm's limit: the name is read by people, in squeue.
	maxNameBytes = 200
	// DefaultMaxArraySize is Slurm's own default of MaxArraySize.
	DefaultMaxArraySize = 1001
)

// searchPath is the whole environment that a job is submitted with. What a site needs beyond it comes from the prologue.
const searchPath = "/usr/local/bin:/usr/bin:/bin"

// Site is what the translator must know of a cluster.
type Site struct {
	// WorkDir is an absolute folder, seen by the gateway and the nodes.
	WorkDir string
	// User the jobs run as; a part of every path.
	User string
	// Prologue is shell lines before every program.
	Prologue string
	// LoginShell runs prologue and program from a login shell.
	LoginShell bool
	// Partition, Account and QOS of tasks that name none.
	Partition, Account, QOS string
	// Container is the runtime of tasks that name none, one of Runtimes; "": there is none.
	Container string
	// Images are what stands in for container images, by name: the folder of an environment, whose bin goes before PATH.
	Images map[string]string
	// Launcher is the path of this program on the nodes, for steps of pipelines; "": it is not there. Pipelines is the folder that
	// these share.
	Launcher, Pipelines string
	// MaxArraySize is Slurm's setting of that name, the greatest array index plus one; 0: Slurm's default.
	MaxArraySize int
}

// Job is a batch job in Slurm's terms. A zero number and an empty string say nothing to Slurm: its own default holds.
type Job struct {
	Name    string
	Comment string

	Partition string
	Account   string
	QOS       string

	// WorkingDirectory of the batch script, the job's own folder. The program's is the wrapper's business.
	WorkingDirectory string
	// Stdout and Stderr are Slurm file name patterns.
	Stdout string
	Stderr string

	Nodes            int
	Tasks            int
	TasksPerNode     int
	CPUsPerTask      int
	MemoryPerNodeMiB int64
	TimeLimitMinutes int64
	// Gres is a list of generic resources per node: "gpu:a100:2,gpu:1".
	Gres string

	// Array indices as Slurm writes them: "0-3,7%2".
	Array string
	// Dependency is an Expression.
	Dependency string
	Hold       bool

	// Environment that the job is submitted with: a PATH, nothing else. On the command line it is sbatch's own environment
	// that travels (--export=ALL), so sbatch must be started with exactly this one, beside SLURM_CONF.
	Environment map[string]string
	// Options by sbatch's long names, beyond those that have a field here; a flag has the value "".
	Options map[string]string

	// Script is what the wrapper says of this job and its program: the text without the first line, the #SBATCH lines and what
	// is the same for all jobs.
	Script string
	// Files are to be written into the job's folder, as they are, before it is submitted; by their names.
	Files map[string]string
	// Notices are sentences on what was changed or means nothing here.
	Notices []string
}

// Translate makes a batch job of a submission. All that is wrong with it is told at once, by the task's fields.
func Translate(site Site, s translators.Submission) (*Job, translators.Faults) {
	t := &translation{site: site, submission: s, job: &Job{}}
	t.identify()
	t.foreign()
	t.resources()
	t.options()
	t.array()
	if !t.isFolded() {
		t.script = t.userScript()
		t.container()
	}
	t.job.Dependency = Expression(s.Depends)
	t.job.Hold = s.Hold
	t.job.Environment = map[string]string{"PATH": searchPath}
	var script strings.Builder
	t.wrapper(&script)
	t.job.Script = script.String()
	if size := len(t.job.head()) + len(t.job.Script) + len(sameForAll); size > maxScriptBytes {
		field := "command"
		if s.Task.GetScript() != nil {
			field = "script.text"
		}
		t.fault(field, "the job script has %d bytes with the wrapper around the program; Slurm takes %d at most. "+
			"Put data into files and hand over their names.", size, maxScriptBytes)
	}
	if len(t.faults) > 0 {
		return nil, t.faults
	}
	return t.job, nil
}

// translation is a Translate in progress.
type translation struct {
	site       Site
	submission translators.Submission
	job        *Job
	// script is the user's; nil without one.
	script *userScript
	// warning is for the program before its time runs out; nil without one.
	warning *warning
	faults  translators.Faults
}

func (t *translation) fault(field, format string, args ...any) { t.faults.Add(field, format, args...) }

func (t *translation) notice(format string, args ...any) {
	t.job.Notices = append(t.job.Notices, fmt.Sprintf(format, args...))
}

// identify sets what the job is recognised and found by.
func (t *translation) identify() {
	token, id, key := t.submission.Token, t.submission.Job.GetId(), t.submission.Job.GetKey()
	j, native := t.job, t.submission.Task.GetSlurm()
	j.Name = Name(key.GetTask(), token)
	if isSingleton(t.submission.Task) {
		j.Name = SharedName(key.GetTask())
	}
	j.Comment = Comment(key, token)
	j.WorkingDirectory = Dir(t.site, id)
	j.Stdout = logPattern(t.site, id, token, "out", t.isArray())
	j.Stderr = logPattern(t.site, id, token, "err", t.isArray())
	j.Partition = cmp.Or(native.GetPartition(), t.site.Partition)
	j.Account = cmp.Or(native.GetAccount(), t.site.Account)
	j.QOS = cmp.Or(native.GetQos(), t.site.QOS)
}

// isArray says whether the job is a native array.
func (t *translation) isArray() bool { return len(t.submission.Instances) > 0 }

// array sets the indices of a native array.
func (t *translation) array() {
	instances := t.submission.Instances
	if len(instances) == 0 {
		return
	}
	size := cmp.Or(t.site.MaxArraySize, DefaultMaxArraySize)
	positions := make([]int, len(instances))
	for i, instance := range instances {
		positions[i] = instance.Position
	}
	if last := positions[len(positions)-1]; last >= size {
		t.fault("array.items", "item %d is beyond the array indices that the cluster takes, 0 to %d (MaxArraySize=%d)",
			last, size-1, size)
	}
	t.job.Array = FormatPositions(positions)
	if limit := t.submission.MaxParallel; limit > 0 {
		t.job.Array += "%" + strconv.Itoa(limit)
	}
}
