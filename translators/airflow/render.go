package airflow

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/dagbridge/dagbridge/translators/airflow/jinja"
)

// rendered is a field of one instance with its templates rendered. A text in it is a jinja.Text, and a pull stands where another task's result
// will be. Faults are told.
func (x *translating) rendered(in instance, name string) jinja.Value {
	value, err := x.render(in, x.argument(in, name))
	if err != nil {
		x.fault(x.operator, name, "%v", err)
		return nil
	}
	return value
}

func (x *translating) render(in instance, value jinja.Value) (jinja.Value, error) {
	switch value := value.(type) {
	case string:
		if strings.HasPrefix(value, "MappedArgument(") {
			return x.ofGroup(in, value)
		}
		if of := xcomArg.FindStringSubmatch(value); of != nil && of[2] == x.dag.id {
			return x.checked(jinja.Pull{Task: of[1], Path: jinja.List{of[3]}}, true)
		}
		return x.template(value)
	case jinja.List:
		list := make(jinja.List, len(value))
		for i, each := range value {
			part, err := x.render(in, each)
			if err != nil {
				return nil, err
			}
			list[i] = part
		}
		return list, nil
	case *jinja.Dict:
		dict := &jinja.Dict{}
		for _, key := range value.Keys() {
			member, _ := value.Get(key)
			part, err := x.render(in, member)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", key, err)
			}
			dict.Set(key, part)
		}
		return dict, nil
	case reference:
		if value.why != "" {
			return nil, errors.New(value.why)
		}
		return x.checked(jinja.Pull{Task: value.task, Path: jinja.List{value.key}}, true)
	case jinja.Pull:
		return x.checked(value, true)
	case unknown:
		return nil, fmt.Errorf("holds a value of the type %s, which is not known here", brief(value.kind))
	}
	return value, nil
}

// xcomArg is how Airflow writes down another task's result that is given as an argument: it stands for the value, not for its text.
var xcomArg = regexp.MustCompile(`^\{\{ task_instance\.xcom_pull\(task_ids='([^']*)', dag_id='([^']*)', key='([^']*)'\) \}\}$`)

// ofGroup is the value that the mapped group gives.
func (x *translating) ofGroup(in instance, written string) (jinja.Value, error) {
	if found := mappedArgument.FindStringSubmatch(written); found != nil {
		if value, there := in.group.Get(found[1]); there {
			return x.render(instance{}, value)
		}
	}
	return nil, errors.New("uses an argument of its mapped group in a way that the serialized form does not keep")
}

func (x *translating) template(source string) (jinja.Text, error) {
	if jinja.Plain(source) {
		return jinja.Literal(strings.TrimSuffix(source, "\n")), nil
	}
	if native, _ := x.dag.fields.Get("render_template_as_native_obj"); native == true {
		return nil, errors.New("has a template, and the DAG's render_template_as_native_obj is not supported: leave it out, and convert with filters")
	}
	if x.variables == nil {
		x.variables = x.renderer.With(x.variablesOf())
	}
	text, err := x.variables.Render(source)
	if err != nil {
		return nil, err
	}
	for i, part := range text {
		if part.Pull == nil {
			continue
		}
		pull, err := x.checked(*part.Pull, false)
		if err != nil {
			return nil, err
		}
		placed := pull.(jinja.Pull)
		text[i].Pull = &placed
	}
	return text, nil
}

// pull is ti.xcom_pull.
func (x *translating) pull(args jinja.Args) (jinja.Value, error) {
	given, err := args.Take(0, "task_ids", "dag_id", "key", "include_prior_dates", "map_indexes", "default", "run_id")
	if err != nil {
		return nil, err
	}
	task, isText := given[0].(string)
	key := returnValue
	if given[2] != nil {
		if key, _ = given[2].(string); key == "" {
			return nil, errors.New("its key is text")
		}
	}
	switch {
	case !isText:
		return nil, errors.New("takes the id of one task, as a text, for task_ids")
	case given[1] != nil && given[1] != x.dag.id:
		return nil, errors.New("reaches into another DAG")
	case given[3] != nil && given[3] != false || given[6] != nil:
		return nil, errors.New("reaches into another run")
	case given[4] != nil:
		return nil, errors.New("picks instances of a mapped task: map_indexes is not supported")
	case given[5] != nil:
		return nil, errors.New("has a default, which is not supported")
	case key == "dagbridge_job":
		return nil, errors.New("asks for another task's job, which is not told to tasks")
	}
	if of := x.dag.byID[task]; of != nil && of.kind == emptyOperator && x.isUpstream(of) {
		return nil, nil // it has none
	}
	return jinja.Pull{Task: task, Path: jinja.List{key}}, nil
}

// checked is a pull that can be had: of a task before this one, that leaves one result; or, of a mapped group that both are in, one for each index.
// Airflow gives the own one for an argument alone; a template that asks gets all.
func (x *translating) checked(p jinja.Pull, argument bool) (jinja.Value, error) {
	op := x.operator
	of := x.dag.byID[p.Task]
	switch {
	case of == nil:
		return nil, fmt.Errorf("wants the result of task %s, and there is no such task", brief(p.Task))
	case !x.isUpstream(of):
		return nil, fmt.Errorf("wants the result of task %s, which is not before this one", brief(p.Task))
	case argument && of.group != nil && of.group == op.group:
		p.Path = slices.Insert(slices.Clone(p.Path), 0, jinja.Value(ownIndex{}))
	case of.isMapped() || of.group != nil:
		return nil, fmt.Errorf("wants the result of task %s, which is mapped: it is a list of results, which only a program of yours can read, "+
			"in DAGBRIDGE_INPUTS", brief(p.Task))
	}
	if !slices.Contains(x.pulled, p.Task) {
		x.pulled = append(x.pulled, p.Task)
	}
	return p, nil
}

// known is a text all of which is known now.
func (x *translating) known(value jinja.Value) (string, error) {
	switch value := value.(type) {
	case jinja.Text:
		if text, ok := value.String(); ok {
			return text, nil
		}
		return "", errors.New("needs another task's result, which is known only when this one runs: it can stand in a command, a script or an environment")
	case nil:
		return "", nil
	case jinja.List, *jinja.Dict, jinja.Pull, unknown, reference:
		return "", fmt.Errorf("is %s, and should be text", shown(value))
	}
	return jinja.Str(value)
}

// plain is a value that was rendered, all of it known, with text as text.
func (x *translating) plain(value jinja.Value) (jinja.Value, error) {
	switch value := value.(type) {
	case jinja.Text:
		return x.known(value)
	case jinja.List:
		list := make(jinja.List, len(value))
		for i, each := range value {
			part, err := x.plain(each)
			if err != nil {
				return nil, err
			}
			list[i] = part
		}
		return list, nil
	case *jinja.Dict:
		dict := &jinja.Dict{}
		for _, key := range value.Keys() {
			member, _ := value.Get(key)
			part, err := x.plain(member)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", key, err)
			}
			dict.Set(key, part)
		}
		return dict, nil
	case jinja.Pull:
		return nil, errors.New("needs another task's result, which is known only when this one runs")
	}
	return value, nil
}

// texts are a list of arguments, each of which may hold another task's result.
func (x *translating) texts(value jinja.Value) ([]jinja.Text, error) {
	list, ok := value.(jinja.List)
	if !ok && value != nil {
		return nil, fmt.Errorf("is %s, and should be a list of words", shown(value))
	}
	texts := make([]jinja.Text, len(list))
	for i, each := range list {
		text, err := textOf(each)
		if err != nil {
			return nil, err
		}
		texts[i] = text
	}
	return texts, nil
}

// textOf is a value as an argument or in an environment.
func textOf(value jinja.Value) (jinja.Text, error) {
	switch value := value.(type) {
	case jinja.Text:
		return value, nil
	case jinja.Pull:
		return jinja.Text{{Pull: &value}}, nil
	case string:
		return jinja.Literal(value), nil
	case jinja.List, *jinja.Dict, nil:
		return nil, fmt.Errorf("holds %s where text should be", shown(value))
	}
	text, err := jinja.Str(value)
	return jinja.Literal(text), err
}
