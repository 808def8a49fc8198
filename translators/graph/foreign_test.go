package graph

import (
	"strings"
	"testing"
	"time"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"
)

// stranger is an edge to somebody else's job on the cluster hpc.
func stranger() *dagbridgev1.Edge {
	return &dagbridgev1.Edge{Native: &dagbridgev1.NativeJob{Cluster: "hpc", Id: "7"}}
}

func singleton() *dagbridgev1.Edge {
	return &dagbridgev1.Edge{Condition: dagbridgev1.Edge_SINGLETON}
}

func TestAnEdgeToSomebodyElsesJobIsTheSchedulersOrRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		rule   string
		change func(*dagbridgev1.Edge)
		want   translators.DependencyType
		fault  string
	}{
		{name: "success", rule: AllSuccess, want: translators.AfterOK},
		{name: "no failure", rule: NoneFailed, want: translators.AfterOK},
		{name: "any end", rule: AllDone, want: translators.AfterAny},
		{name: "a start", rule: OneSuccess, want: translators.After, change: func(e *dagbridgev1.Edge) {
			e.Condition, e.Delay = dagbridgev1.Edge_STARTED, durationpb.New(time.Minute)
		}},
		{name: "a rule of any", rule: OneSuccess, fault: "upstream[0]: rule one_success over hpc:7 would have to be decided by the gateway"},
		{name: "a rule of failures", rule: AllFailed, fault: "upstream[0]: rule all_failed"},
		{name: "no rule at all", rule: Always, fault: "upstream[0]: rule always"},
		{name: "another cluster", rule: AllSuccess, want: translators.AfterOK, change: func(e *dagbridgev1.Edge) { e.Native.Cluster = "k8s" },
			fault: "upstream[0].native.cluster: k8s:7 is on another cluster than the task, which is on hpc"},
		{name: "optional", rule: AllSuccess, want: translators.AfterOK, change: func(e *dagbridgev1.Edge) { e.Optional = true },
			fault: "upstream[0].optional: the gateway does not see whether hpc:7 was ever submitted"},
		{name: "index by index", rule: AllSuccess, want: translators.AfterOK, change: func(e *dagbridgev1.Edge) { e.Instances = dagbridgev1.Edge_SAME_INDEX },
			fault: "upstream[0].instances: SAME_INDEX is for arrays of the gateway's"},
		{name: "seconds after a start", rule: AllSuccess, want: translators.After, change: func(e *dagbridgev1.Edge) {
			e.Condition, e.Delay = dagbridgev1.Edge_STARTED, durationpb.New(90*time.Second)
		}, fault: "upstream[0].delay: the scheduler counts delays in whole minutes"},
	} {
		task := &dagbridgev1.Task{TriggerRule: c.rule, Upstream: []*dagbridgev1.Edge{stranger()}}
		if c.change != nil {
			c.change(task.Upstream[0])
		}
		require.Equal(t, c.want, Foreign(task, task.Upstream[0]).Type, c.name)
		faults := CheckForeign("task", task, "hpc", true)
		if c.fault == "" {
			require.Empty(t, faults, c.name)
			continue
		}
		require.Len(t, faults, 1, c.name)
		require.Contains(t, faults.Error(), "task."+c.fault, c.name)
	}
	task := &dagbridgev1.Task{TriggerRule: AllSuccess, Upstream: []*dagbridgev1.Edge{stranger(), singleton(), {Task: "own"}}}
	require.Equal(t, `task.upstream[0]: cluster hpc keeps no dependencies, and what becomes of hpc:7 the gateway does not see
task.upstream[1]: cluster hpc keeps no dependencies, and what becomes of other jobs of this name the gateway does not see`, CheckForeign("task", task, "hpc", false).Error())
}

// Foreign edges are native whatever becomes of the others, and the rule is judged over the others alone.
func TestForeignEdgesStandBesideTheOthers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, rule, cluster string
		edges               []*dagbridgev1.Edge
		want                string
	}{
		{"alone", AllSuccess, "hpc", []*dagbridgev1.Edge{stranger(), singleton()}, "afterok:hpc:7 singleton:other jobs of this name"},
		{"with a native one", AllSuccess, "hpc", []*dagbridgev1.Edge{{Task: "up"}, stranger()}, "afterok:up afterok:hpc:7"},
		{"with a held one", AllSuccess, "here", []*dagbridgev1.Edge{{Task: "up"}, stranger()}, "held afterok:hpc:7"},
		{"alternatives", OneSuccess, "hpc", []*dagbridgev1.Edge{{Task: "up"}, {Task: "other"}, singleton()}, "held singleton:other jobs of this name"},
	} {
		node := func(name, cluster, rule string, edges ...*dagbridgev1.Edge) Node {
			key := &dagbridgev1.TaskKey{Deployment: "d", Orchestrator: "o", Workflow: "w", Run: "r", Task: name}
			return Node{Task: &dagbridgev1.Task{Key: key, TriggerRule: rule, Upstream: edges, MaxTries: 1}, Cluster: cluster, KeepsDependencies: true}
		}
		verdict := Natives([]Node{node("up", c.cluster, AllSuccess), node("other", "hpc", AllSuccess), node("x", "hpc", c.rule, c.edges...)})[2]
		var got []string
		if verdict.Held {
			got = append(got, "held")
		}
		for _, e := range verdict.Edges {
			if e.Native {
				got = append(got, string(e.Type)+":"+e.From)
			}
			require.Equal(t, e.Native && e.Upstream < 0, e.Foreign, c.name)
		}
		require.Equal(t, c.want, strings.Join(got, " "), c.name)
	}
}

// What comes after a task that may end for somebody else's sake is judged with that end in mind.
func TestAForeignFailureIsAnEndLikeAnother(t *testing.T) {
	t.Parallel()
	node := func(name, rule string, edges ...*dagbridgev1.Edge) Node {
		key := &dagbridgev1.TaskKey{Deployment: "d", Orchestrator: "o", Workflow: "w", Run: "r", Task: name}
		return Node{Task: &dagbridgev1.Task{Key: key, TriggerRule: rule, Upstream: edges, MaxTries: 1}, Cluster: "hpc", KeepsDependencies: true}
	}
	down := node("down", OneDone, &dagbridgev1.Edge{Task: "up"})
	require.False(t, Natives([]Node{node("up", AllSuccess), down})[1].Held)
	require.True(t, Natives([]Node{node("up", AllSuccess, stranger()), down})[1].Held, "one_done does not count upstream_failed, afterany would")
	require.False(t, Natives([]Node{node("up", AllDone, stranger()), down})[1].Held)
}
