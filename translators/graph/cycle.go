package graph

import (
	"fmt"
	"slices"
	"strings"
)

const (
	// Finding the shortest cycle of a component takes a search from each of its tasks. When that many edges have been
	// followed, the shortest so far has to do.
	maxCycleSteps = 1_000_000
	// A longer cycle is written with its middle left out.
	maxCycleNames = 100
)

// checkCycles reports each knot of tasks that wait for each other once, by its shortest cycle, written in the direction of
// the work: a -> b means that b waits for a.
func (c *checker) checkCycles() {
	for _, component := range components(c.upstream) {
		cycle := shortestCycle(c.upstream, component)
		// Upstreams come last in a path along the upstreams; work goes the other way, and begins with the first of the list.
		slices.Reverse(cycle)
		first := slices.Index(cycle, slices.Min(cycle))
		cycle = slices.Concat(cycle[first:], cycle[:first])

		head, last := cycle[0], cycle[len(cycle)-1]
		edge := slices.Index(c.upstream[head], last)
		c.add(fmt.Sprintf("tasks[%d].upstream[%d]", head, edge), "these tasks wait for each other in a circle: %s", c.writeCycle(cycle))
	}
}

func (c *checker) writeCycle(cycle []int) string {
	names := make([]string, 0, len(cycle)+1)
	for _, i := range append(slices.Clip(cycle), cycle[0]) {
		names = append(names, label(c.tasks[i].GetKey()))
	}
	if left := len(names) - maxCycleNames; left > 0 {
		half := maxCycleNames / 2
		names = slices.Replace(names, half, half+left, fmt.Sprintf("(%d more)", left))
	}
	return strings.Join(names, " -> ")
}

// components are the strongly connected components of more than one node (Tarjan), each sorted, in order of their first
// node. A node's edge to itself is no component: it is reported where it is.
func components(edges [][]int) [][]int {
	type frame struct{ node, edge int }
	var (
		found   [][]int
		calls   []frame
		stack   []int
		number  = make([]int, len(edges)) // in order of visit, from 1
		low     = make([]int, len(edges)) // the lowest number reachable
		onStack = make([]bool, len(edges))
		visits  = 0
	)
	visit := func(node int) {
		visits++
		number[node], low[node] = visits, visits
		stack, onStack[node] = append(stack, node), true
		calls = append(calls, frame{node: node})
	}
	for root := range edges {
		if number[root] > 0 {
			continue
		}
		visit(root)
		for len(calls) > 0 {
			top := &calls[len(calls)-1]
			node := top.node
			if top.edge < len(edges[node]) {
				next := edges[node][top.edge]
				top.edge++
				switch {
				case next < 0:
				case number[next] == 0:
					visit(next)
				case onStack[next]:
					low[node] = min(low[node], number[next])
				}
				continue
			}
			calls = calls[:len(calls)-1]
			if len(calls) > 0 {
				caller := calls[len(calls)-1].node
				low[caller] = min(low[caller], low[node])
			}
			if low[node] == number[node] {
				start := len(stack) - 1
				for stack[start] != node {
					start--
				}
				component := slices.Clone(stack[start:])
				stack = stack[:start]
				for _, member := range component {
					onStack[member] = false
				}
				if len(component) > 1 {
					slices.Sort(component)
					found = append(found, component)
				}
			}
		}
	}
	slices.SortFunc(found, func(a, b []int) int { return a[0] - b[0] })
	return found
}

// shortestCycle is a cycle of a strongly connected component along its edges, each node once: breadth first from each node
// back to itself.
func shortestCycle(edges [][]int, component []int) []int {
	inside := make(map[int]bool, len(component))
	for _, node := range component {
		inside[node] = true
	}
	var best []int
	steps := 0
	for _, start := range component {
		if len(best) == 2 || best != nil && steps > maxCycleSteps {
			break
		}
		from := map[int]int{}
		queue := []int{start}
	search:
		for len(queue) > 0 {
			node := queue[0]
			queue = queue[1:]
			for _, next := range edges[node] {
				steps++
				if next == node || next < 0 || !inside[next] {
					continue
				}
				if next == start {
					var cycle []int
					for at := node; at != start; at = from[at] {
						cycle = append(cycle, at)
					}
					cycle = append(cycle, start)
					slices.Reverse(cycle)
					if best == nil || len(cycle) < len(best) {
						best = cycle
					}
					break search
				}
				if _, seen := from[next]; !seen {
					from[next] = node
					queue = append(queue, next)
				}
			}
		}
	}
	return best
}
