package graph

import dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"

// index finds tasks of a list by key: first by run, then by name within it, so that the many edges within a run are cheap.
type index struct {
	tasks    []*dagbridgev1.Task
	position map[run]map[name]int
}

// run is the part of a key that all tasks of a run have in common, name the rest.
type (
	run  struct{ deployment, orchestrator, workflow, run string }
	name struct{ task, mapIndex string }
)

func runOf(k *dagbridgev1.TaskKey) run {
	return run{k.GetDeployment(), k.GetOrchestrator(), k.GetWorkflow(), k.GetRun()}
}

func newIndex(tasks []*dagbridgev1.Task) index {
	x := index{tasks, map[run]map[name]int{}}
	for i, t := range tasks {
		r, n := runOf(t.GetKey()), name{t.GetKey().GetTask(), indexText(t.GetKey().GetMapIndex())}
		if x.position[r] == nil {
			x.position[r] = map[name]int{}
		}
		if _, doubled := x.position[r][n]; !doubled {
			x.position[r][n] = i
		}
	}
	return x
}

// find is the position of the task with a key, the first of them, or of the array that has it as an instance; -1 without one.
func (x index) find(key *dagbridgev1.TaskKey) int {
	return x.lookUp(x.position[runOf(key)], key.GetTask(), key.GetMapIndex())
}

// lookUp is find within a run.
func (x index) lookUp(within map[name]int, task string, mapIndex []int32) int {
	if i, ok := within[name{task, indexText(mapIndex)}]; ok {
		return i
	}
	return x.arrayOf(within, task, mapIndex)
}

// arrayOf is the position of the array that has a key as an instance, -1 without one.
func (x index) arrayOf(within map[name]int, task string, mapIndex []int32) int {
	if len(mapIndex) != 1 {
		return -1
	}
	i, ok := within[name{task: task}]
	if ok && int(mapIndex[0]) < len(x.tasks[i].GetArray().GetItems()) {
		return i
	}
	return -1
}

// Upstreams are, for each of some tasks, the positions of its upstreams in the list, edge by edge: of an array's instance the
// array's; -1 for those outside.
func Upstreams(tasks []*dagbridgev1.Task) [][]int { return newIndex(tasks).edges() }

// edges are, for each task, the positions of its upstreams, edge by edge; -1 for those outside the list.
func (x index) edges() [][]int {
	all := make([][]int, len(x.tasks))
	for i, t := range x.tasks {
		own := x.position[runOf(t.GetKey())]
		all[i] = make([]int, len(t.GetUpstream()))
		for j, e := range t.GetUpstream() {
			switch {
			case e.GetKey() != nil:
				all[i][j] = x.lookUp(x.position[runOf(e.GetKey())], e.GetKey().GetTask(), upstreamIndex(t, e))
			case e.GetTask() != "":
				all[i][j] = x.lookUp(own, e.GetTask(), upstreamIndex(t, e))
			default:
				all[i][j] = -1
			}
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
