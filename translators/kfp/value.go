package kfp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
)

// inputs are what a DAG, or a step, is given.
type inputs struct {
	parameters map[string]*Value
	artifacts  map[string]*Value
}

// taskInputs are the inputs of a task within a DAG whose own inputs are given, and whose tasks before it are units.
func (d *dag) taskInputs(name string, spec *taskSpec) inputs {
	in := inputs{parameters: map[string]*Value{}, artifacts: map[string]*Value{}}
	for _, key := range sorted(spec.Inputs.Parameters) {
		if value := d.parameter(name, key, spec, nil); value != nil {
			in.parameters[key] = value
		}
	}
	for _, key := range sorted(spec.Inputs.Artifacts) {
		source := spec.Inputs.Artifacts[key]
		switch from := source.TaskOutputArtifact; {
		case from != nil:
			if unit := d.unit(name, from.ProducerTask); unit != nil {
				value := unit.artifacts[from.OutputArtifactKey]
				if value == nil {
					d.fault(name, "its input %s is the artifact %s of %s, which has none of that name", brief(key), brief(from.OutputArtifactKey), brief(from.ProducerTask))
					continue
				}
				in.artifacts[key] = value
			}
		case source.ComponentInputArtifact != "":
			if value := d.in.artifacts[source.ComponentInputArtifact]; value != nil {
				in.artifacts[key] = value
			}
		default:
			d.fault(name, "its input %s comes from nowhere that is known", brief(key))
		}
	}
	return in
}

// parameter is one input of a task; nil: it has none, which is told where it has to have one. within are the inputs in whose texts it
// stands.
func (d *dag) parameter(name, key string, spec *taskSpec, within []string) *Value {
	source := spec.Inputs.Parameters[key]
	var value *Value
	switch {
	case source.TaskOutputParameter != nil:
		from := source.TaskOutputParameter
		unit := d.unit(name, from.ProducerTask)
		if unit == nil {
			return nil
		}
		if value = unit.parameters[from.OutputParameterKey]; value == nil {
			d.fault(name, "its input %s is the output %s of %s, which has none of that name", brief(key), brief(from.OutputParameterKey), brief(from.ProducerTask))
			return nil
		}
	case source.RuntimeValue != nil && source.RuntimeValue.RuntimeParameter != "":
		value = d.in.parameters[source.RuntimeValue.RuntimeParameter]
	case source.RuntimeValue != nil:
		value = d.constant(name, key, spec, source.RuntimeValue.Constant, within)
	case source.ComponentInputParameter != "":
		value = d.handed(name, key, source.ComponentInputParameter)
	case source.TaskFinalStatus != nil:
		unit := d.unit(name, source.TaskFinalStatus.ProducerTask)
		if unit == nil {
			return nil
		}
		value = &Value{Status: d.status(source.TaskFinalStatus.ProducerTask, unit)}
	default:
		d.fault(name, "its input %s comes from nowhere that is known", brief(key))
	}
	if value != nil && source.ParameterExpressionSelector != "" {
		selected, err := d.selected(value, source.ParameterExpressionSelector)
		if err != nil {
			d.fault(name, "its input %s: %v", brief(key), err)
			return nil
		}
		value = selected
	}
	return value
}

// handed is an input of the DAG. The SDK does not always hand the item of a loop on to the conditions in it: then it is that of the
// nearest DAG around that has it, as KFP's local runner finds it.
func (d *dag) handed(name, key, input string) *Value {
	if value := d.in.parameters[input]; value != nil {
		return value
	}
	if _, declared := d.of.InputDefinitions.Parameters[input]; declared {
		return nil // it is optional
	}
	for i := len(d.around) - 1; i >= 0; i-- {
		if value := d.around[i].parameters[input]; value != nil && strings.HasPrefix(input, "pipelinechannel--") {
			return value
		}
	}
	d.fault(name, "its input %s is the input %s of its DAG, which has none of that name", brief(key), brief(input))
	return nil
}

// constant is a value that stands in the file; a text may hold placeholders of the task's other inputs.
func (d *dag) constant(name, key string, spec *taskSpec, raw json.RawMessage, within []string) *Value {
	var text string
	if json.Unmarshal(raw, &text) != nil || !strings.Contains(text, "{{$") {
		return &Value{Constant: raw}
	}
	for _, outer := range within {
		if outer == key {
			d.fault(name, "its input %s has itself in its text", brief(key))
			return nil
		}
	}
	with := map[string]*Value{}
	later := false
	filled, err := replace(text, func(p placeholder) (string, error) {
		switch {
		case p.kind != "inputs.parameters" && (p.name != "" || p.kind == ""):
			return "", fmt.Errorf("a placeholder of its %s cannot stand in a constant", cmp.Or(p.kind, "whole input"))
		case p.kind != "inputs.parameters":
			later = true
			return "", nil
		}
		if _, ok := spec.Inputs.Parameters[p.name]; !ok {
			return "", fmt.Errorf("asks for the input %s, which the task has not", brief(p.name))
		}
		if with[p.name] == nil {
			if with[p.name] = d.parameter(name, p.name, spec, append(within, key)); with[p.name] == nil {
				with[p.name] = &Value{Constant: json.RawMessage(`""`)}
			}
		}
		later = later || with[p.name].Constant == nil
		return asText(with[p.name].Constant), nil
	})
	if err != nil {
		d.fault(name, "its input %s: %v", brief(key), err)
		return nil
	}
	if later { // as it was written: what a value holds is no placeholder
		return &Value{Text: text, With: with}
	}
	quoted, _ := JSON(filled) // a string always has a JSON form
	return &Value{Constant: quoted}
}

// selected is a part of a value, taken now if the value is known.
func (d *dag) selected(of *Value, selector string) (*Value, error) {
	if d.isShown(of) {
		return of, nil
	}
	if of.Constant == nil {
		return &Value{Select: selector, Of: of}, nil
	}
	part, err := d.expressions.Select(of.Constant, selector)
	if err != nil {
		return nil, err
	}
	return &Value{Constant: part}, nil
}

// unit is a task before another one; nil, with a fault, if there is none.
func (d *dag) unit(name, producer string) *unit {
	found := d.units[producer]
	if found == nil && d.spec.Tasks[producer] == nil {
		d.fault(name, "needs task %s, and there is none in its DAG", brief(producer))
	}
	return found
}

// outputs are those of a DAG, in terms of its tasks.
func (d *dag) outputs() (parameters, artifacts map[string]*Value) {
	parameters, artifacts = map[string]*Value{}, map[string]*Value{}
	parameter := func(key string, from subtaskParameter) *Value {
		unit := d.unit("its outputs", from.ProducerSubtask)
		if unit == nil {
			return nil
		}
		value := unit.parameters[from.OutputParameterKey]
		if value == nil {
			d.fault("its outputs", "%s is the output %s of %s, which has none of that name", brief(key), brief(from.OutputParameterKey), brief(from.ProducerSubtask))
		}
		return value
	}
	for _, key := range sorted(d.spec.Outputs.Parameters) {
		output := d.spec.Outputs.Parameters[key]
		switch {
		case output.ValueFromParameter != nil:
			parameters[key] = parameter(key, *output.ValueFromParameter)
		case output.ValueFromOneof != nil:
			value := &Value{}
			for _, from := range output.ValueFromOneof.ParameterSelectors {
				if branch := parameter(key, from); branch != nil {
					value.OneOf = append(value.OneOf, branch)
				}
			}
			parameters[key] = value
		}
	}
	for _, key := range sorted(d.spec.Outputs.Artifacts) {
		value := &Value{}
		for _, from := range d.spec.Outputs.Artifacts[key].ArtifactSelectors {
			unit := d.unit("its outputs", from.ProducerSubtask)
			if unit == nil {
				continue
			}
			if branch := unit.artifacts[from.OutputArtifactKey]; branch != nil {
				value.OneOf = append(value.OneOf, branch)
			} else {
				d.fault("its outputs", "%s is the artifact %s of %s, which has none of that name", brief(key), brief(from.OutputArtifactKey), brief(from.ProducerSubtask))
			}
		}
		if len(value.OneOf) == 1 {
			value = value.OneOf[0]
		}
		artifacts[key] = value
	}
	return parameters, artifacts
}
