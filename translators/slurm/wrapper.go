package slurm

import (
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
)

// wrapper writes the job script: what this job is, as variables and functions, then the text that is the same for all.
func (t *translation) wrapper(b *strings.Builder) {
	s := t.submission
	fmt.Fprintf(b, "# dagbridge job %s, attempt %s: %s\n", s.Job.GetId(), attempt(s.Token), oneLine(s.Job.GetKey().GetTask()))
	for _, v := range [][2]string{
		{"dir", Dir(t.site, s.Job.GetId())},
		{"attempt", attempt(s.Token)},
		{"workdir", workdir(t.site, s)},
		{"outputs_awk", outputsAwk},
	} {
		fmt.Fprintf(b, "%s=%s\n", v[0], Quote(v[1]))
	}
	t.inputs(b)
	t.payload(b)
	t.program(b)
	b.WriteString(wrapperText)
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

func workdir(site Site, s translators.Submission) string {
	if dir := s.Task.GetWorkingDirectory(); dir != "" {
		return dir
	}
	return Dir(site, s.Job.GetId())
}

// inputs writes the shell function that prints the JSON object for DAGBRIDGE_INPUTS.
func (t *translation) inputs(b *strings.Builder) {
	b.WriteString("\n# inputs is what the upstream tasks have left.\ninputs() {\n")
	before := "{"
	for _, input := range t.submission.Inputs {
		before += jsonString(input.Task) + ":"
		if input.JSON != "" {
			fmt.Fprintf(b, "  printf %%s %s\n", Quote(before+input.JSON))
			before = ","
			continue
		}
		files := make([]string, len(input.Jobs))
		for i, job := range input.Jobs {
			files[i] = Quote(OutputsPath(t.site, t.site.User, job.JobID, job.Position))
		}
		function := "outputs_of"
		if input.Mapped {
			function = "list_of"
		}
		fmt.Fprintf(b, "  printf %%s %s\n  %s%s\n", Quote(before), function, continued(files))
		before = ","
	}
	if before == "{" {
		b.WriteString("  printf '{'\n")
	}
	b.WriteString("  printf '}'\n}\n")
}

func jsonString(s string) string {
	text, _ := json.Marshal(s) // no string fails
	return string(text)
}

// payload writes the shell function that prints the user's script.
func (t *translation) payload(b *strings.Builder) {
	text := ":"
	if s := t.submission.Task.GetScript(); s != nil {
		text = "printf %s " + Quote(t.userScript().text)
	}
	fmt.Fprintf(b, "\n# payload is the user's script, if there is one.\npayload() {\n%s\n}\n", text)
}

// program writes the shell function that becomes the program, in a shell of its own. Nothing of the task's env is ever a
// variable of a shell's: env hands names and values to the program byte for byte, whatever they mean to bash.
func (t *translation) program(b *strings.Builder) {
	s := t.submission
	b.WriteString("\n# program becomes the program: prologue, arguments, environment.\nprogram() {\n")
	if t.site.LoginShell {
		b.WriteString(loginShell)
	}
	for _, prologue := range []string{t.site.Prologue, s.Task.GetPrologue()} {
		if prologue != "" {
			fmt.Fprintf(b, "  eval %s\n", Quote(prologue))
		}
	}
	fmt.Fprintf(b, "  set --%s\n", continued(quoted(t.argv())))
	t.items(b)
	assignments := append(t.identity(s.Job.GetId(), s.Job.GetKey().GetMapIndex()), env(s.Task.GetEnv())...)
	fmt.Fprintf(b, "  exec /usr/bin/env%s \"$@\"\n}\n", continued(quoted(assignments)))
}

// loginShell reads what a login shell reads.
const loginShell = `  [ ! -r /etc/profile ] || . /etc/profile
  for profile in ~/.bash_profile ~/.bash_login ~/.profile; do
    if [ -r "$profile" ]; then . "$profile"; break; fi
  done
`

// argv is the task's command line, with what starts it before it.
func (t *translation) argv() []string {
	task := t.submission.Task
	argv := slices.Clone(task.GetCommand().GetArgv())
	if task.GetScript() != nil {
		argv = append(t.userScript().interpreter, scriptFile)
	}
	if len(argv) > 0 && strings.Contains(argv[0], "=") {
		// env would take it for a variable.
		argv = append([]string{"bash", "-c", `exec "$@"`, "bash"}, argv...)
	}
	if t.perTask() {
		srun := []string{"srun", "--export=ALL"}
		if cpus := t.job.CPUsPerTask; cpus > 0 {
			// Since 22.05 srun no longer takes it from the job.
			srun = append(srun, "--cpus-per-task="+strconv.Itoa(cpus))
		}
		argv = append(append(srun, "--"), argv...)
	}
	return argv
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
	items := t.submission.Task.GetArray().GetItems()
	b.WriteString("  case $SLURM_ARRAY_TASK_ID in\n")
	for _, instance := range t.submission.Instances {
		item := items[instance.Position]
		assignments := append(t.identity(instance.JobID, []int32{int32(instance.Position)}), env(item.GetEnv())...)
		fmt.Fprintf(b, "  %d) set -- %s \"$@\"", instance.Position, strings.Join(quoted(assignments), " "))
		for _, arg := range item.GetArgv() {
			b.WriteString(" " + Quote(arg))
		}
		b.WriteString(" ;;\n")
	}
	b.WriteString("  esac\n")
}

// identity is what tells the program which job it is.
func (t *translation) identity(id string, mapIndex []int32) []string {
	key := t.submission.Job.GetKey()
	index := make([]string, len(mapIndex))
	for i, n := range mapIndex {
		index[i] = strconv.Itoa(int(n))
	}
	return []string{
		"DAGBRIDGE_JOB_ID=" + id,
		"DAGBRIDGE_TASK=" + key.GetTask(),
		"DAGBRIDGE_RUN=" + key.GetRun(),
		"DAGBRIDGE_MAP_INDEX=" + strings.Join(index, ","),
		"DAGBRIDGE_TRY=" + strconv.Itoa(int(t.submission.Job.GetTryNumber())),
	}
}

// env is a map as assignments, in order.
func env(m map[string]string) []string {
	assignments := make([]string, 0, len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		assignments = append(assignments, name+"="+m[name])
	}
	return assignments
}

// scriptFile is a stand-in for the path of the user's script, which depends on the array's index.
const scriptFile = "\x00script"

// quoted quotes each word.
func quoted(words []string) []string {
	result := make([]string, len(words))
	for i, word := range words {
		if word == scriptFile {
			result[i] = `"$dagbridge_base.script"`
		} else {
			result[i] = Quote(word)
		}
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
