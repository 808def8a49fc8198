package graph

import dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"

// writeScopes writes out, as edges, what every tear-down waits for beyond its own upstream list: the set-ups it is the
// tear-down of, and all work between them and itself. Without the latter a cluster would be deleted under a task that runs
// beside the tear-down's direct upstreams. The extra edges are exact because the rules concerned ask of work only that it
// has ended; under any other rule only the set-ups are added.
func writeScopes(tasks []*dagbridgev1.Task) {
	var teardowns []*dagbridgev1.Task
	for _, t := range tasks {
		if t.GetTeardown() != nil {
			teardowns = append(teardowns, t)
		}
	}
	if len(teardowns) == 0 {
		return
	}
	x := newIndex(tasks)
	for _, t := range teardowns {
		for _, name := range t.GetTeardown().GetOf() {
			e := &dagbridgev1.Edge{Task: name, Instances: dagbridgev1.Edge_ALL}
			if x.find(Upstream(t, e)) >= 0 && !hasUpstream(t, name) {
				t.Upstream = append(t.Upstream, e)
			}
		}
	}
	upstream := x.edges()
	downstream := reverse(upstream)
	for _, t := range teardowns {
		if t.GetTriggerRule() != AllDoneSetupSuccess && t.GetTriggerRule() != AllDone {
			continue
		}
		self := x.find(t.GetKey())
		var setups []int
		direct := map[int]bool{self: true}
		for _, i := range upstream[self] {
			direct[i] = true
			if i >= 0 && tasks[i].GetSetup() {
				setups = append(setups, i)
			}
		}
		after := reach(downstream, setups)
		before := reach(upstream, []int{self})
		for i, task := range tasks {
			if after[i] && before[i] && !direct[i] && !task.GetSetup() {
				t.Upstream = append(t.Upstream, &dagbridgev1.Edge{Key: task.GetKey(), Instances: dagbridgev1.Edge_ALL})
			}
		}
	}
}

// hasUpstream says whether a task has an edge to a task of its own run.
func hasUpstream(t *dagbridgev1.Task, name string) bool {
	want := KeyString(Upstream(t, &dagbridgev1.Edge{Task: name}))
	for _, e := range t.GetUpstream() {
		if key := Upstream(t, &dagbridgev1.Edge{Task: e.GetTask(), Key: e.GetKey()}); key != nil && KeyString(key) == want {
			return true
		}
	}
	return false
}

// reverse turns the edges of a graph round.
func reverse(edges [][]int) [][]int {
	reversed := make([][]int, len(edges))
	for from, tos := range edges {
		for _, to := range tos {
			if to >= 0 {
				reversed[to] = append(reversed[to], from)
			}
		}
	}
	return reversed
}

// reach says of each node whether an edge or several lead to it from the start.
func reach(edges [][]int, start []int) []bool {
	reached := make([]bool, len(edges))
	next := append([]int(nil), start...)
	for len(next) > 0 {
		node := next[len(next)-1]
		next = next[:len(next)-1]
		for _, to := range edges[node] {
			if to >= 0 && !reached[to] {
				reached[to] = true
				next = append(next, to)
			}
		}
	}
	return reached
}
