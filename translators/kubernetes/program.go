package kubernetes

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/dagbridge/dagbridge/translators"
)

const (
	// folder is where the pod finds its files.
	folder = "/dagbridge"
	// The files in it, and the annotations that have them are named alike.
	inputsFile   = "inputs"
	scriptFile   = "script"
	prologueFile = "prologue"
	arrayFile    = "array"
	// tokenFile is the program's own token, beside them; Audience is what it is for. It is not whom a gateway lets in by their
	// accounts: this token opens less.
	tokenFile = "token"
	Audience  = "dagbridge-outputs"
	// workFolder is where a program runs that says nothing of it. It is not in the other one, in which nothing can be made.
	workFolder = "/dagbridge-work"
	// outputPath is Kubernetes' own place for a container's last words.
	outputPath = corev1.TerminationMessagePathDefault
	// anyImage stands for the image that nobody has named.
	anyImage = "IMAGE"
)

// program sets what the pod runs.
func (t *translation) program() {
	task := t.task
	t.main.Image = task.GetContainer().GetImage()
	t.main.WorkingDir = task.GetWorkingDirectory()
	t.files = map[string]string{inputsFile: t.inputs()}
	argv, known := t.argv()
	prologue := lines(t.site.Prologue, task.GetPrologue())
	if prologue != "" {
		t.files[prologueFile] = prologue
		t.notice("prologue: it is read by the image's sh")
	}
	switch {
	case prologue == "" && !t.isArray():
		if known {
			t.main.Command = escaped(argv)
		} else {
			t.main.Args = escaped(argv)
		}
	case !known:
		field := "prologue"
		if t.isArray() {
			field = "array"
		}
		t.fault(field, "it needs a command line, and of this image's own program there is none: say it in container.command, command or script")
	default:
		t.items()
		t.shellNames()
		t.main.Command = escaped(append([]string{"sh", "-c", t.shell(), "sh"}, argv...))
	}
	t.env()
}

// argv is the program's command line; known is false when it is the image's own and these are its arguments alone.
func (t *translation) argv() (argv []string, known bool) {
	c := t.task.GetContainer()
	switch {
	case t.task.GetScript() != nil:
		script, err := translators.NormalizeScript(t.task.GetScript().GetText())
		if err != nil {
			t.fault("script.text", "%v", err)
			return nil, true
		}
		t.files[scriptFile] = script
		if translators.Launches(t.task) { // without a shell, which an image need not have
			return []string{launcherProgram, "kfp-step", folder + "/" + scriptFile}, true
		}
		return append(translators.Interpreter(script), folder+"/"+scriptFile), true
	case t.task.GetCommand() != nil:
		return t.task.GetCommand().GetArgv(), true
	}
	return slices.Concat(c.GetCommand(), c.GetArgs()), len(c.GetCommand()) > 0
}

// shell is what sh does before it becomes the program. The function keeps the prologue from setting the program's arguments.
func (t *translation) shell() string {
	var b strings.Builder
	if t.files[arrayFile] != "" {
		fmt.Fprintf(&b, ". %s/%s; ", folder, arrayFile)
	}
	if t.files[prologueFile] != "" {
		fmt.Fprintf(&b, "prologue() { . %s/%s; }; prologue; ", folder, prologueFile)
	}
	return b.String() + `exec "$@"`
}

// items writes what each instance of an array adds: variables, and arguments after the command.
func (t *translation) items() {
	if !t.isArray() {
		return
	}
	if n := len(t.submission.Instances); n > MaxArraySize {
		t.fault("array.items", "%d instances are more than the %d that one array has here", n, MaxArraySize)
		return
	}
	var b strings.Builder
	b.WriteString("case $JOB_COMPLETION_INDEX in\n")
	for i, instance := range t.submission.Instances {
		if instance.Task != nil {
			t.fault("array", "tasks with programs of their own do not go in together here")
			return
		}
		fmt.Fprintf(&b, "%d) export DAGBRIDGE_JOB_ID=%s DAGBRIDGE_MAP_INDEX=%s", i, quote(instance.JobID), quote(mapIndex(instance.MapIndex, ",")))
		env := instance.Item.GetEnv()
		for _, name := range slices.Sorted(maps.Keys(env)) {
			if !shellName.MatchString(name) {
				t.fault(fmt.Sprintf("array.items[%d].env[%q]", instance.Position, name), "no sh hands on a variable of this name: use letters, digits and _")
			}
			fmt.Fprintf(&b, " %s=%s", name, quote(env[name]))
		}
		if argv := instance.Item.GetArgv(); len(argv) > 0 {
			b.WriteString("; set -- \"$@\"")
			for _, arg := range argv {
				b.WriteString(" " + quote(arg))
			}
		}
		b.WriteString(" ;;\n")
	}
	b.WriteString("esac\n")
	t.files[arrayFile] = b.String()
}

var shellName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// shellNames refuses variables that an sh between Kubernetes and the program would drop.
func (t *translation) shellNames() {
	for _, name := range slices.Sorted(maps.Keys(t.task.GetEnv())) {
		if !shellName.MatchString(name) {
			t.fault(fmt.Sprintf("env[%q]", name), "with a prologue or an array it is sh that starts the program, and hands on no variable of this name: use letters, digits and _")
		}
	}
}

// env is the program's environment, beside the image's own.
func (t *translation) env() {
	var own []corev1.EnvVar
	given := t.task.GetEnv()
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.fault(fmt.Sprintf("env[%q]", name), "Kubernetes takes printable ASCII alone for the name of a variable")
		}
		own = append(own, corev1.EnvVar{Name: name, Value: escape(given[name])})
	}
	var theirs []corev1.EnvVar
	t.decode("kubernetes.env", t.options.GetEnv(), &theirs)
	for i, v := range theirs {
		if _, ok := given[v.Name]; ok {
			t.fault(fmt.Sprintf("kubernetes.env[%d]", i), "env says %s already; use one of the two", v.Name)
		}
		if strings.HasPrefix(v.Name, "DAGBRIDGE_") {
			t.fault(fmt.Sprintf("kubernetes.env[%d]", i), "names beginning with DAGBRIDGE_ are set for the program, not by its author: choose another name")
		}
	}
	own = append(own, theirs...)
	job, key := t.submission.Job, t.submission.Job.GetKey()
	for _, v := range [][2]string{
		{"DAGBRIDGE_INPUTS", folder + "/" + inputsFile}, {"DAGBRIDGE_JOB_ID", job.GetId()}, {"DAGBRIDGE_MAP_INDEX", mapIndex(key.GetMapIndex(), ",")},
		{"DAGBRIDGE_OUTPUT", outputPath}, {"DAGBRIDGE_RUN", key.GetRun()}, {"DAGBRIDGE_TASK", key.GetTask()},
		{"DAGBRIDGE_TRY", strconv.Itoa(int(job.GetTryNumber()))},
	} {
		own = append(own, corev1.EnvVar{Name: v[0], Value: escape(v[1])})
	}
	if t.site.URL != "" {
		own = append(own, corev1.EnvVar{Name: "DAGBRIDGE_TOKEN_FILE", Value: folder + "/" + tokenFile}, corev1.EnvVar{Name: "DAGBRIDGE_URL", Value: escape(t.site.URL)})
	}
	if t.nodes() > 1 && t.options.GetTemplate() == nil {
		// By these a program finds its peers; which of them it is, is in JOB_COMPLETION_INDEX.
		own = append(own, corev1.EnvVar{Name: "DAGBRIDGE_NODES", Value: strconv.Itoa(t.nodes())}, corev1.EnvVar{Name: "DAGBRIDGE_LEADER", Value: leader(t.workload.Name)})
	}
	t.main.Env = own
}

// inputs is the JSON object that the program finds in DAGBRIDGE_INPUTS, each value as its upstream wrote it.
func (t *translation) inputs() string {
	var object strings.Builder
	object.WriteByte('{')
	for i, input := range t.submission.Inputs {
		if input.JSON == "" {
			t.fault("upstream", "the outputs of %q are not known yet: submit the task when its upstreams have ended", input.Task)
		}
		if i > 0 {
			object.WriteByte(',')
		}
		name, _ := json.Marshal(input.Task) // a string always has a JSON form
		fmt.Fprintf(&object, "%s:%s", name, input.JSON)
	}
	object.WriteByte('}')
	return object.String()
}

func lines(parts ...string) string {
	var all strings.Builder
	for _, part := range parts {
		if part != "" {
			all.WriteString(strings.TrimSuffix(part, "\n") + "\n")
		}
	}
	return all.String()
}

// quote is one word of a shell, byte for byte.
func quote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// escape writes a text so that Kubernetes, which expands "$(NAME)" and takes "$$" for "$", hands it on as it is.
func escape(s string) string {
	if !strings.Contains(s, "$$") && !strings.Contains(s, "$(") {
		return s
	}
	var b strings.Builder
	for i := range len(s) {
		b.WriteByte(s[i])
		if s[i] == '$' && i+1 < len(s) && (s[i+1] == '$' || s[i+1] == '(') {
			b.WriteByte('$')
		}
	}
	return b.String()
}

func escaped(words []string) []string {
	all := make([]string, len(words))
	for i, word := range words {
		all[i] = escape(word)
	}
	return all
}
