package airflow

import (
	"slices"
	"strings"

	"github.com/dagbridge/dagbridge/translators/airflow/jinja"
)

// operator is one task of the DAG.
type operator struct {
	index int
	id    string
	// kind is the name of its class.
	kind   string
	fields *jinja.Dict
	// partial are the arguments that a mapped task does not map.
	partial              *jinja.Dict
	defaults             *jinja.Dict
	upstream, downstream []*operator
	// setups that have to succeed, too: it is in their scope, and not directly after them.
	setups []*operator
	// rule is its trigger rule, by its newest name; setup and teardown: it is one.
	rule            string
	setup, teardown bool
	// group is the mapped group that it is in, if any; nested: there is another one around that.
	group  *jinja.Dict
	nested bool
}

// Operators that can be translated.
const (
	bashOperator     = "BashOperator"
	podOperator      = "KubernetesPodOperator"
	emptyOperator    = "EmptyOperator"
	bridgeOperator   = "DagBridgeOperator"
	functionOperator = "DagBridgeDecoratedOperator"
)

func newOperator(index int, fields, defaults *jinja.Dict) *operator {
	op := &operator{index: index, fields: renamed(fields, map[string]string{"_task_type": "task_type"}), defaults: defaults, partial: &jinja.Dict{}}
	id, _ := op.fields.Get("task_id")
	op.id, _ = id.(string)
	kind, _ := op.fields.Get("task_type")
	op.kind, _ = kind.(string)
	if value, there := op.fields.Get("partial_kwargs"); there {
		if partial, ok := decode(value).(*jinja.Dict); ok {
			op.partial = partial
		}
	}
	op.rule, op.setup, op.teardown = op.readRule(), op.flag("is_setup"), op.flag("is_teardown")
	return op
}

// kindOf is the operator that it is in essence: a class that has all of DagBridgeOperator's fields is one of its kind. Empty: none that
// is known.
func (op *operator) kindOf() string {
	if slices.Contains([]string{bashOperator, podOperator, emptyOperator, bridgeOperator, functionOperator}, op.kind) {
		return op.kind
	}
	fields, _ := op.fields.Get("template_fields")
	list, _ := fields.(jinja.List)
	has := func(name string) bool { return slices.Contains(list, jinja.Value(name)) }
	if slices.ContainsFunc(bridgeFields, func(name string) bool { return !has(name) }) {
		return ""
	}
	return bridgeOperator
}

// get is a field as it is stored.
func (op *operator) get(name string) jinja.Value {
	for _, from := range []*jinja.Dict{op.fields, op.partial, op.defaults} {
		if value, there := from.Get(name); there && value != nil {
			return value
		}
	}
	return nil
}

// setting is a field without its encoding.
func (op *operator) setting(name string) jinja.Value { return decode(op.get(name)) }

func (op *operator) text(name string) string {
	text, _ := op.setting(name).(string)
	return text
}

func (op *operator) flag(name string) bool { return op.get(name) == true }

func (op *operator) isMapped() bool { return op.flag("_is_mapped") }

func (op *operator) readRule() string {
	switch rule := op.text("trigger_rule"); rule {
	case "":
		return "all_success"
	case "dummy":
		return "always"
	case "none_failed_or_skipped":
		return "none_failed_min_one_success"
	default:
		return rule
	}
}

// callbacks are the events at which Airflow would call something.
func (op *operator) callbacks() []string {
	var events []string
	for _, event := range []string{"execute", "failure", "retry", "skipped", "success"} {
		if op.flag("has_on_"+event+"_callback") || op.get("on_"+event+"_callback") != nil {
			events = append(events, "on_"+event)
		}
	}
	return events
}

// refusal is why a task can be run by Airflow alone; empty if it cannot.
func refusal(op *operator) string {
	switch kind := op.kind; {
	case op.kindOf() != "":
		return ""
	case kind == "":
		return "has no task_type"
	case kind == "_BashDecoratedOperator":
		return "its command is what a Python function returns, and no serialized DAG holds that: make it a BashOperator"
	case kind == "_PythonDecoratedOperator" || kind == "PythonOperator":
		return "runs a Python function, of which a serialized DAG holds the name alone: @task.dagbridge sends the function along"
	case kind == "DagBridgeRunOperator":
		return "submits a workflow of its own: submit that one"
	case strings.Contains(kind, "Branch") || strings.Contains(kind, "ShortCircuit") || kind == "LatestOnlyOperator":
		return "decides in Airflow what comes after it is skipped"
	case op.flag("_is_sensor") || strings.HasSuffix(kind, "Sensor"):
		return "waits for something that only Airflow looks at"
	case strings.Contains(kind, "Python"):
		return "runs a Python function, of which a serialized DAG holds the name alone"
	}
	return "is an operator whose work is Python code in Airflow"
}
