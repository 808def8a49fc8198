package airflow

import (
	"cmp"
	_ "embed" // the fixed part of the programs
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators/airflow/jinja"
)

//go:embed function.py
var functionCall string

// function translates @task.dagbridge: the function's source and its arguments as JSON become one script of Python's, as the provider makes it.
func (x *translating) function(instances []instance) {
	op := x.operator
	source, _ := op.setting("source").(string)
	path := strings.Split(op.text("python_callable_name"), ".")
	name := path[len(path)-1]
	if source == "" || !strings.Contains(source, "def "+name+"(") {
		x.fault(op, "source", "does not hold the function %s", brief(name))
		return
	}
	var all []string
	for i, in := range instances {
		x.common(in, i)
		if env := x.env(in); i == 0 {
			x.shareEnv([]program{{env: env}})
			if !allKnown(env...) {
				x.fault(op, "env", "needs another task's result, which a function takes as an argument")
			}
		}
		text, err := x.arguments(in, source, name)
		if err != nil {
			x.fault(op, "op_kwargs", "%v", err)
			return
		}
		all = append(all, text)
	}
	interpreter, _ := x.textField(instances[0], "python")
	interpreter = cmp.Or(interpreter, "python3")
	if strings.ContainsAny(interpreter, " \t\n\r") {
		x.fault(op, "python", "is %s, and should be an interpreter's name or path", brief(interpreter))
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, "#!/usr/bin/env %s\nfrom __future__ import annotations\n\n%s\n%s\n\nif __name__ == \"__main__\":\n    _dagbridge_call(%s, [", interpreter, source, functionCall, name)
	for i, text := range all {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(jinja.Quoted(text))
	}
	b.WriteString("])\n")
	x.task.Script = &dagbridgev1.Script{Text: b.String()}
	if _, told := op.partial.Get("skip_on_exit_code"); op.isMapped() && !told {
		x.task.SkipExitCodes = []int32{skipCode} // a mapped task's own defaults are not serialized
	}
}

// contextTexts are what of Airflow's context is text, and so goes to a function that has a parameter of that name.
var contextTexts = []string{"ds", "ds_nodash", "run_id", "task_instance_key_str", "ts", "ts_nodash", "ts_nodash_with_tz"}

// arguments are a function's as JSON, with marks where other tasks' results will be.
func (x *translating) arguments(in instance, source, name string) (string, error) {
	positional, err := x.render(in, x.argument(in, "op_args"))
	if err != nil {
		return "", err
	}
	keywords, err := x.render(in, x.argument(in, "op_kwargs"))
	if err != nil {
		return "", err
	}
	args, isList := positional.(jinja.List)
	given, isDict := keywords.(*jinja.Dict)
	if positional != nil && !isList || keywords != nil && !isDict {
		return "", errors.New("the arguments are not in the serialized form: Airflow 2 keeps no other task's result among them")
	}
	kwargs := &jinja.Dict{}
	for i, parameter := range parameters(source, name) {
		if _, told := given.Get(parameter); i >= len(args) && !told && slices.Contains(contextTexts, parameter) {
			text, err := x.template("{{ " + parameter + " }}")
			if err != nil {
				return "", err
			}
			kwargs.Set(parameter, text)
		}
	}
	for _, key := range given.Keys() {
		value, _ := given.Get(key)
		kwargs.Set(key, value)
	}
	both := &jinja.Dict{}
	both.Set("args", marked(args))
	both.Set("kwargs", marked(kwargs))
	return jinja.JSON(both)
}

// marked has, in the place of what is known only on the node, what _dagbridge_call fills in.
func marked(v jinja.Value) jinja.Value {
	switch v := v.(type) {
	case jinja.List:
		list := make(jinja.List, len(v))
		for i, each := range v {
			list[i] = marked(each)
		}
		return list
	case *jinja.Dict:
		dict := &jinja.Dict{}
		for _, key := range v.Keys() {
			member, _ := v.Get(key)
			dict.Set(key, marked(member))
		}
		return dict
	case jinja.Text:
		if text, known := v.String(); known {
			return text
		}
		parts := make(jinja.List, len(v))
		for i, part := range v {
			if parts[i] = jinja.Value(part.Text); part.Pull != nil {
				parts[i] = marked(*part.Pull)
			}
		}
		return mark("text", parts)
	case jinja.Pull:
		steps := slices.Clone(v.Path)
		for i, step := range steps {
			if _, own := step.(ownIndex); own {
				steps[i] = nil
			}
		}
		return mark("pull", jinja.List{v.Task, steps})
	}
	return v
}

func mark(name string, value jinja.Value) *jinja.Dict {
	dict := &jinja.Dict{}
	dict.Set("\x00"+name, value)
	return dict
}

var parameterName = regexp.MustCompile(`^\s*\*{0,2}([A-Za-z_][A-Za-z0-9_]*)`)

// parameters are the names of a function's parameters, in order.
func parameters(source, function string) []string {
	at := strings.Index(source, "def "+function+"(")
	if at < 0 {
		return nil
	}
	var names []string
	depth, start := 0, at+len("def "+function+"(")
	for i := start; i < len(source) && depth >= 0; i++ {
		switch source[i] {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth--
		}
		if depth < 0 || depth == 0 && source[i] == ',' {
			if found := parameterName.FindStringSubmatch(source[start:i]); found != nil {
				names = append(names, found[1])
			}
			start = i + 1
		}
	}
	return names
}
