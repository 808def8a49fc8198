package airflow

import (
	"fmt"
	"slices"

	"github.com/dagbridge/dagbridge/translators/airflow/jinja"
)

// dag is a serialized DAG in the form of the newest version.
type dag struct {
	id     string
	fields *jinja.Dict
	// operators in the order of the document.
	operators []*operator
	byID      map[string]*operator
	// length is one more than the largest index.
	length int
}

// maxTasks is how many a workflow may have.
const maxTasks = 100_000

// oldNames are those of version 1 that have changed since.
var oldNames = map[string]string{"_dag_id": "dag_id", "_task_group": "task_group", "_max_active_tasks": "max_active_tasks"}

// readDAG reads the document: the DAG, its tasks, their edges and groups.
func (t *translator) readDAG(document jinja.Value) *dag {
	root, ok := document.(*jinja.Dict)
	if !ok {
		t.faults.Add("airflowDag", "is no object: a serialized DAG has __version and dag")
		return nil
	}
	version, _ := root.Get("__version")
	if n, ok := version.(int64); !ok || n < 1 || n > 3 {
		t.faults.Add("airflowDag.__version", "is %s: versions 1 to 3 are known, those of Airflow 2 and 3", shown(version))
		return nil
	}
	value, _ := root.Get("dag")
	fields, ok := value.(*jinja.Dict)
	if !ok {
		t.faults.Add("airflowDag.dag", "is %s, and should be the DAG", shown(value))
		return nil
	}
	d := &dag{fields: renamed(fields, oldNames), byID: map[string]*operator{}}
	if id, _ := d.fields.Get("dag_id"); true {
		d.id, _ = id.(string)
	}
	if d.id == "" {
		t.faults.Add("airflowDag.dag.dag_id", "is missing")
	}
	t.readOperators(d, clientDefaults(root))
	t.connect(d)
	if group, ok := d.fields.Get("task_group"); ok {
		t.readGroup(d, group, nil, 0, 0)
	}
	return d
}

// clientDefaults are what tasks have that do not say otherwise.
func clientDefaults(root *jinja.Dict) *jinja.Dict {
	value, _ := root.Get("client_defaults")
	if defaults, ok := decode(value).(*jinja.Dict); ok {
		tasks, _ := defaults.Get("tasks")
		if fields, ok := tasks.(*jinja.Dict); ok {
			return fields
		}
	}
	return &jinja.Dict{}
}

func (t *translator) readOperators(d *dag, defaults *jinja.Dict) {
	value, _ := d.fields.Get("tasks")
	list, ok := value.(jinja.List)
	switch {
	case !ok:
		t.faults.Add("airflowDag.dag.tasks", "is %s, and should be the list of tasks", shown(value))
	case len(list) == 0:
		t.faults.Add("airflowDag.dag.tasks", "is empty: there is nothing to run")
	case len(list) > maxTasks:
		t.faults.Add("airflowDag.dag.tasks", "has %d tasks, and %d are taken at most", len(list), maxTasks)
		return
	}
	d.length = len(list)
	for i, each := range list {
		at := fmt.Sprintf("airflowDag.dag.tasks[%d]", i)
		fields, ok := each.(*jinja.Dict)
		if inner, typed := fields.Get("__var"); ok && typed { // version 1 may have tasks without a type
			fields, ok = inner.(*jinja.Dict)
		}
		if !ok {
			t.faults.Add(at, "is %s, and should be a task", shown(each))
			continue
		}
		op := newOperator(i, fields, defaults)
		if first := d.byID[op.id]; op.id == "" {
			t.faults.Add(at+".task_id", "is missing")
		} else if first != nil {
			t.faults.Add(at+".task_id", "task %s is there already, as tasks[%d]", brief(op.id), first.index)
		} else {
			d.byID[op.id] = op
			d.operators = append(d.operators, op)
		}
	}
}

// connect makes upstream edges of the downstream edges that are stored.
func (t *translator) connect(d *dag) {
	for _, op := range d.operators {
		value := decode(op.get("downstream_task_ids"))
		list, ok := value.(jinja.List)
		if !ok && value != nil {
			t.fault(op, "downstream_task_ids", "is %s, and should be a list of task ids", shown(value))
		}
		for _, each := range list {
			id, _ := each.(string)
			down := d.byID[id]
			if down == nil {
				t.fault(op, "downstream_task_ids", "leads to %s, and there is no such task", shown(each))
				continue
			}
			if !slices.Contains(op.downstream, down) {
				op.downstream = append(op.downstream, down)
				down.upstream = append(down.upstream, op)
			}
		}
	}
	for _, op := range d.operators {
		slices.SortFunc(op.upstream, func(a, b *operator) int { return a.index - b.index })
	}
}

// readGroup finds the mapped groups that tasks are in; all others have no meaning here: edges are those of tasks. Around is the mapped
// group around this one, and levels is how many there are.
func (t *translator) readGroup(d *dag, value jinja.Value, around *jinja.Dict, levels, depth int) {
	group, ok := value.(*jinja.Dict)
	if !ok || depth > maxNesting {
		t.faults.Add("airflowDag.dag.task_group", "holds %s where a group should be", shown(value))
		return
	}
	if is, _ := group.Get("is_mapped"); is == true {
		around, levels = group, levels+1
	}
	children, _ := group.Get("children")
	for _, label := range keysOf(children) {
		child, _ := children.(*jinja.Dict).Get(label)
		pair, ok := child.(jinja.List)
		if !ok || len(pair) != 2 {
			t.faults.Add("airflowDag.dag.task_group", "has the child %s, which is neither a task nor a group", brief(label))
			continue
		}
		if pair[0] != "operator" {
			t.readGroup(d, pair[1], around, levels, depth+1)
			continue
		}
		if id, _ := pair[1].(string); d.byID[id] != nil {
			d.byID[id].group, d.byID[id].nested = around, levels > 1
		}
	}
}

func keysOf(v jinja.Value) []string {
	dict, _ := v.(*jinja.Dict)
	return dict.Keys()
}

func renamed(d *jinja.Dict, names map[string]string) *jinja.Dict {
	out := &jinja.Dict{}
	for _, key := range d.Keys() {
		value, _ := d.Get(key)
		if now, old := names[key]; old {
			key = now
		}
		out.Set(key, value)
	}
	return out
}
