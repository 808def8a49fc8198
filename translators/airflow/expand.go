package airflow

import (
	"regexp"
	"slices"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators/airflow/jinja"
)

// instance is one run of a task's program: the task itself, or an element of its array.
type instance struct {
	// args are the arguments that the expansion gives it.
	args *jinja.Dict
	// group are the values that a mapped group has at its index.
	group *jinja.Dict
}

// ownIndex is a position in a path: the running instance's own.
type ownIndex struct{}

// maxInstances is how many an array may have.
const maxInstances = 100_000

// isArray: the task has instances.
func (x *translating) isArray() bool { return x.operator.isMapped() || x.operator.group != nil }

// instances are those that a task has; one that is not mapped has one. Faults are told.
func (x *translating) instances() []instance {
	op := x.operator
	if !x.isArray() {
		return []instance{{args: &jinja.Dict{}}}
	}
	var expanded []*jinja.Dict
	ofGroup := op.group != nil
	switch {
	case op.nested || ofGroup && op.isMapped():
		x.fault(op, "", "is mapped within a mapped group: only one level is supported")
		return nil
	case ofGroup:
		input, _ := op.group.Get("expand_input")
		expanded = x.expand("expand_input of its group", input, false)
	default:
		attribute := op.text("_expand_input_attr")
		value, there := op.fields.Get(attribute)
		if !there {
			x.fault(op, "_expand_input_attr", "is mapped, and what over is missing")
			return nil
		}
		expanded = x.expand(attribute, value, true)
		if attribute == "op_kwargs_expand_input" {
			expanded = x.inKeywords(expanded)
		}
	}
	if len(expanded) == 0 {
		return nil
	}
	all := make([]instance, len(expanded))
	for i, args := range expanded {
		all[i] = instance{args: args}
		if ofGroup {
			all[i] = instance{args: &jinja.Dict{}, group: args}
		}
	}
	if x.task.Array = new(dagbridgev1.Array); x.from != nil {
		x.task.Array.From = x.from
		return all
	}
	x.task.Array.Items = make([]*dagbridgev1.Array_Item, len(all))
	for i := range all {
		x.task.Array.Items[i] = &dagbridgev1.Array_Item{}
	}
	return all
}

// inKeywords are the arguments of a decorated function, as it gets them.
func (x *translating) inKeywords(expanded []*jinja.Dict) []*jinja.Dict {
	fixed, _ := x.operator.setting("op_kwargs").(*jinja.Dict)
	for i, mapped := range expanded {
		merged := &jinja.Dict{}
		for _, from := range []*jinja.Dict{fixed, mapped} {
			for _, name := range from.Keys() {
				value, _ := from.Get(name)
				merged.Set(name, value)
			}
		}
		expanded[i] = &jinja.Dict{}
		expanded[i].Set("op_kwargs", merged)
	}
	return expanded
}

// expand are the arguments of each instance, in Airflow's order: of several lists the last one varies fastest. What is expanded over
// another task's result has one, in which the result's element stands; x.from says which result.
func (x *translating) expand(field string, input jinja.Value, results bool) []*jinja.Dict {
	op := x.operator
	fields, _ := decode(input).(*jinja.Dict)
	kind, _ := fields.Get("type")
	value, _ := fields.Get("value")
	switch value := value.(type) {
	case *jinja.Dict:
		if kind == "dict-of-lists" {
			return x.product(field, value, results)
		}
	case jinja.List:
		if kind != "list-of-dicts" {
			break
		}
		all := make([]*jinja.Dict, len(value))
		for i, each := range value {
			args, ok := each.(*jinja.Dict)
			if !ok {
				x.fault(op, field, "instance %d has %s for its arguments, and should have names and values", i, shown(each))
				return nil
			}
			all[i] = args
		}
		return x.counted(field, all)
	case reference:
		x.fault(op, field, "expands over the result of task %s as whole sets of arguments, whose names only that task knows: expand over lists of values, "+
			"or expand one argument", brief(value.task))
		return nil
	}
	x.fault(op, field, "holds no expansion that is known: %s", shown(kind))
	return nil
}

func (x *translating) counted(field string, all []*jinja.Dict) []*jinja.Dict {
	if len(all) == 0 {
		x.fault(x.operator, field, "expands over nothing: Airflow would skip the task, and there is nothing to run")
	}
	if len(all) > maxInstances {
		x.fault(x.operator, field, "makes %d instances, and %d are taken at most", len(all), maxInstances)
		return nil
	}
	return all
}

func (x *translating) product(field string, lists *jinja.Dict, results bool) []*jinja.Dict {
	op := x.operator
	values := make([]jinja.List, len(lists.Keys()))
	total := 1
	for i, name := range lists.Keys() {
		value, _ := lists.Get(name)
		switch value := value.(type) {
		case jinja.List:
			values[i] = value
		case *jinja.Dict:
			for _, key := range value.Keys() {
				member, _ := value.Get(key)
				values[i] = append(values[i], jinja.List{key, member})
			}
		case reference:
			switch {
			case value.why != "":
				x.fault(op, field+"."+name, "%s", value.why)
				return nil
			case !results || len(lists.Keys()) > 1:
				x.fault(op, field+"."+name, "expands over the result of task %s together with something else: only one argument can be expanded "+
					"over a result, and no group", brief(value.task))
				return nil
			}
			return x.overResult(name, value)
		default:
			x.fault(op, field+"."+name, "is %s, and should be a list to expand over", shown(value))
			return nil
		}
		if total *= len(values[i]); total > maxInstances {
			x.fault(op, field, "makes more than %d instances", maxInstances)
			return nil
		}
	}
	all := make([]*jinja.Dict, total)
	for index := range all {
		args, rest := &jinja.Dict{}, index
		at := make([]int, len(values))
		for i := range slices.Backward(values) {
			at[i], rest = rest%len(values[i]), rest/len(values[i])
		}
		for i, name := range lists.Keys() {
			args.Set(name, values[i][at[i]])
		}
		all[index] = args
	}
	return x.counted(field, all)
}

// overResult is the one instance that stands for all of those whose number another task's result has.
func (x *translating) overResult(name string, of reference) []*jinja.Dict {
	x.from = &dagbridgev1.Array_From{Task: of.task, Output: of.key}
	args := &jinja.Dict{}
	args.Set(name, jinja.Pull{Task: of.task, Path: jinja.List{of.key, ownIndex{}}})
	return []*jinja.Dict{args}
}

// mappedArgument is how Airflow writes down a value that a mapped group gives to its tasks.
var mappedArgument = regexp.MustCompile(`^MappedArgument\(.*, _key='([^']*)'\)$`)

// argument is a field of one instance, without its encoding.
func (x *translating) argument(in instance, name string) jinja.Value {
	value, mapped := in.args.Get(name)
	if !mapped {
		value = x.operator.setting(name)
	}
	return value
}
