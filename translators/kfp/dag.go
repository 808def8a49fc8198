package kfp

import (
	"fmt"
	"slices"
	"strings"
)

// scope is where in a pipeline a DAG stands.
type scope struct {
	// path of the DAG, "" at the root.
	path string
	// index has a number for each loop around it whose instances are tasks of their own.
	index []int32
	// entry are the tasks that must have succeeded before anything in the DAG runs.
	entry []ref
	// loop around it whose instances are arrays, if any.
	loop *loop
	// within are the components around it, and around what the DAGs around it are given, the outermost first.
	within []string
	around []inputs
}

// ref names a task that has been made, or one instance of it.
type ref struct {
	task  string
	index []int32
	// loop: it is an array, over that loop.
	loop *loop
}

func (r ref) key() string { return fmt.Sprint(r.task, r.index) }

// unit is a task of a DAG that has been gone through: a step, or a DAG of many.
type unit struct {
	// required are the tasks whose success is the unit's.
	required []ref
	// steps are all in it that has a job.
	steps []ref
	// conditional: something in it may be skipped and the unit succeeds all the same.
	conditional bool
	// parameters and artifacts are its outputs.
	parameters, artifacts map[string]*Value
}

// dag is the work on one DAG.
type dag struct {
	*translator
	scope
	of    *component
	spec  *dagSpec
	in    inputs
	units map[string]*unit
	// before are, for each task, those before it.
	before map[string][]string
	// needed are those whose success another one needs, ignored those that have to end, however, before another one runs.
	needed, ignored map[string]bool
}

// dag goes through a DAG's tasks, each after those before it.
func (t *translator) dag(c *component, in inputs, s scope) *unit {
	d := &dag{
		translator: t, scope: s, of: c, spec: c.DAG, in: in, units: map[string]*unit{},
		before: map[string][]string{}, needed: map[string]bool{}, ignored: map[string]bool{},
	}
	d.readBefore()
	all := &unit{}
	for _, name := range d.order() {
		if t.work++; t.work > maxWork || len(t.workflow.Tasks) > maxTasks || t.edges > maxEdges {
			t.fault(d.at(name), "the pipeline makes more than %d tasks of %d parts with %d edges", maxTasks, maxWork, maxEdges)
			return all
		}
		unit := d.task(name, d.spec.Tasks[name])
		if unit == nil {
			continue // it has faults, or what it needs has
		}
		d.units[name] = unit
		all.steps = append(all.steps, unit.steps...)
		all.conditional = all.conditional || unit.conditional
	}
	for _, name := range sorted(d.units) {
		if !d.needed[name] && !d.ignored[name] {
			all.required = append(all.required, d.units[name].required...)
		}
	}
	if len(all.required) == 0 {
		all.required = s.entry
	}
	if len(t.faults) == 0 {
		all.parameters, all.artifacts = d.outputs()
	}
	return all
}

// readBefore finds who comes after whom.
func (d *dag) readBefore() {
	for name, spec := range d.spec.Tasks {
		if spec == nil {
			d.fault(name, "is empty; the file may be cut off")
			spec = &taskSpec{}
			d.spec.Tasks[name] = spec
		}
		names := slices.Clone(spec.DependentTasks)
		for _, in := range spec.Inputs.Parameters {
			if in.TaskOutputParameter != nil {
				names = append(names, in.TaskOutputParameter.ProducerTask)
			}
			if in.TaskFinalStatus != nil {
				names = append(names, in.TaskFinalStatus.ProducerTask)
			}
		}
		for _, in := range spec.Inputs.Artifacts {
			if in.TaskOutputArtifact != nil {
				names = append(names, in.TaskOutputArtifact.ProducerTask)
			}
		}
		slices.Sort(names)
		d.before[name] = slices.Compact(names)
		for _, up := range d.before[name] {
			if spec.whatever() {
				d.ignored[up] = true
			} else {
				d.needed[up] = true
			}
		}
	}
}

// order is the tasks' names, each after those before it, and else by name.
func (d *dag) order() []string {
	const open, done = 1, 2
	state := map[string]int{}
	var order, way []string
	var visit func(name string)
	visit = func(name string) {
		switch state[name] {
		case done:
			return
		case open:
			cycle := append(way[slices.Index(way, name):], name)
			d.fault(name, "waits for itself: %s", strings.Join(cycle, " <- "))
			return
		}
		state[name] = open
		way = append(way, name)
		for _, up := range d.before[name] {
			if d.spec.Tasks[up] == nil {
				d.fault(name, "comes after task %s, and there is none in its DAG", brief(up))
				continue
			}
			visit(up)
		}
		way = way[:len(way)-1]
		state[name] = done
		order = append(order, name)
	}
	for _, name := range sorted(d.spec.Tasks) {
		visit(name)
	}
	return order
}

// at is the path of a task.
func (d *dag) at(name string) string { return d.path + name }

// fault is something wrong with a task of the DAG.
func (d *dag) fault(name, format string, args ...any) {
	if !strings.Contains(name, " ") {
		name = d.at(name)
	}
	d.translator.fault(name, format, args...)
}

// task makes what a task of the DAG comes to.
func (d *dag) task(name string, spec *taskSpec) *unit {
	of := spec.ComponentRef.Name
	c := d.translator.spec.Components[of]
	switch {
	case of == "":
		d.fault(name, "componentRef: is missing; the file may be cut off")
	case c == nil:
		d.fault(name, "is the component %s, which the file does not have", brief(of))
	case slices.Contains(d.within, of):
		d.fault(name, "is the component %s, which is within itself", brief(of))
	case len(d.within) > maxDepth/2:
		d.fault(name, "%d DAGs within DAGs are taken at most", maxDepth/2)
	case c.DAG == nil && c.ExecutorLabel == "":
		d.fault(name, "the component %s is neither a DAG nor has an executor", brief(of))
	case spec.TriggerPolicy.Strategy != "" && !spec.whatever() && spec.TriggerPolicy.Strategy != "ALL_UPSTREAM_TASKS_SUCCEEDED" && spec.TriggerPolicy.Strategy != "TRIGGER_STRATEGY_UNSPECIFIED":
		d.fault(name, "its trigger strategy %s is not known", brief(spec.TriggerPolicy.Strategy))
	default:
		for _, up := range d.before[name] {
			if d.units[up] == nil {
				return nil // told of that one
			}
		}
		return d.gone(name, spec, c)
	}
	return nil
}

// gone goes through a task whose component is there.
func (d *dag) gone(name string, spec *taskSpec, c *component) *unit {
	in := d.taskInputs(name, spec)
	w := d.wait(name, spec)
	d.guarded(name, spec)
	var gates []ref
	if spec.TriggerPolicy.Condition != "" {
		gate := d.condition(name, spec, c, in, w)
		w, gates = wait{refs: []ref{gate}, rule: allSuccess}, []ref{gate}
		if d.listed() {
			d = d.over(&loop{list: gate.task, depth: d.loop.depth, parallel: d.loop.parallel})
		}
	}
	var made *unit
	switch {
	case spec.ParameterIterator != nil || spec.ArtifactIterator != nil:
		made = d.iterated(name, spec, c, in, w)
	case c.DAG != nil:
		inner := d.inner(name, spec)
		inner.entry = d.entryOf(name, w)
		made = d.translator.dag(c, d.defaults(name, c, in), inner)
		d.finish(name, made, inner.entry)
	default:
		made = d.step(name, spec, c, in, w)
	}
	if made != nil {
		made.steps = append(gates, made.steps...)
		made.conditional = made.conditional || len(gates) > 0
	}
	return made
}

// inner is the scope of a task that is a DAG.
func (d *dag) inner(name string, spec *taskSpec) scope {
	return scope{
		path: d.at(name) + "/", index: d.index, loop: d.loop,
		within: append(slices.Clone(d.within), spec.ComponentRef.Name), around: append(slices.Clone(d.around), d.in),
	}
}

// defaults are the inputs of a DAG with what it has itself for those that are left out.
func (d *dag) defaults(name string, c *component, in inputs) inputs {
	for _, key := range sorted(c.InputDefinitions.Parameters) {
		definition := c.InputDefinitions.Parameters[key]
		if in.parameters[key] != nil || len(definition.DefaultValue) == 0 {
			continue
		}
		typed, err := Typed(definition.ParameterType, definition.DefaultValue)
		if err != nil {
			d.fault(name, "the default of %s %v", brief(key), err)
			continue
		}
		in.parameters[key] = &Value{Constant: typed}
	}
	return in
}

// finish gives a DAG that may be skipped in part a task that stands for all of it, if anything asks for its success.
func (d *dag) finish(name string, made *unit, entry []ref) {
	guarded := strings.HasPrefix(name, "exit-handler-")
	if !guarded && !(made.conditional && d.needed[name]) {
		return
	}
	rule := noneFailed
	refs := made.required
	if len(entry) > 0 { // then it is skipped when what comes before it is
		rule = noneFailedMinOneSuccess
		refs = append(slices.Clone(entry), refs...)
	}
	made.required = []ref{d.mark(d.at(name), wait{refs: refs, rule: rule})}
	made.conditional = false
}
