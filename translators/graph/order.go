package graph

import dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"

// index finds tasks of a list by key.
type index struct {
	tasks    []*dagbridgev1.Task
	position map[string]int
}

func newIndex(tasks []*dagbridgev1.Task) index {
	position := make(map[string]int, len(tasks))
	for i, t := range tasks {
		key := KeyString(t.GetKey())
		if _, doubled := position[key]; !doubled {
			position[key] = i
		}
	}
	return index{tasks, position}
}

// find is the position of the task with a key, or of the array that has it as an instance; -1 without one.
func (x index) find(key *dagbridgev1.TaskKey) int {
	if key == nil {
		return -1
	}
	if i, ok := x.position[KeyString(key)]; ok {
		return i
	}
	return x.arrayOf(key)
}

// arrayOf is the position of the array that has a key as an instance, -1 without one.
func (x index) arrayOf(key *dagbridgev1.TaskKey) int {
	if len(key.GetMapIndex()) != 1 {
		return -1
	}
	i, ok := x.position[KeyString(unmapped(key))]
	if ok && int(key.GetMapIndex()[0]) < len(x.tasks[i].GetArray().GetItems()) {
		return i
	}
	return -1
}

// edges are, for each task, the positions of its upstreams, edge by edge; -1 for those outside the list.
func (x index) edges() [][]int {
	all := make([][]int, len(x.tasks))
	for i, t := range x.tasks {
		all[i] = make([]int, len(t.GetUpstream()))
		for j, e := range t.GetUpstream() {
			all[i][j] = x.find(Upstream(t, e))
		}
	}
	return all
}

// Order is a topological order of tasks, as positions in the list: upstreams come first, and otherwise the list's own order
// is kept. Upstreams outside the list do not count. Nil when there is a cycle, which Check reports.
func Order(tasks []*dagbridgev1.Task) []int {
	return order(newIndex(tasks).edges())
}

func order(upstream [][]int) []int {
	// Depth first along the upstreams, with a stack of its own: a chain may be as long as the list.
	const (
		unseen = iota
		open
		done
	)
	type frame struct{ task, edge int }
	state := make([]int, len(upstream))
	sorted := make([]int, 0, len(upstream))
	var stack []frame
	for root := range upstream {
		if state[root] != unseen {
			continue
		}
		state[root] = open
		stack = append(stack, frame{task: root})
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			if top.edge == len(upstream[top.task]) {
				state[top.task] = done
				sorted = append(sorted, top.task)
				stack = stack[:len(stack)-1]
				continue
			}
			next := upstream[top.task][top.edge]
			top.edge++
			switch {
			case next < 0 || state[next] == done:
			case state[next] == open:
				return nil
			default:
				state[next] = open
				stack = append(stack, frame{task: next})
			}
		}
	}
	return sorted
}
