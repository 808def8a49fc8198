// Package airflow reads a DAG as Airflow serializes it (versions 1 to 3: Airflow 2.x and 3.x) and makes a workflow of native tasks
// of it.
//
// What a serialized DAG holds of a task are its edges, its settings and its templated fields. That is all of a BashOperator, of a
// KubernetesPodOperator, of an EmptyOperator and of the provider's own operators, and so these are translated; of what runs Python it
// is a name, and so that is refused. What else the form has lost, or means nothing outside Airflow, is a notice for each task.
//
// Templates are rendered here (see package jinja), all but the results of other tasks: those are known only when the task runs. A
// program that needs one is therefore put together by a script on the node (program.sh), out of DAGBRIDGE_INPUTS.
//
//   - The result of a BashOperator, its XCom, is the last line of its stdout, as its output return_value. The result of any other
//     task is its output return_value, or all of its outputs where there is none of that name.
//   - An EmptyOperator is a task with nothing to run: it has no native job, and every trigger rule counts it as any other.
//   - A mapped task is one array, with its instances in Airflow's order. A task of a mapped group is an array, too, whose instances
//     wait within the group for those of the same index.
//   - Set-ups and tear-downs keep Airflow's scope.
//
// The package is pure: no context, network, files, clock, randomness or logging. The same DAG gives the same workflow, whichever
// version of Airflow wrote it down.
package airflow

import (
	"cmp"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators"
	"github.com/dagbridge/dagbridge/translators/airflow/jinja"
)

// Translate makes tasks of a workflow's airflowDag. A run that does not say whose it is is one of Airflow's, of the DAG. With placeholders, values that only a run has may be missing: they are shown by their
// names, and told by a notice. Fields of faults are paths in the request.
func Translate(w *dagbridgev1.Workflow, placeholders bool) (*translators.Translation, translators.Faults) {
	t := &translator{placeholders: placeholders, notices: map[string][]string{}}
	t.workflow = proto.CloneOf(w)
	document, err := parseJSON(w.GetAirflowDag().GetText())
	if err != nil {
		t.faults.Add("airflowDag", "%v", err)
		return nil, t.faults
	}
	if t.dag = t.readDAG(document); len(t.faults) > 0 {
		return nil, t.faults
	}
	t.checkSelection()
	t.variables()
	if t.setups(); t.exhausted {
		return nil, t.faults
	}
	t.translate()
	t.wholeDAG()
	if len(t.faults) > 0 {
		return nil, t.faults
	}
	out := t.workflow
	if out.Run == nil {
		out.Run = &dagbridgev1.Run{}
	}
	out.Run.Orchestrator, out.Run.Workflow = cmp.Or(out.Run.Orchestrator, "airflow"), cmp.Or(out.Run.Workflow, t.dag.id)
	out.AirflowDag, out.Parameters, out.Conf, out.LogicalDate = nil, nil, nil, nil
	return &translators.Translation{Field: "airflowDag", Workflow: out, Notices: t.general, TaskNotices: t.notices}, nil
}

// translator is the work on one DAG.
type translator struct {
	workflow     *dagbridgev1.Workflow
	placeholders bool
	dag          *dag
	// vars are the variables that templates of all tasks share.
	vars     map[string]jinja.Value
	renderer *jinja.Renderer
	// params are the DAG's own, confMembers what conf gives them.
	params, confMembers *jinja.Dict
	// selected are the tasks that are taken; nil: all.
	selected map[string]bool
	general  []string
	notices  map[string][]string
	faults   translators.Faults
	// work is how many edges were followed; exhausted: too many.
	work      int
	exhausted bool
}

// fault is something wrong with a task.
func (t *translator) fault(op *operator, field, format string, args ...any) {
	at := fmt.Sprintf("airflowDag.dag.tasks[%d]", op.index)
	if field != "" {
		at += "." + field
	}
	t.faults.Add(at, "task %s: %s", brief(op.id), fmt.Sprintf(format, args...))
}

// notice is something that a person should know of a task.
func (t *translator) notice(op *operator, format string, args ...any) {
	t.notices[op.id] = append(t.notices[op.id], fmt.Sprintf(format, args...))
}

// once is a notice on the whole DAG.
func (t *translator) once(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(t.general, text) {
		t.general = append(t.general, text)
	}
}

func (t *translator) takes(id string) bool { return t.selected == nil || t.selected[id] }

func (t *translator) checkSelection() {
	for i, id := range t.workflow.GetTasksSelected() {
		if t.selected == nil {
			t.selected = map[string]bool{}
		}
		t.selected[id] = true
		if t.dag.byID[id] == nil {
			t.faults.Add(fmt.Sprintf("tasksSelected[%d]", i), "DAG %s has no task %s", brief(t.dag.id), brief(id))
		}
	}
}

func (t *translator) translate() {
	refused := 0
	for _, op := range t.dag.operators {
		if !t.takes(op.id) {
			continue
		}
		if why := refusal(op); why != "" {
			t.fault(op, "", "%s: %s", op.kind, why)
			refused++
			continue
		}
		if task := t.task(op); task != nil {
			t.workflow.Tasks = append(t.workflow.Tasks, task)
		}
	}
	if refused > 0 && t.selected == nil {
		t.faults.Add("airflowDag", "%d of the %d tasks of DAG %s can be run by Airflow alone; tasksSelected (--only) takes some of the others",
			refused, len(t.dag.operators), brief(t.dag.id))
	}
}

// task is an operator as a native task; nil if it has faults.
func (t *translator) task(op *operator) *dagbridgev1.Task {
	before := len(t.faults)
	task := &dagbridgev1.Task{Key: &dagbridgev1.TaskKey{Task: op.id}}
	x := &translating{translator: t, operator: op, task: task}
	if t.edges(op, task); len(t.faults) > before {
		return nil
	}
	instances := x.instances()
	if len(t.faults) > before {
		return nil
	}
	kinds[op.kindOf()](x, instances)
	x.settings()
	if len(t.faults) > before {
		return nil
	}
	return task
}

// translating is the work on one operator.
type translating struct {
	*translator
	operator *operator
	task     *dagbridgev1.Task
	// variables are those of its templates; nil until there is one.
	variables *jinja.Renderer
	// from is the result over which it is expanded, if any.
	from *dagbridgev1.Array_From
	// shared is what all instances of one of the provider's operators have in common.
	shared *dagbridgev1.Task
	// pulled are the tasks whose results its program needs.
	pulled []string
	// before are all tasks before it, by index; nil until that is asked.
	before []bool
}

// kinds are the operators that can be translated, by what they are in essence.
var kinds map[string]func(*translating, []instance)

func init() { // they refer to each other's names
	kinds = map[string]func(*translating, []instance){
		bashOperator:     (*translating).bash,
		podOperator:      (*translating).pod,
		emptyOperator:    (*translating).empty,
		bridgeOperator:   (*translating).bridge,
		functionOperator: (*translating).function,
	}
}
