package graph

import (
	"fmt"
	"slices"
	"testing"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestOrder(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		dag  []string
		want []int
	}{
		{"nothing", nil, []int{}},
		{"in order already", []string{"a", "b < a", "c", "d < b c"}, []int{0, 1, 2, 3}},
		{"backwards", []string{"c < b", "b < a", "a"}, []int{2, 1, 0}},
		{"outside", []string{"b < elsewhere", "a"}, []int{0, 1}},
		{"a cycle", []string{"a < b", "b < a"}, nil},
		{"a self edge", []string{"a < a"}, nil},
	} {
		require.Equal(t, test.want, Order(dag(test.dag...)), test.name)
	}
}

func TestOrderOfALongChain(t *testing.T) {
	t.Parallel()
	const n = 100_000
	lines := make([]string, n)
	for i := range n {
		lines[i] = fmt.Sprintf("t%d < t%d", i, i+1)
	}
	order := Order(dag(lines...))
	require.Len(t, order, n)
	require.Equal(t, n-1, order[0])
}

func drawGraph(t *rapid.T) []*dagbridgev1.Task {
	n := rapid.IntRange(1, 8).Draw(t, "tasks")
	lines := make([]string, n)
	for i := range n {
		lines[i] = fmt.Sprintf("t%d <", i)
		for range rapid.IntRange(0, 2).Draw(t, "edges") {
			lines[i] += fmt.Sprintf(" t%d", rapid.IntRange(0, n-1).Draw(t, "to"))
		}
	}
	return dag(lines...)
}

func TestOrderPutsUpstreamsFirst(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tasks := drawGraph(t)
		order := Order(tasks)
		if order == nil {
			return
		}
		place := make([]int, len(tasks))
		for at, i := range order {
			place[i] = at
		}
		sorted := slices.Sorted(slices.Values(order))
		for i, task := range tasks {
			require.Equal(t, i, sorted[i])
			for _, j := range newIndex(tasks).edges()[i] {
				require.Less(t, place[j], place[i], label(task.GetKey()))
			}
		}
	})
}

// Check reports a cycle, or a self edge, if and only if there is no order; and what it writes is a cycle.
func TestCheckReportsCyclesWhereThereIsNoOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tasks := drawGraph(t)
		faults := Check(Normalize(&dagbridgev1.Workflow{Run: &dagbridgev1.Run{}, Tasks: tasks}), func(*dagbridgev1.TaskKey) bool { return false })
		require.Equal(t, Order(tasks) == nil, len(faults) > 0, "%v", faults)
	})
}

func TestShortestCycle(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		edges := newIndex(drawGraph(t)).edges()
		for _, component := range components(edges) {
			cycle := shortestCycle(edges, component)
			require.GreaterOrEqual(t, len(cycle), 2)
			for k, node := range cycle {
				require.Contains(t, component, node)
				require.Contains(t, edges[node], cycle[(k+1)%len(cycle)])
			}
			// No node of the component comes back to itself any sooner.
			for _, start := range component {
				at := map[int]bool{start: true}
				for range len(cycle) - 1 {
					next := map[int]bool{}
					for node := range at {
						for _, to := range edges[node] {
							if to != node {
								next[to] = true
							}
						}
					}
					require.False(t, next[start], "%v is not the shortest", cycle)
					at = next
				}
			}
		}
	})
}

func TestInstanceTask(t *testing.T) {
	t.Parallel()
	task := dag("sim* < a")[0]
	task.Command.Argv = []string{"sim", "--fast"}
	task.Env = map[string]string{"A": "1", "B": "2"}
	task.Array.Items[1] = &dagbridgev1.Array_Item{Env: map[string]string{"B": "3"}, Argv: []string{"--seed", "7"}}

	got := InstanceTask(task, 1)
	require.Equal(t, "sim[1]", label(got.GetKey()))
	require.Equal(t, "w", got.GetKey().GetWorkflow())
	require.Equal(t, []string{"sim", "--fast", "--seed", "7"}, got.GetCommand().GetArgv())
	require.Equal(t, map[string]string{"A": "1", "B": "3"}, got.GetEnv())
	require.Nil(t, got.GetArray())
	require.Equal(t, AllSuccess, got.GetTriggerRule())
	require.Len(t, got.GetUpstream(), 1)

	plain := InstanceTask(task, 0)
	require.Equal(t, task.GetCommand().GetArgv(), plain.GetCommand().GetArgv())
	require.Equal(t, task.GetEnv(), plain.GetEnv())

	// The array's own task is as it was.
	require.Equal(t, []string{"sim", "--fast"}, task.GetCommand().GetArgv())
	require.Equal(t, map[string]string{"A": "1", "B": "2"}, task.GetEnv())
	require.Len(t, task.GetArray().GetItems(), 3)
	require.Empty(t, task.GetKey().GetMapIndex())
}
