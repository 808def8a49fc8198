package kfp

import (
	"slices"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators/graph"
)

// The trigger rules that a pipeline comes to.
const (
	allSuccess              = graph.AllSuccess
	allDone                 = graph.AllDone
	noneFailed              = graph.NoneFailed
	noneFailedMinOneSuccess = graph.NoneFailedMinOneSuccess
)

// wait is what a task waits for.
type wait struct {
	refs []ref
	rule string
}

// wait is what a task of the DAG waits for: the success of those before it and of what the DAG itself waits for; with the strategy that
// ignores failures, that all steps of those before it have ended.
func (d *dag) wait(name string, spec *taskSpec) wait {
	w := wait{rule: allSuccess}
	for _, up := range d.before[name] {
		if spec.whatever() {
			w.refs = append(w.refs, d.units[up].steps...)
		} else {
			w.refs = append(w.refs, d.units[up].required...)
		}
	}
	switch {
	case len(w.refs) == 0:
		w.refs = d.entry
	case spec.whatever() && len(d.entry) == 0:
		w.rule = allDone
	case spec.whatever(): // the DAG itself has to run all the same, and a rule is one for all edges
		ended := d.mark(d.at(name)+"/@upstream", wait{refs: w.refs, rule: allDone})
		w.refs = append(slices.Clone(d.entry), ended)
	}
	return w
}

// entryOf are the tasks that all in a DAG needs, when the DAG itself waits so.
func (d *dag) entryOf(name string, w wait) []ref {
	if w.rule == allSuccess {
		return w.refs
	}
	return []ref{d.mark(d.at(name)+"/@start", w)}
}

// mark makes a task with nothing to run.
func (d *dag) mark(name string, w wait) ref {
	return d.make(name, w, &dagbridgev1.Task{Empty: true})
}

// make makes a task, in the place where the DAG stands.
func (d *dag) make(name string, w wait, task *dagbridgev1.Task) ref {
	made := ref{task: name, index: d.index}
	if !task.GetEmpty() {
		made.loop = d.loop
	}
	task.Key = &dagbridgev1.TaskKey{Task: name, MapIndex: d.index}
	if w.rule != allSuccess {
		task.TriggerRule = w.rule
	}
	seen := map[string]bool{}
	var conditions []Condition
	known := map[string]bool{}
	for _, up := range w.refs {
		if key := up.key(); !seen[key] {
			seen[key] = true
			task.Upstream = append(task.Upstream, d.edge(made, up))
			if w.rule == allSuccess {
				for _, c := range d.skippedBy[key] {
					if at := (ref{task: c.Task, index: c.Index}).key(); !known[at] {
						known[at] = true
						conditions = append(conditions, c)
					}
				}
			}
		}
	}
	d.edges += len(task.Upstream)
	if len(conditions) > 0 {
		d.skippedBy[made.key()] = conditions
	}
	d.workflow.Tasks = append(d.workflow.Tasks, task)
	return made
}

// edge is from one task to another: in an array to the same instance of another array over the same loop.
func (d *dag) edge(from, to ref) *dagbridgev1.Edge {
	switch run := d.workflow.GetRun(); {
	case to.loop != nil && to.loop == from.loop && to.loop.list == "":
		return &dagbridgev1.Edge{Task: to.task, Instances: dagbridgev1.Edge_SAME_INDEX}
	case len(to.index) == 0:
		return &dagbridgev1.Edge{Task: to.task}
	default:
		return &dagbridgev1.Edge{Key: &dagbridgev1.TaskKey{
			Deployment: run.GetDeployment(), Orchestrator: run.GetOrchestrator(), Workflow: run.GetWorkflow(), Run: run.GetRun(),
			Task: to.task, MapIndex: to.index,
		}}
	}
}

// condition makes the step that judges one; the DAG behind it runs when it holds.
func (d *dag) condition(name string, spec *taskSpec, c *component, in inputs, w wait) ref {
	s := &Step{Task: d.at(name) + "/@condition", Name: spec.displayName(name), Condition: spec.TriggerPolicy.Condition}
	d.stepInputs(s, name, c, inputs{parameters: in.parameters}, true)
	if err := d.expressions.Compile(s.Condition); err != nil {
		d.fault(name, "its condition %s: %v", brief(s.Condition), err)
	}
	task := &dagbridgev1.Task{}
	if d.listed() { // those of the loop's instances for which it holds are a list again
		s.Instances, s.Listing = d.loop.list, &Listing{}
		d.program(name, s, task)
		return d.alone().make(s.Task, d.afterList(w), task)
	}
	task.SkipExitCodes = []int32{ExitSkipped}
	d.program(name, s, task)
	made := d.make(s.Task, w, task)
	d.skippedBy[made.key()] = append(d.skippedBy[made.key()], Condition{Task: made.task, Index: made.index})
	return made
}

// status asks how a unit has ended.
func (d *dag) status(name string, u *unit) *Status {
	s := &Status{Task: name}
	for _, each := range u.steps {
		fate := Fate{Task: each.task, Index: each.index, Conditions: d.skippedBy[each.key()]}
		if each.loop != nil {
			fate.All, fate.Instances = each.loop.size, each.loop.list
		}
		s.Steps = append(s.Steps, fate)
	}
	return s
}
