package airflow

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators/airflow/jinja"
)

// skipCode is the exit code that BashOperator takes for skipped unless it is told otherwise, which is not serialized.
const skipCode = 99

// submits finds commands that hand work to a scheduler.
var submits = regexp.MustCompile(`(?:^|[\s;&|($` + "`" + `])(sbatch|salloc|qsub|bsub)(?:[\s;&|)]|$)`)

// airflowVariable finds what only a worker of Airflow's has in its environment.
var airflowVariable = regexp.MustCompile(`\$\{?(AIRFLOW_[A-Z_]+)`)

// bash translates a BashOperator.
func (x *translating) bash(instances []instance) {
	op := x.operator
	programs := make([]program, len(instances))
	for i, in := range instances {
		command, ok := x.command(in)
		if !ok {
			return
		}
		programs[i] = program{variables: []variable{{"command", []jinja.Text{command}}}, env: x.env(in)}
		if cwd, ok := x.textField(in, "cwd"); ok && cwd != "" {
			if i > 0 && x.task.WorkingDirectory != cwd {
				x.fault(op, "cwd", "differs from one instance to the other, and is one for all")
				return
			}
			x.task.WorkingDirectory = cwd
		}
	}
	x.shareEnv(programs)
	x.task.SkipExitCodes = x.skipCodes()
	then := "exec bash -c \"$command\"\n"
	if op.get("do_xcom_push") != false {
		leave := "leave() { printf 'return_value=%s\\n' \"$1\"; }\n"
		if op.flag("multiple_outputs") {
			leave = "leave() { printf '{\"return_value\":%s}\\n' \"$1\"; } # its output_processor makes a dict of it, taken for JSON's\n"
		}
		then = leave + capturing
	}
	x.task.Script = x.script(programs, then)
}

// command is the bash_command of an instance.
func (x *translating) command(in instance) (jinja.Text, bool) {
	op := x.operator
	source, isText := x.argument(in, "bash_command").(string)
	if isText && (strings.HasSuffix(source, ".sh") || strings.HasSuffix(source, ".bash")) {
		if !strings.ContainsAny(strings.TrimSpace(source), " \t\n") {
			x.fault(op, "bash_command", "%s is a file beside the DAG, which only Airflow can read: write the command itself, or end it with a space if it is "+
				"a program on the node", brief(source))
			return nil, false
		}
		x.noticeOnce("bash_command ends in .sh, so that Airflow takes all of it for the name of a template file, and fails; here it is a command")
	}
	if before := len(x.faults); true {
		value := x.rendered(in, "bash_command")
		if len(x.faults) > before {
			return nil, false
		}
		text, err := textOf(value)
		if err != nil || len(text) == 0 {
			x.fault(op, "bash_command", "is %s, and should be a command", shown(x.argument(in, "bash_command")))
			return nil, false
		}
		x.look(text)
		return text, true
	}
	return nil, false
}

// look gives notice of what a command does that could be better, or will not work.
func (x *translating) look(command jinja.Text) {
	for _, part := range command {
		if found := submits.FindStringSubmatch(part.Text); found != nil {
			x.noticeOnce("calls %s itself, so that nobody here follows, limits or cancels the job that comes of it: put what that job does "+
				"into the task (DagBridgeOperator has cpu, memory, gpus, time_limit and partition), and it is submitted by itself", found[1])
		}
		if found := airflowVariable.FindStringSubmatch(part.Text); found != nil {
			x.noticeOnce("uses %s, which is only in the environment of Airflow's workers: here it is empty", found[1])
		}
	}
}

// env is what an instance adds to the environment.
func (x *translating) env(in instance) []variable {
	op := x.operator
	before := len(x.faults)
	value := x.rendered(in, "env")
	switch value := value.(type) {
	case nil:
	case *jinja.Dict:
		var env []variable
		for _, name := range slices.Sorted(slices.Values(value.Keys())) {
			member, _ := value.Get(name)
			if truth, is := member.(bool); is { // as the shell's people write it
				member = strconv.FormatBool(truth)
			}
			text, err := textOf(member)
			if err != nil {
				x.fault(op, "env."+name, "%v", err)
			}
			env = append(env, variable{name, []jinja.Text{text}})
		}
		return env
	default:
		if len(x.faults) == before {
			x.fault(op, "env", "is %s, and should be names and values; Airflow 2 does not serialize other tasks' results in it", shown(x.argument(in, "env")))
		}
	}
	return nil
}

// identifier is a name that a shell can export.
var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// shareEnv puts into the task's own environment what is known now and the same for all instances, and leaves the rest to the script.
func (x *translating) shareEnv(programs []program) {
	if len(programs) == 1 && x.from == nil || len(programs) > 0 && !slices.ContainsFunc(programs[1:], func(p program) bool { return !sameEnv(programs[0].env, p.env) }) {
		x.task.Env = map[string]string{}
		for _, v := range programs[0].env {
			if text, known := v.words[0].String(); known {
				x.task.Env[v.name] = text
			}
		}
	}
	for i := range programs {
		programs[i].env = slices.DeleteFunc(slices.Clone(programs[i].env), func(v variable) bool { _, shared := x.task.Env[v.name]; return shared })
		for _, v := range programs[i].env {
			if !identifier.MatchString(v.name) {
				x.fault(x.operator, "env", "%s is no name that a shell can set", brief(v.name))
			}
		}
	}
}

func sameEnv(a, b []variable) bool {
	return slices.EqualFunc(a, b, func(a, b variable) bool {
		x, known := a.words[0].String()
		y, known2 := b.words[0].String()
		return a.name == b.name && known && known2 && x == y
	})
}

// skipCodes are the exit codes that mean skipped, and says what had to be guessed.
func (x *translating) skipCodes() []int32 {
	op := x.operator
	_, told := op.partial.Get("skip_on_exit_code")
	_, told2 := op.partial.Get("append_env")
	switch {
	case !op.isMapped():
		x.notice(op, "append_env, skip_on_exit_code and output_processor are not in a serialized DAG: the environment is PATH and env, 99 means skipped, and the "+
			"result is the last line as it is")
	case told2 && op.flag("append_env"):
		x.notice(op, "append_env: nothing of a worker's environment is there")
	}
	if told {
		var codes []int32
		values, isList := op.setting("skip_on_exit_code").(jinja.List)
		if !isList {
			values = jinja.List{op.setting("skip_on_exit_code")}
		}
		for _, value := range values {
			code, ok := value.(int64)
			if value == nil || code == 0 && ok {
				continue
			}
			if !ok || code < 1 || code > 255 {
				x.fault(op, "skip_on_exit_code", "has %s, which is no exit code", shown(value))
				continue
			}
			codes = append(codes, int32(code))
		}
		return codes
	}
	return []int32{skipCode}
}

// textField is a field that is known now; told: a fault.
func (x *translating) textField(in instance, name string) (string, bool) {
	before := len(x.faults)
	value := x.rendered(in, name)
	if len(x.faults) > before {
		return "", false
	}
	text, err := x.known(value)
	if err != nil {
		x.fault(x.operator, name, "%v", err)
	}
	return text, err == nil
}

// noticeOnce gives the same notice once for a task.
func (x *translating) noticeOnce(format string, args ...any) {
	before := x.notices[x.operator.id]
	x.notice(x.operator, format, args...)
	if all := x.notices[x.operator.id]; slices.Contains(before, all[len(all)-1]) {
		x.notices[x.operator.id] = before
	}
}

// empty translates an EmptyOperator.
func (x *translating) empty(instances []instance) {
	if x.isArray() {
		x.fault(x.operator, "", "is mapped, and has nothing to run")
		return
	}
	x.task.Empty = true
}

// withEnv merges what is known of an environment into the task's.
func withEnv(task *dagbridgev1.Task, env map[string]string) {
	if task.Env == nil {
		task.Env = map[string]string{}
	}
	maps.Copy(task.Env, env)
}
