package launcher

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/dagbridge/dagbridge/translators/kfp"
)

// errAbsent: the step that should have left a value has left none.
var errAbsent = errors.New("there is none")

func absent(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, errAbsent)...)
}

// inputs finds all that the step is given. An error names every input that is not there.
func (l *launch) inputs() (*kfp.Execution, error) {
	x := &kfp.Execution{
		Step: l.step, Parameters: map[string]json.RawMessage{}, Artifacts: map[string][]kfp.Artifact{},
		Job: l.env["DAGBRIDGE_JOB_ID"], Run: l.env["DAGBRIDGE_RUN"], Root: l.run,
	}
	var err error
	if x.Created, err = l.created(); err != nil {
		return nil, err
	}
	x.Workspace = l.run + "/workspace"
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(l.step.Parameters)) {
		p := l.step.Parameters[name]
		value, err := l.parameter(x, p)
		switch {
		case err != nil:
			faults = append(faults, fmt.Errorf("its input %s: %w", name, err))
		case value != nil:
			x.Parameters[name] = value
		}
	}
	for _, name := range slices.Sorted(maps.Keys(l.step.Artifacts)) {
		a := l.step.Artifacts[name]
		if a.Value == nil {
			continue
		}
		list, err := l.artifacts(a.Value)
		switch {
		case errors.Is(err, errAbsent) && a.Optional:
		case err != nil:
			faults = append(faults, fmt.Errorf("its input %s: %w", name, err))
		default:
			x.Artifacts[name] = list
		}
	}
	return x, errors.Join(faults...)
}

// parameter is an input's value by its type; nil: it has none, and needs none.
func (l *launch) parameter(x *kfp.Execution, p *kfp.Parameter) (json.RawMessage, error) {
	value := p.Default
	if p.Value != nil {
		found, err := l.value(x, p.Value)
		if err != nil && (!errors.Is(err, errAbsent) || len(p.Default) == 0 && !p.Optional) {
			return nil, err
		}
		if err == nil {
			value = found
		}
	}
	if len(value) == 0 || string(value) == "null" {
		return nil, nil
	}
	if p.Type == "" {
		return value, nil
	}
	return kfp.AsInput(p.Type, value)
}

// value is where a parameter comes from.
func (l *launch) value(x *kfp.Execution, v *kfp.Value) (json.RawMessage, error) {
	switch {
	case v.Output != nil:
		values, err := l.outputs(v.Output)
		if err != nil || v.Output.All == 0 {
			return first(values), err
		}
		return kfp.JSON(values)
	case v.Each != nil:
		values, err := l.each(x, v.Each)
		if err != nil {
			return nil, err
		}
		return kfp.JSON(values)
	case v.OneOf != nil:
		for _, each := range v.OneOf {
			if value, err := l.value(x, each); !errors.Is(err, errAbsent) {
				return value, err
			}
		}
		return nil, absent("none of the branches has left one")
	case v.List != nil:
		values, err := l.list(x, v)
		if err != nil {
			return nil, err
		}
		return kfp.JSON(values)
	case v.Item:
		if len(l.index) == 0 || int(l.index[len(l.index)-1]) >= len(l.step.Items) {
			return nil, fmt.Errorf("the instance %v has no item among %d", l.index, len(l.step.Items))
		}
		return l.step.Items[l.index[len(l.index)-1]], nil
	case v.ItemOf != "":
		item, err := l.item(v.ItemOf)
		return item.Item, err
	case v.Select != "":
		of, err := l.value(x, v.Of)
		if err != nil {
			return nil, err
		}
		return l.expressions.Select(of, v.Select)
	case v.Text != "":
		return l.text(x, v)
	case v.Status != nil:
		return l.status(v.Status)
	}
	return v.Constant, nil
}

func first(values []json.RawMessage) json.RawMessage {
	if len(values) == 0 {
		return nil
	}
	return values[0]
}

// list is all of a value's members; lists of loops within loops are written out, as KFP's driver does.
func (l *launch) list(x *kfp.Execution, v *kfp.Value) ([]json.RawMessage, error) {
	values := []json.RawMessage{}
	for _, each := range v.List {
		some, err := []json.RawMessage(nil), error(nil)
		switch {
		case each.List != nil:
			some, err = l.list(x, each)
		case each.Each != nil:
			some, err = l.each(x, each.Each)
		case each.Output != nil:
			some, err = l.outputs(each.Output)
		default:
			var one json.RawMessage
			one, err = l.value(x, each)
			some = []json.RawMessage{one}
		}
		if err != nil {
			return nil, err
		}
		values = append(values, some...)
	}
	return values, nil
}

// text puts values into a text that the pipeline's author wrote.
func (l *launch) text(x *kfp.Execution, v *kfp.Value) (json.RawMessage, error) {
	within := *x
	within.Parameters = map[string]json.RawMessage{}
	for name, of := range v.With {
		value, err := l.value(x, of)
		if err != nil {
			return nil, err
		}
		within.Parameters[name] = value
	}
	filled, err := within.Text(v.Text)
	if err != nil {
		return nil, err
	}
	return kfp.JSON(filled)
}

// instances are those that an output is asked of.
func (l *launch) instances(o *kfp.Output) (all [][]int32) {
	switch {
	case o.Depth > 0:
		return [][]int32{l.index[:min(o.Depth, len(l.index))]}
	case o.All > 0:
		for i := range o.All {
			all = append(all, []int32{int32(i)})
		}
		return all
	}
	return [][]int32{o.Index}
}

// outputs are an output parameter, of each instance that is asked for.
func (l *launch) outputs(o *kfp.Output) (values []json.RawMessage, err error) {
	for _, index := range l.instances(o) {
		r, err := l.read(o.Task, index)
		if err != nil {
			return nil, err
		}
		if r == nil || r.Parameters[o.Key] == nil {
			return nil, absent("it is the output %s of %s%s", o.Key, o.Task, indexText(index))
		}
		values = append(values, r.Parameters[o.Key])
	}
	return values, nil
}

func indexText(index []int32) string {
	if len(index) == 0 {
		return ""
	}
	return fmt.Sprint(index)
}

// artifacts are those that an input comes from.
func (l *launch) artifacts(v *kfp.Value) (list []kfp.Artifact, err error) {
	switch {
	case v.Output != nil:
		for _, index := range l.instances(v.Output) {
			r, err := l.read(v.Output.Task, index)
			if err != nil {
				return nil, err
			}
			if r == nil || len(r.Artifacts[v.Output.Key]) == 0 {
				return nil, absent("it is the artifact %s of %s%s", v.Output.Key, v.Output.Task, indexText(index))
			}
			list = append(list, r.Artifacts[v.Output.Key]...)
		}
		return list, nil
	case v.ItemOf != "":
		item, err := l.item(v.ItemOf)
		if err != nil || item.Artifact == nil {
			return nil, err
		}
		return []kfp.Artifact{*item.Artifact}, nil
	case v.Each != nil:
		return l.eachArtifact(v.Each)
	case v.OneOf != nil:
		for _, each := range v.OneOf {
			if found, err := l.artifacts(each); !errors.Is(err, errAbsent) {
				return found, err
			}
		}
		return nil, absent("none of the branches has left one")
	}
	for _, each := range v.List {
		some, err := l.artifacts(each)
		if err != nil {
			return nil, err
		}
		list = append(list, some...)
	}
	return list, nil
}

// status says how a task has ended (PipelineTaskFinalStatus): what has left no record, and was not skipped, has failed.
func (l *launch) status(s *kfp.Status) (json.RawMessage, error) {
	state := "SUCCEEDED"
	var failed []string
	for _, fate := range s.Steps {
		ok, err := l.wasSkipped(fate)
		if err != nil {
			return nil, err
		}
		instances := l.instances(&kfp.Output{Index: fate.Index, All: fate.All})
		if fate.Instances != "" {
			if instances, err = l.listed(fate.Instances); err != nil {
				return nil, err
			}
		}
		for _, index := range instances {
			r, err := l.read(fate.Task, index)
			if err != nil {
				return nil, err
			}
			if r == nil && !ok {
				state = "FAILED"
				failed = append(failed, fate.Task+indexText(index))
			}
		}
	}
	status := map[string]any{"state": state, "pipelineJobResourceName": l.env["DAGBRIDGE_RUN"], "pipelineTaskName": s.Task, "error": map[string]any{}}
	if len(failed) > 0 {
		const most = 5
		status["error"] = map[string]any{"code": 2, "message": fmt.Sprintf("not succeeded: %v", failed[:min(len(failed), most)])}
	}
	return kfp.JSON(status)
}

// wasSkipped: one of the conditions that a step depends on did not hold.
func (l *launch) wasSkipped(fate kfp.Fate) (bool, error) {
	for _, c := range fate.Conditions {
		r, err := l.read(c.Task, c.Index)
		if err != nil {
			return false, err
		}
		if r != nil && r.State == skipped {
			return true, nil
		}
	}
	return false, nil
}
