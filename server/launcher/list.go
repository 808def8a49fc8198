package launcher

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/dagbridge/dagbridge/translators/kfp"
)

// list is that of a loop's instances, in its order and by their indices.
type list struct {
	order []kfp.Instance
	by    map[string]kfp.Instance
}

// instancesOf is the list that a task has left.
func (l *launch) instancesOf(task string) (list, error) {
	if found, ok := l.lists[task]; ok {
		return found, nil
	}
	r, err := l.read(task, nil)
	if err != nil {
		return list{}, err
	}
	if r == nil {
		return list{}, absent("%s has listed no instances", task)
	}
	found := list{order: r.Instances, by: make(map[string]kfp.Instance, len(r.Instances))}
	for _, instance := range r.Instances {
		found.by[indexText(instance.Index)] = instance
	}
	l.lists[task] = found
	return found, nil
}

// find is which of the listed instances this one is: the one at its place.
func (l *launch) find() error {
	found, err := l.instancesOf(l.step.Instances)
	if err != nil {
		return err
	}
	if len(l.index) != 1 || int(l.index[0]) >= len(found.order) {
		return fmt.Errorf("%s has listed %d instances, and this is none of them: %v", l.step.Instances, len(found.order), l.index)
	}
	l.index = found.order[l.index[0]].Index
	return nil
}

// item is that of a loop around, in which this instance is.
func (l *launch) item(task string) (kfp.Instance, error) {
	found, err := l.instancesOf(task)
	if err != nil {
		return kfp.Instance{}, err
	}
	for depth := range l.index {
		if instance, ok := found.by[indexText(l.index[:depth+1])]; ok {
			return instance, nil
		}
	}
	return kfp.Instance{}, fmt.Errorf("%s has not listed the instance %v", task, l.index)
}

// listed are the indices in a list; none where there is no list.
func (l *launch) listed(task string) (all [][]int32, err error) {
	found, err := l.instancesOf(task)
	if err != nil && !errors.Is(err, errAbsent) {
		return nil, err
	}
	for _, instance := range found.order {
		all = append(all, instance.Index)
	}
	return all, nil
}

// within does something as each of the instances of a list whose index begins as this one's.
func (l *launch) within(e *kfp.Each, do func(*launch) error) error {
	found, err := l.instancesOf(e.Instances)
	if err != nil {
		return err
	}
	for _, instance := range found.order {
		if slices.Equal(instance.Index[:e.Depth], l.index[:e.Depth]) {
			if err := do(l.as(instance.Index)); err != nil {
				return err
			}
		}
	}
	return nil
}

// as is the launch of another instance.
func (l *launch) as(index []int32) *launch {
	other := *l
	other.index = index
	return &other
}

// each puts a value of all instances together; lists of loops within loops are written out.
func (l *launch) each(x *kfp.Execution, e *kfp.Each) ([]json.RawMessage, error) {
	values := []json.RawMessage{}
	err := l.within(e, func(l *launch) error {
		some, err := l.list(x, &kfp.Value{List: []*kfp.Value{e.Value}})
		values = append(values, some...)
		return err
	})
	return values, err
}

func (l *launch) eachArtifact(e *kfp.Each) (all []kfp.Artifact, err error) {
	err = l.within(e, func(l *launch) error {
		some, err := l.artifacts(e.Value)
		all = append(all, some...)
		return err
	})
	return all, err
}

// listing lists the instances of a loop, or those for which a condition holds.
func (l *launch) listing() error {
	around := list{order: []kfp.Instance{{}}}
	if l.step.Instances != "" {
		var err error
		if around, err = l.instancesOf(l.step.Instances); err != nil {
			return err
		}
	}
	r := &record{State: succeeded, Instances: []kfp.Instance{}}
	for _, outer := range around.order {
		some, err := l.as(outer.Index).instancesIn(outer)
		if err != nil {
			return fmt.Errorf("instance %v: %w", outer.Index, err)
		}
		r.Instances = append(r.Instances, some...)
	}
	fmt.Fprintf(l.stdout, "%d instances\n", len(r.Instances))
	return l.write(r)
}

// instancesIn are those that come of one around them: it, if a condition holds, or one for each item.
func (l *launch) instancesIn(outer kfp.Instance) (all []kfp.Instance, err error) {
	x, err := l.inputs()
	if err != nil {
		return nil, err
	}
	if l.step.Condition != "" {
		holds, err := l.expressions.Condition(l.step.Condition, x.Parameters)
		if err != nil {
			return nil, fmt.Errorf("the condition %s: %w", l.step.Condition, err)
		}
		if holds {
			all = append(all, kfp.Instance{Index: outer.Index})
		}
		return all, nil
	}
	one := func(instance kfp.Instance) {
		instance.Index = append(slices.Clone(outer.Index), int32(len(all)))
		all = append(all, instance)
	}
	if l.step.Listing.Artifacts {
		artifacts, err := l.artifacts(l.step.Listing.Items)
		for _, artifact := range artifacts {
			one(kfp.Instance{Artifact: &artifact})
		}
		return all, err
	}
	value, err := l.value(x, l.step.Listing.Items)
	if err != nil {
		return nil, err
	}
	var items []json.RawMessage
	if err := json.Unmarshal(value, &items); err != nil {
		return nil, fmt.Errorf("the items of the loop are no list: %.200s", value)
	}
	for _, item := range items {
		one(kfp.Instance{Item: item})
	}
	return all, nil
}
