package slurm

import (
	"cmp"
	_ "embed" // the wrapper's fixed text
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators"
)

//go:embed wrapper.sh
var wrapperText string

//go:embed outputs.awk
var outputsAwk string

// Exit codes of the wrapper's own. A program may use them too: what they mean here is said by the exit marker, and by its
// absence.
const (
	// ExitDuplicate: the try had been started by another native job; nothing was run and no exit marker written.
	ExitDuplicate = 120
	// ExitOutputsRefused: the program succeeded and left no valid outputs; the exit marker says why.
	ExitOutputsRefused = 121
	// ExitNoFolder: the job's folder cannot be written to; nothing was run.
	ExitNoFolder = 122
	// ExitPremature: an upstream that must have succeeded has not; nothing was run and no marker written.
	ExitPremature = 123
	// ExitCancelled: the mark of a cancel was there; nothing was run and no marker written.
	ExitCancelled = 124
)

// common begins the part of the script that does not depend on the task.
const common = "# ---- What follows is the same for every job. It needs bash 4.2, coreutils and awk."

var sameForAll = "\n" + common + "\noutputs_awk=" + Quote(outputsAwk) + "\n" + wrapperText

// wrapper writes the job script: what this job is, as variables and functions, then the text that is the same for all.
func (t *translation) wrapper(b *strings.Builder) {
	s := t.submission
	fmt.Fprintf(b, "# dagbridge job %s, attempt %s: %s\n", s.Job.GetId(), attempt(s.Token), oneLine(s.Job.GetKey().GetTask()))
	for _, v := range [][2]string{
		{"dir", Dir(t.site, s.Job.GetId())},
		{"attempt", attempt(s.Token)},
		{"workdir", cmp.Or(s.Task.GetWorkingDirectory(), Dir(t.site, s.Job.GetId()))},
	} {
		fmt.Fprintf(b, "%s=%s\n", v[0], Quote(v[1]))
	}
	guard := t.files(s.Guard, succeededName, "")
	fmt.Fprintf(b, "guard=(%s)\n", strings.TrimPrefix(continued(guard), " "))
	if _, once := s.Task.GetSlurm().GetOptions()["no-requeue"]; once {
		b.WriteString("once=1\n")
	}
	if t.warning != nil {
		fmt.Fprintf(b, "warn_signal=%s warn_after=%d\n", t.warning.signal, t.warning.after)
	}
	t.inputs(b)
	if t.isFolded() {
		t.programs(b)
		return
	}
	t.own(b, s.Job.GetId(), s.Job.GetKey(), s.Job.GetTryNumber())
}

// own writes what is a job's own: who it is, and its program.
func (t *translation) own(b *strings.Builder, id string, key *dagbridgev1.TaskKey, try int32) {
	b.WriteString("\n# Which job this is.\n")
	for _, v := range append(instance(id, key.GetMapIndex()),
		"DAGBRIDGE_TASK="+key.GetTask(), "DAGBRIDGE_RUN="+key.GetRun(), "DAGBRIDGE_TRY="+strconv.Itoa(int(try))) {
		fmt.Fprintf(b, "export %s\n", Quote(v))
	}
	if t.bySrun() {
		b.WriteString("by_srun=1\n")
	}
	t.payload(b)
	t.program(b)
}

// oneLine is a text that cannot leave a comment.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, s)
}

// inputs writes the shell function that prints the JSON object for DAGBRIDGE_INPUTS.
func (t *translation) inputs(b *strings.Builder) {
	b.WriteString("\n# inputs is what the upstream tasks have left.\n")
	if len(t.submission.Inputs) == 0 {
		b.WriteString("inputs() { printf '{}'; }\n")
		return
	}
	b.WriteString("inputs() {\n")
	before := "{"
	for _, input := range t.submission.Inputs {
		before += jsonString(input.Task) + ":"
		if input.JSON != "" {
			fmt.Fprintf(b, "  printf %%s %s\n", Quote(before+input.JSON))
			before = ","
			continue
		}
		function := "outputs_of"
		if input.Mapped {
			function = "list_of"
		}
		fmt.Fprintf(b, "  printf %%s %s\n  %s%s\n", Quote(before), function, continued(t.files(input.Jobs, outputsName, outputsExtension)))
		before = ","
	}
	b.WriteString("  printf '}'\n}\n")
}

// files are the words of a command that name one file of each of some jobs. Elements of an array that follow each other are one
// word, which bash expands: those of ten thousand would be a megabyte.
func (t *translation) files(jobs []translators.InputJob, name, extension string) []string {
	var words []string
	for i := 0; i < len(jobs); {
		first, last := jobs[i], jobs[i]
		for i++; i < len(jobs) && first.Position >= 0 && jobs[i].JobID == first.JobID && jobs[i].Position == last.Position+1; i++ {
			last = jobs[i]
		}
		if first == last {
			words = append(words, Quote(jobPath(t.site, t.site.User, first.JobID, name, first.Position, extension)))
			continue
		}
		words = append(words, fmt.Sprintf("%s{%d..%d}%s", Quote(Dir(t.site, first.JobID)+"/"+name+"_"), first.Position, last.Position, extension))
	}
	return words
}

func jsonString(s string) string {
	text, _ := json.Marshal(s) // no string fails
	return string(text)
}

// payload writes the shell function that makes the file of the user's script.
func (t *translation) payload(b *strings.Builder) {
	b.WriteString("\n# payload makes the file of the user's script, if there is one.\n")
	if t.script == nil {
		b.WriteString("payload() { :; }\n")
		return
	}
	fmt.Fprintf(b, "payload() {\nprintf %%s %s >%s\n}\n", Quote(t.script.text), scriptFile)
}

// program writes the shell function that becomes the program. Nothing of the task's env is ever assigned in a shell: env hands
// names and values over byte for byte, whatever they mean to bash, to the program or to the shell of its prologue.
func (t *translation) program(b *strings.Builder) {
	s := t.submission
	b.WriteString("\n# program becomes the program, under a shell that has read the prologue where there is one.\nprogram() {\n")
	fmt.Fprintf(b, "  set --%s\n", continued(append(t.prologue(), t.argv()...)))
	t.items(b)
	fmt.Fprintf(b, "  exec /usr/bin/env --%s\n}\n", continued(append(t.environment(s.Task), `"$@"`)))
}

// prologue is the shell that reads the profile and the prologues, in the task's environment, and then becomes the words after
// it; nothing where there is nothing to read. The function keeps the prologues from setting the shell's own arguments.
func (t *translation) prologue() []string {
	var lines strings.Builder
	if t.site.LoginShell {
		lines.WriteString(loginShell)
	}
	for _, prologue := range []string{t.site.Prologue, t.submission.Task.GetPrologue()} {
		if prologue != "" {
			fmt.Fprintf(&lines, "  eval %s\n", Quote(prologue))
		}
	}
	if lines.Len() == 0 {
		return nil
	}
	return quoted([]string{"bash", "-c", "prologue() {\n" + lines.String() + "}\nprologue\nexec -- \"$@\"", "bash"})
}

// loginShell reads what a login shell reads.
const loginShell = `  [ ! -r /etc/profile ] || . /etc/profile
  for profile in ~/.bash_profile ~/.bash_login ~/.profile; do
    if [ -r "$profile" ]; then . "$profile"; break; fi
  done
`

// argv is the task's command line, quoted, with what starts it before it.
func (t *translation) argv() []string {
	task := t.submission.Task
	argv := quoted(task.GetCommand().GetArgv())
	if t.script != nil {
		argv = append(quoted(t.script.interpreter), scriptFile)
	}
	if t.isContained() {
		return t.contained(argv)
	}
	if len(argv) > 0 && strings.Contains(argv[0], "=") && t.script == nil {
		// env would take it for a variable.
		argv = append([]string{"bash", "-c", `'exec "$@"'`, "bash"}, argv...)
	}
	return t.perTaskOr(argv)
}

// perTaskOr starts a command line once for each task, where that is asked for.
func (t *translation) perTaskOr(argv []string) []string {
	if !t.perTask() {
		return argv
	}
	return append(append(t.srun(), "--"), argv...)
}

// srun starts what comes after it once for each task.
func (t *translation) srun() []string {
	srun := []string{"srun", "--export=ALL"}
	if cpus := t.job.CPUsPerTask; cpus > 0 {
		// Since 22.05 srun no longer takes it from the job.
		srun = append(srun, "--cpus-per-task="+strconv.Itoa(cpus))
	}
	return srun
}

// bySrun says whether it is srun that starts the program.
func (t *translation) bySrun() bool {
	return t.perTask() || t.isContained() && (t.runtime() == oci || t.runtime() == pyxis)
}

func (t *translation) perTask() bool {
	return t.submission.Task.GetLaunch() == dagbridgev1.Task_PER_TASK
}

// items writes what each instance of an array adds: env names before the command, which env lets win over the task's when it
// comes to them last, and arguments after it.
func (t *translation) items(b *strings.Builder) {
	if !t.isArray() {
		return
	}
	b.WriteString("  case $SLURM_ARRAY_TASK_ID in\n")
	for _, i := range t.submission.Instances {
		assignments := t.insideEnv(append(instance(i.JobID, i.MapIndex), env(i.Item.GetEnv())...))
		fmt.Fprintf(b, "  %d) set -- %s \"$@\"", i.Position, strings.Join(quoted(assignments), " "))
		for _, arg := range i.Item.GetArgv() {
			b.WriteString(" " + Quote(arg))
		}
		b.WriteString(" ;;\n")
	}
	b.WriteString("  esac\n")
}

// instance is what tells a job, or an array's instance, apart.
func instance(id string, mapIndex []int32) []string {
	index := make([]string, len(mapIndex))
	for i, n := range mapIndex {
		index[i] = strconv.Itoa(int(n))
	}
	return []string{"DAGBRIDGE_JOB_ID=" + id, "DAGBRIDGE_MAP_INDEX=" + strings.Join(index, ",")}
}

// env is a map as assignments, in order.
func env(m map[string]string) []string {
	assignments := make([]string, 0, len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		assignments = append(assignments, name+"="+m[name])
	}
	return assignments
}

// scriptFile is the path of the user's script, in shell: it depends on the array's index.
const scriptFile = `"$dagbridge_base.script"`

// quoted quotes each word.
func quoted(words []string) []string {
	result := make([]string, len(words))
	for i, word := range words {
		result[i] = Quote(word)
	}
	return result
}

// continued is the rest of a command: short ones on the line, long ones a word a line.
func continued(words []string) string {
	const width = 100
	if line := strings.Join(words, " "); len(line) <= width && !strings.Contains(line, "\n") {
		return " " + line
	}
	return " \\\n    " + strings.Join(words, " \\\n    ")
}
