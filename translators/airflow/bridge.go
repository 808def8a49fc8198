package airflow

import (
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/proto/jsoncodec"
	"github.com/dagbridge/dagbridge/translators"
	"github.com/dagbridge/dagbridge/translators/airflow/jinja"
)

// bridgeFields are all that the provider's operators say of a task; all of them are templated, so that all are serialized.
var bridgeFields = []string{
	"command", "script", "script_file", "container", "env", "cluster", "fallbacks", "cpu", "memory", "gpus", "nodes", "tasks_per_node", "time_limit",
	"launch", "partition", "account", "qos", "slurm", "kubernetes", "prologue", "working_directory", "retry", "at_most_once", "array", "labels",
	"skip_on_exit_code",
}

// wireNames are fields that a task has under a name of its own, word for word.
var wireNames = map[string]string{
	"cluster": "cluster", "fallbacks": "fallbacks", "prologue": "prologue", "working_directory": "workingDirectory", "launch": "launch",
	"retry": "retry", "at_most_once": "atMostOnce", "kubernetes": "kubernetes",
}

// bridge translates a DagBridgeOperator, or one derived from it.
func (x *translating) bridge(instances []instance) {
	if x.operator.kind != bridgeOperator {
		x.notice(x.operator, "%s is taken for the DagBridgeOperator that it is derived from: what its own Python code does is not here", x.operator.kind)
	}
	programs := make([]program, len(instances))
	kind := ""
	for i, in := range instances {
		x.common(in, i)
		one, p := x.bridgeProgram(in)
		if programs[i] = p; i > 0 && one != kind {
			x.fault(x.operator, "", "has a command in one instance and a script in another")
		}
		kind = one
	}
	x.shareEnv(programs)
	first := programs[0]
	direct := !x.isArray() && allKnown(first.variables...) && len(first.env) == 0
	switch {
	case kind == "":
		if x.isArray() && !x.sameEnvEverywhere(programs) {
			x.fault(x.operator, "container", "runs by itself, so that its instances cannot differ: give it a command or a script beside the container")
		}
	case direct && kind == "command":
		x.task.Command = &dagbridgev1.Command{}
		for _, word := range first.variables[0].words {
			text, _ := word.String()
			x.task.Command.Argv = append(x.task.Command.Argv, text)
		}
	case direct:
		text, _ := first.variables[0].words[0].String()
		x.task.Script = &dagbridgev1.Script{Text: text}
	case kind == "command":
		x.task.Script = x.script(programs, "exec \"$@\"\n")
	default:
		x.task.Script = x.script(programs, "file=$(mktemp) && printf %s \"$text\" >\"$file\" && exec "+x.interpreter(first.variables[0].words[0])+" \"$file\"\n")
	}
}

func (x *translating) sameEnvEverywhere(programs []program) bool {
	return !slices.ContainsFunc(programs, func(p program) bool { return len(p.env) > 0 })
}

// interpreter is what runs a script that is put together on the node.
func (x *translating) interpreter(script jinja.Text) string {
	text := ""
	if len(script) > 0 {
		text = script[0].Text
	}
	normal, err := translators.NormalizeScript(text + "\n:")
	if err != nil {
		x.fault(x.operator, "script", "%v", err)
		return ""
	}
	words := translators.Interpreter(normal)
	for i, word := range words {
		words[i] = quote(word)
	}
	return strings.Join(words, " ")
}

// bridgeProgram is what an instance runs: a "command", a "script", or, with "", what its container runs by itself.
func (x *translating) bridgeProgram(in instance) (kind string, p program) {
	op := x.operator
	p.env = x.env(in)
	if !isNothing(x.argument(in, "script_file")) {
		x.fault(op, "script_file", "is a file beside the DAG, which only Airflow can read: use script")
		return "", p
	}
	hasCommand, hasScript := x.argument(in, "command") != nil, x.argument(in, "script") != nil
	before := len(x.faults)
	switch {
	case hasCommand && hasScript:
		x.fault(op, "script", "stands beside command: one of them says what to run")
	case hasCommand:
		value := x.rendered(in, "command")
		words, err := x.texts(value)
		if err == nil && len(words) == 0 {
			err = errors.New("is empty")
		}
		if err != nil && len(x.faults) == before {
			x.fault(op, "command", "%v", err)
		}
		return "command", program{variables: []variable{{positional, words}}, env: p.env}
	case hasScript:
		text, err := textOf(x.rendered(in, "script"))
		if err != nil && len(x.faults) == before {
			x.fault(op, "script", "%v", err)
		}
		x.look(text)
		return "script", program{variables: []variable{{"text", []jinja.Text{text}}}, env: p.env}
	case x.argument(in, "container") == nil:
		x.fault(op, "", "has nothing to run: command, script and container are missing")
	}
	return "", p
}

// common is what all instances have in common: everything but the program and its environment.
func (x *translating) common(in instance, index int) {
	op := x.operator
	spec := &jinja.Dict{}
	before := len(x.faults)
	value := func(name string) jinja.Value {
		rendered, err := x.plain(x.rendered(in, name))
		if err != nil {
			x.fault(op, name, "%v", err)
		}
		return rendered
	}
	for _, name := range bridgeFields {
		if wire, plain := wireNames[name]; plain {
			if v := value(name); v != nil {
				spec.Set(wire, v)
			}
		}
	}
	switch container := value("container").(type) {
	case nil:
	case string:
		image := &jinja.Dict{}
		image.Set("image", container)
		spec.Set("container", image)
	default:
		spec.Set("container", container)
	}
	if labels, ok := value("labels").(*jinja.Dict); ok {
		for _, key := range labels.Keys() {
			member, _ := labels.Get(key)
			text, err := textOf(member)
			if err != nil {
				x.fault(op, "labels."+key, "%v", err)
			}
			known, _ := text.String()
			labels.Set(key, known)
		}
		spec.Set("labels", labels)
	}
	x.bridgeResources(spec, value)
	x.bridgeSlurm(spec, value)
	switch array := value("array").(type) {
	case nil:
	case jinja.List:
		items := &jinja.Dict{}
		items.Set("items", array)
		spec.Set("array", items)
	default:
		spec.Set("array", array)
	}
	if codes := value("skip_on_exit_code"); codes != nil {
		list, isList := codes.(jinja.List)
		if !isList {
			list = jinja.List{codes}
		}
		spec.Set("skipExitCodes", list)
	}
	if len(x.faults) > before {
		return
	}
	text, err := jinja.JSON(spec)
	task := &dagbridgev1.Task{}
	if err == nil {
		err = jsoncodec.Unmarshal([]byte(text), task)
	}
	var document *jsoncodec.Error
	switch {
	case errors.As(err, &document):
		for _, v := range document.Violations {
			x.fault(op, v.GetField(), "%s", v.GetDescription())
		}
	case err != nil:
		x.fault(op, "", "%v", err)
	case task.Array != nil && x.isArray():
		x.fault(op, "array", "stands in a mapped task, which is an array itself")
	case index == 0:
		x.shared = task
		array := x.task.Array
		proto.Merge(x.task, task)
		if array != nil {
			x.task.Array = array
		}
	case !proto.Equal(x.shared, task):
		x.fault(op, "", "has instances that differ in more than command, script and env, and one array cannot: map over these alone")
	}
}

func (x *translating) bridgeResources(spec *jinja.Dict, value func(string) jinja.Value) {
	resources := &jinja.Dict{}
	for _, name := range []string{"cpu", "memory"} {
		if v := value(name); v != nil && v != "" {
			text, err := jinja.Str(v)
			if err != nil {
				x.fault(x.operator, name, "%v", err)
			}
			resources.Set(name, text)
		}
	}
	for _, names := range [][2]string{{"nodes", "nodes"}, {"tasks_per_node", "tasksPerNode"}} {
		name, wire := names[0], names[1]
		switch v := value(name).(type) {
		case nil:
		case string:
			n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 32)
			if v != "" && err != nil {
				x.fault(x.operator, name, "is %s, and should be a whole number", brief(v))
			} else if v != "" {
				resources.Set(wire, n)
			}
		default:
			resources.Set(wire, v)
		}
	}
	switch gpus := value("gpus").(type) {
	case nil:
	case jinja.List:
		resources.Set("gpus", gpus)
	default:
		text, _ := jinja.Str(gpus)
		if list := x.gpus(text); len(list) > 0 {
			resources.Set("gpus", list)
		}
	}
	if limit := value("time_limit"); limit != nil && limit != "" {
		resources.Set("timeLimit", durationText(limit))
	}
	if len(resources.Keys()) > 0 {
		spec.Set("resources", resources)
	}
}

// durationText is a duration as it is written on the wire; a number, or digits, are seconds.
func durationText(v jinja.Value) jinja.Value {
	if d, ok := v.(jinja.Delta); ok {
		return strconv.FormatFloat(time.Duration(d).Seconds(), 'f', -1, 64) + "s"
	}
	text, err := jinja.Str(v)
	if err != nil {
		return v
	}
	if strings.Trim(text, "0123456789.") == "" {
		text += "s"
	}
	return text
}

var gpuWord = regexp.MustCompile(`^(?:([A-Za-z0-9._-]*[A-Za-z_][A-Za-z0-9._-]*)(?::|$))?([0-9]+)?$`)

// gpus reads "2", "a100", "a100:2", or several with commas between.
func (x *translating) gpus(text string) jinja.List {
	var list jinja.List
	for part := range strings.SplitSeq(text, ",") {
		found := gpuWord.FindStringSubmatch(strings.TrimSpace(part))
		if strings.TrimSpace(part) == "" || found == nil {
			x.fault(x.operator, "gpus", "%s is no count, no type and no type:count", brief(text))
			continue
		}
		count := int64(1)
		if found[2] != "" {
			n, err := strconv.ParseInt(found[2], 10, 32)
			if err != nil {
				x.fault(x.operator, "gpus", "%s is too many", found[2])
			}
			count = n
		}
		if count == 0 {
			continue
		}
		gpu := &jinja.Dict{}
		gpu.Set("count", count)
		if found[1] != "" {
			gpu.Set("type", found[1])
		}
		list = append(list, gpu)
	}
	return list
}

func (x *translating) bridgeSlurm(spec *jinja.Dict, value func(string) jinja.Value) {
	slurm := &jinja.Dict{}
	switch given := value("slurm").(type) {
	case nil:
	case *jinja.Dict:
		for _, name := range given.Keys() {
			v, _ := given.Get(name)
			slurm.Set(name, v)
		}
	default:
		x.fault(x.operator, "slurm", "is %s, and should be an object", shown(given))
	}
	for _, name := range []string{"partition", "account", "qos"} {
		if v := value(name); v != nil && v != "" {
			text, err := jinja.Str(v)
			if err != nil {
				x.fault(x.operator, name, "%v", err)
			}
			slurm.Set(name, text)
		}
	}
	if len(slurm.Keys()) > 0 {
		spec.Set("slurm", slurm)
	}
}
