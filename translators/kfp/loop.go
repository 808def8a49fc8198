package kfp

import (
	"encoding/json"
	"fmt"
	"slices"
)

// loop is one whose instances are one array for each of its tasks.
type loop struct {
	// size is how many instances there are, and items what each is given, when that is known.
	size  int
	items []json.RawMessage
	// list is the task that lists the instances when the pipeline runs; each has so many numbers as the loop is deep.
	list  string
	depth int
	// parallel is how many instances run at once; 0: any number.
	parallel int
}

// iterated goes through a task once for each item: as arrays where all in it can be, else instance by instance. Where the number
// of items is not known yet, here or within, a step lists the instances, and all in the loop are arrays over the list.
func (d *dag) iterated(name string, spec *taskSpec, c *component, in inputs, w wait) *unit {
	found, ok := d.items(name, spec, in)
	if !ok {
		return nil
	}
	if c.DAG == nil {
		d.fault(name, "is a loop over an executor, and the SDK makes only loops over DAGs")
		return nil
	}
	switch {
	case d.listed(), found.unknown && len(d.index) == 0:
		return d.overList(name, spec, c, in, found, w)
	case found.unknown:
		d.unknown = true
		return nil
	case len(found.each) == 0:
		return d.overNothing(c, w)
	}
	inner := d.inner(name, spec)
	if raw, constant := constants(found.each); constant && spec.ParameterIterator != nil && d.loop == nil && len(d.index) == 0 && d.isPlain(c, nil) {
		inner.entry = d.entryOf(name, w)
		inner.loop = &loop{size: len(found.each), items: raw, depth: 1, parallel: spec.IteratorPolicy.ParallelismLimit}
		in.parameters[found.input] = &Value{Item: true}
		made := d.translator.dag(c, d.defaults(name, c, in), inner)
		d.gather(name, made, inner.loop.size)
		return made
	}
	before := d.state()
	whole := d.unrolled(name, spec, c, in, found.each, found.input, w)
	if d.unknown && len(d.index) == 0 {
		d.reset(before)
		return d.overList(name, spec, c, in, found, w)
	}
	return whole
}

// overNothing is what a loop without items comes to.
func (d *dag) overNothing(c *component, w wait) *unit {
	made := &unit{required: w.refs, parameters: map[string]*Value{}, artifacts: map[string]*Value{}}
	if w.rule != allSuccess {
		made.required = d.entry
	}
	for key := range c.OutputDefinitions.Parameters {
		made.parameters[key] = &Value{Constant: json.RawMessage("[]")}
	}
	for key := range c.OutputDefinitions.Artifacts {
		made.artifacts[key] = &Value{List: []*Value{}}
	}
	return made
}

// unrolled goes through a loop instance by instance. Of more than may run at once each waits for one before it to end.
func (d *dag) unrolled(name string, spec *taskSpec, c *component, in inputs, items []*Value, input string, w wait) *unit {
	entry := d.entryOf(name, w)
	if len(entry) > 1 && len(items) > 1 {
		entry = []ref{d.mark(d.at(name)+"/@start", wait{refs: entry, rule: allSuccess})}
	}
	parallel := spec.IteratorPolicy.ParallelismLimit
	whole := &unit{parameters: map[string]*Value{}, artifacts: map[string]*Value{}}
	var instances []*unit
	for i, item := range items {
		if len(d.workflow.Tasks) > maxTasks || d.edges > maxEdges || d.work > maxWork {
			d.fault(name, "makes too many tasks: %d are taken for a pipeline at most", maxTasks)
			return nil
		}
		inner := d.inner(name, spec)
		inner.index = append(slices.Clone(d.index), int32(i))
		inner.entry = entry
		of := inputs{parameters: clone(in.parameters), artifacts: clone(in.artifacts)}
		if spec.ArtifactIterator != nil {
			of.artifacts[input] = item
		} else {
			of.parameters[input] = item
		}
		instance := &dag{translator: d.translator, scope: scope{path: d.path, index: inner.index}, needed: map[string]bool{name: true}}
		if parallel > 0 && i >= parallel {
			ended := instance.mark(d.at(name)+"/@turn", wait{refs: instances[i-parallel].steps, rule: allDone})
			inner.entry = append(slices.Clone(entry), ended)
		}
		made := d.translator.dag(c, d.defaults(name, c, of), inner)
		instance.finish(name, made, inner.entry)
		if d.unknown {
			return nil
		}
		instances = append(instances, made)
		whole.required = append(whole.required, made.required...)
		whole.steps = append(whole.steps, made.steps...)
		for key, value := range made.parameters {
			whole.parameters[key] = listed(whole.parameters[key], value)
		}
		for key, value := range made.artifacts {
			whole.artifacts[key] = listed(whole.artifacts[key], value)
		}
	}
	return whole
}

func listed(list, value *Value) *Value {
	if list == nil {
		list = &Value{}
	}
	list.List = append(list.List, value)
	return list
}

func clone(m map[string]*Value) map[string]*Value {
	c := make(map[string]*Value, len(m)+1)
	for k, v := range m {
		c[k] = v
	}
	return c
}

// gather turns the outputs of one instance into those of all.
func (d *dag) gather(name string, made *unit, size int) {
	for _, outputs := range []map[string]*Value{made.parameters, made.artifacts} {
		for key, value := range outputs {
			if value == nil || value.Output == nil || value.Output.Depth == 0 {
				d.fault(name, "its output %s is put together in a way that an array cannot have", brief(key))
				continue
			}
			of := *value.Output
			of.Depth, of.All = 0, size
			outputs[key] = &Value{Output: &of}
		}
	}
}

// isPlain: all in a DAG is a step that waits for others of it to succeed, so that each can be one array.
func (d *dag) isPlain(c *component, within []*component) bool {
	if slices.Contains(within, c) {
		return false // told when it is gone through
	}
	for _, spec := range c.DAG.Tasks {
		if spec == nil || spec.TriggerPolicy.Condition != "" || spec.whatever() || spec.ParameterIterator != nil || spec.ArtifactIterator != nil {
			return false
		}
		if of := d.translator.spec.Components[spec.ComponentRef.Name]; of != nil && of.DAG != nil && !d.isPlain(of, append(within, c)) {
			return false
		}
	}
	return len(within) < maxDepth
}

// items are what a loop goes through.
type items struct {
	// input is the one that is given each.
	input string
	// each of them, unless it is unknown yet how many there are: then they are those of the list.
	each    []*Value
	unknown bool
	list    *Value
}

// items finds those of a loop.
func (d *dag) items(name string, spec *taskSpec, in inputs) (found items, ok bool) {
	if over := spec.ArtifactIterator; over != nil {
		list := in.artifacts[over.Items.InputArtifact]
		if list == nil {
			d.fault(name, "is a loop over the artifacts %s, and there are none of that name", brief(over.Items.InputArtifact))
			return items{}, false
		}
		each, known := d.artifacts(list)
		return items{input: over.ItemInput, each: each, unknown: !known, list: list}, true
	}
	over := spec.ParameterIterator
	raw := over.Items.Raw
	found.input = over.ItemInput
	if raw == "" {
		if found.list = in.parameters[over.Items.InputParameter]; found.list == nil {
			d.fault(name, "is a loop over its input %s, which has no value", brief(over.Items.InputParameter))
			return items{}, false
		}
	} else {
		quoted, _ := json.Marshal(raw) // a string always has a JSON form
		if found.list = d.constant(name, "", spec, quoted, nil); found.list == nil {
			return items{}, false
		}
		if found.list.Constant != nil {
			found.list = &Value{Constant: json.RawMessage(asText(found.list.Constant))}
		}
	}
	switch list := found.list; {
	case d.isShown(list):
		d.notice(d.at(name), "the items of the loop are a parameter without a value: one instance is shown")
		found.each = []*Value{list}
		return found, true
	case list.List != nil && len(list.List) <= maxItems:
		found.each = list.List
		return found, true
	case list.Output != nil && list.Output.All > 0:
		found.each = list.Output.instances()
		return found, true
	case list.Constant == nil:
		found.unknown = true
		return found, true
	}
	var each []json.RawMessage
	if err := json.Unmarshal(found.list.Constant, &each); err != nil {
		d.fault(name, "is a loop over %s, which is no list", brief(string(found.list.Constant)))
		return items{}, false
	}
	if len(each) > maxItems {
		d.fault(name, "has %d items, and %d are taken at most", len(each), maxItems)
		return items{}, false
	}
	for _, item := range each {
		found.each = append(found.each, &Value{Constant: item})
	}
	return found, true
}

// instances are those of an output of all, one by one.
func (o *Output) instances() []*Value {
	each := make([]*Value, o.All)
	for i := range each {
		one := *o
		one.All, one.Index = 0, []int32{int32(i)}
		each[i] = &Value{Output: &one}
	}
	return each
}

// artifacts are those of a list whose length is known.
func (d *dag) artifacts(list *Value) ([]*Value, bool) {
	switch {
	case list == nil:
		return nil, false
	case list.List != nil:
		var items []*Value
		for _, each := range list.List {
			if some, ok := d.artifacts(each); ok {
				items = append(items, some...)
			} else {
				items = append(items, each)
			}
		}
		return items, len(items) <= maxItems
	case list.Output != nil && list.Output.All > 0:
		return list.Output.instances(), true
	}
	return nil, false
}

// constants are items that are all known.
func constants(items []*Value) (raw []json.RawMessage, ok bool) {
	for _, item := range items {
		if item.Constant == nil {
			return nil, false
		}
		raw = append(raw, item.Constant)
	}
	return raw, true
}

// describe names where a value comes from.
func describe(value *Value) string {
	switch {
	case value.Output != nil:
		return fmt.Sprintf("the output %s of %s", value.Output.Key, value.Output.Task)
	case value.Of != nil:
		return describe(value.Of)
	}
	return "what other tasks leave"
}
