package kfp

import (
	"encoding/json"
	"fmt"
	"slices"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// loop is one whose instances are one array for each of its tasks.
type loop struct {
	// size is how many instances there are, and items what each is given.
	size  int
	items []json.RawMessage
	// parallel is how many instances run at once; 0: any number.
	parallel int
}

// iterated goes through a task once for each item: as arrays where all in it can be, else instance by instance.
func (d *dag) iterated(name string, spec *taskSpec, c *component, in inputs, w wait) *unit {
	items, input, ok := d.items(name, spec, in)
	if !ok {
		return nil
	}
	if c.DAG == nil {
		d.fault(name, "is a loop over an executor, and the SDK makes only loops over DAGs")
		return nil
	}
	if len(items) == 0 {
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
	parallel := spec.IteratorPolicy.ParallelismLimit
	inner := d.inner(name, spec)
	if raw, constant := constants(items); constant && spec.ParameterIterator != nil && d.loop == nil && len(d.index) == 0 && d.isPlain(c, nil) {
		inner.entry = d.entryOf(name, w)
		inner.loop = &loop{size: len(items), items: raw, parallel: parallel}
		in.parameters[input] = &Value{Item: true}
		made := d.translator.dag(c, d.defaults(name, c, in), inner)
		d.gather(name, made, inner.loop.size)
		return made
	}
	return d.unrolled(name, spec, c, in, items, input, w)
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
			if value == nil || value.Output == nil || !value.Output.Same {
				d.fault(name, "its output %s is put together in a way that an array cannot have", brief(key))
				continue
			}
			of := *value.Output
			of.Same, of.All = false, size
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

// items are what a loop goes through, and the input that is given each.
func (d *dag) items(name string, spec *taskSpec, in inputs) (items []*Value, input string, ok bool) {
	if over := spec.ArtifactIterator; over != nil {
		list := in.artifacts[over.Items.InputArtifact]
		if items, ok = d.artifacts(list); !ok {
			d.fault(name, "is a loop over the artifacts %s, whose number is known only when they have been made; that is not supported yet", brief(over.Items.InputArtifact))
		}
		return items, over.ItemInput, ok
	}
	over := spec.ParameterIterator
	raw := over.Items.Raw
	var list *Value
	if raw == "" {
		if list = in.parameters[over.Items.InputParameter]; list == nil {
			d.fault(name, "is a loop over its input %s, which has no value", brief(over.Items.InputParameter))
			return nil, "", false
		}
	} else {
		quoted, _ := json.Marshal(raw) // a string always has a JSON form
		if list = d.constant(name, "", spec, quoted, nil); list == nil {
			return nil, "", false
		}
		if list.Constant != nil {
			list = &Value{Constant: json.RawMessage(asText(list.Constant))}
		}
	}
	switch {
	case d.isShown(list):
		d.notice(d.at(name), "the items of the loop are a parameter without a value: one instance is shown")
		return []*Value{list}, over.ItemInput, true
	case list.List != nil && len(list.List) <= maxItems:
		return list.List, over.ItemInput, true
	case list.Output != nil && list.Output.All > 0:
		for i := range list.Output.All {
			one := *list.Output
			one.All, one.Index = 0, []int32{int32(i)}
			items = append(items, &Value{Output: &one})
		}
		return items, over.ItemInput, true
	case list.Constant == nil:
		d.fault(name, "is a loop over %s, which is known only when that has run: loops whose length is not known beforehand are not supported yet", describe(list))
		return nil, "", false
	}
	var each []json.RawMessage
	if err := json.Unmarshal(list.Constant, &each); err != nil {
		d.fault(name, "is a loop over %s, which is no list", brief(string(list.Constant)))
		return nil, "", false
	}
	if len(each) > maxItems {
		d.fault(name, "has %d items, and %d are taken at most", len(each), maxItems)
		return nil, "", false
	}
	for _, item := range each {
		items = append(items, &Value{Constant: item})
	}
	return items, over.ItemInput, true
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
		items := make([]*Value, list.Output.All)
		for i := range items {
			one := *list.Output
			one.All, one.Index = 0, []int32{int32(i)}
			items[i] = &Value{Output: &one}
		}
		return items, true
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

// array makes an array of a task in a loop that is one.
func (l *loop) array() *dagbridgev1.Array {
	a := &dagbridgev1.Array{MaxParallel: int32(min(l.parallel, maxItems))}
	for range l.size {
		a.Items = append(a.Items, &dagbridgev1.Array_Item{})
	}
	return a
}
