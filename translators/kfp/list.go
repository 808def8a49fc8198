package kfp

import (
	"maps"
	"slices"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// Loops whose items are known only when the pipeline runs. A step of its own, "<loop>/@items", lists the instances: one for each
// item, in a loop within another one for each item of each instance of that. Every task in the loop is an array over the list. A
// condition in such a loop is judged for all of its instances by one step, which leaves a list again, of those for which it
// holds; what is behind it are arrays over that. So each task in the loop waits for all instances of those before it.

// overList goes through a loop by arrays over a list.
func (d *dag) overList(name string, spec *taskSpec, c *component, in inputs, found items, w wait) *unit {
	s := &Step{Task: d.at(name) + "/@items", Name: spec.displayName(name), Listing: &Listing{Items: found.list, Artifacts: spec.ArtifactIterator != nil}}
	depth := 1
	if d.listed() {
		s.Instances, depth = d.loop.list, d.loop.depth+1
		w = d.afterList(w)
	}
	task := &dagbridgev1.Task{}
	d.program(name, s, task)
	list := d.alone().make(s.Task, w, task)
	inner := d.inner(name, spec)
	inner.entry = []ref{list}
	inner.loop = &loop{list: s.Task, depth: depth, parallel: spec.IteratorPolicy.ParallelismLimit}
	item := &Value{ItemOf: s.Task}
	if spec.ArtifactIterator != nil {
		in.artifacts[found.input] = item
	} else {
		in.parameters[found.input] = item
	}
	made := d.translator.dag(c, d.defaults(name, c, in), inner)
	made.steps = append([]ref{list}, made.steps...)
	made.conditional = true // there may be no items
	d.alone().finish(name, made, inner.entry)
	for _, outputs := range []map[string]*Value{made.parameters, made.artifacts} {
		for key, value := range outputs {
			outputs[key] = &Value{Each: &Each{Instances: s.Task, Depth: depth - 1, Value: value}}
		}
	}
	return made
}

// listed: the instances of the loop around are known only when the pipeline runs.
func (d *dag) listed() bool { return d.loop != nil && d.loop.list != "" }

// depth is how many numbers the index of an instance has.
func (d *dag) depth() int {
	if d.loop == nil {
		return 0
	}
	return d.loop.depth
}

// over is the same DAG, for other instances of the loop around.
func (d *dag) over(l *loop) *dag {
	other := *d
	other.loop = l
	return &other
}

// alone is the same DAG, for what is one task for all instances.
func (d *dag) alone() *dag { return d.over(nil) }

// guarded refuses a task that needs what a condition guards, which only some of the instances have. KFP's SDK does, too.
func (d *dag) guarded(name string, spec *taskSpec) {
	for _, up := range d.before[name] {
		if d.listed() && !spec.whatever() && d.spec.Tasks[up].TriggerPolicy.Condition != "" {
			d.fault(name, "needs %s, which a condition guards, in a loop over what is known only when it runs: put both behind the condition", brief(up))
		}
	}
}

// state is how far the work has come.
type state struct {
	tasks, faults, general int
	edges                  int
	notices                map[string][]string
	skippedBy              map[string][]Condition
}

// state remembers it, so that work can be done in another way.
func (t *translator) state() state {
	return state{
		tasks: len(t.workflow.Tasks), faults: len(t.faults), general: len(t.general), edges: t.edges,
		notices: maps.Clone(t.notices), skippedBy: maps.Clone(t.skippedBy),
	}
}

// reset goes back there.
func (t *translator) reset(s state) {
	t.workflow.Tasks, t.faults, t.general = t.workflow.Tasks[:s.tasks], t.faults[:s.faults], t.general[:s.general]
	t.edges, t.notices, t.skippedBy, t.unknown = s.edges, s.notices, s.skippedBy, false
}

// afterList waits, beside what it waits for, for the task that lists the instances of the loop around, if one does.
func (d *dag) afterList(w wait) wait {
	if d.listed() {
		w.refs = append(slices.Clone(w.refs), ref{task: d.loop.list})
	}
	return w
}

// array makes an array of a task in a loop.
func (l *loop) array() *dagbridgev1.Array {
	a := &dagbridgev1.Array{MaxParallel: int32(min(l.parallel, maxItems))}
	if l.list != "" {
		a.From = &dagbridgev1.Array_From{Task: l.list, Output: InstancesOutput}
	}
	for range l.size {
		a.Items = append(a.Items, &dagbridgev1.Array_Item{})
	}
	return a
}
