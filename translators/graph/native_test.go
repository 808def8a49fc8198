package graph

import (
	"testing"
	"time"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"
)

func TestNativesByRule(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		// The last task is judged.
		dag  []string
		want string
	}{
		{"a chain", []string{"a", "x < a"}, "afterok:a"},
		{"a join", []string{"a", "b", "x < a b"}, "afterok:a,afterok:b"},
		{"afterok stands a retry", []string{"a+", "b", "x < a b"}, "afterok:a,afterok:b"},
		{"afterok stands a skip where the rule does not run either", []string{"a?", "x < a"}, "afterok:a"},
		{"a whole array", []string{"a*", "x < a"}, "afterok:a"},
		{"nothing to wait for", []string{"a", "x always < a"}, ""},

		{"all_done", []string{"a?", "b", "x all_done < a b"}, "afterany:a,afterany:b"},
		{"all_done of an array", []string{"a*", "x all_done < a"}, "afterany:a"},
		{"all_done and a retry", []string{"a+", "x all_done < a"},
			"held: when a has failed and is to be tried again, afterany starts it and all_done does not"},

		{"all_done and a retry after a node has failed", []string{"a~", "x all_done < a"},
			"held: when a has failed and is to be tried again, afterany starts it and all_done does not"},
		{"afterok stands a retry after a node has failed", []string{"a~", "x < a"}, "afterok:a"},

		{"all_failed", []string{"a", "b", "x all_failed < a b"}, "afternotok:a,afternotok:b"},
		{"all_failed and a skip", []string{"a?", "x all_failed < a"}, "held: when a is skipped, afternotok starts it and all_failed does not"},
		{"all_failed of an array", []string{"a*", "x all_failed < a"},
			"held: when an instance of a has succeeded and an instance of a has failed, afternotok starts it and all_failed does not"},

		{"none_failed where nothing is skipped", []string{"a", "b", "x none_failed < a b"}, "afterok:a,afterok:b"},
		{"none_failed and a skip", []string{"a?", "b", "x none_failed < a b"},
			"held: when a is skipped and b has succeeded, none_failed starts it and afterok does not"},
		{"none_failed and a skip further up", []string{"g?", "a < g", "x none_failed < a"},
			"held: when a is skipped, none_failed starts it and afterok does not"},
		{"none_failed behind a rule that cannot skip", []string{"g?", "a all_done < g", "x none_failed < a"}, "afterok:a"},
		{"none_failed_min_one_success", []string{"a", "b", "x none_failed_min_one_success < a b"}, "afterok:a,afterok:b"},
		{"none_skipped where nothing is skipped", []string{"a", "b", "x none_skipped < a b"}, "afterany:a,afterany:b"},

		{"one_success", []string{"a", "b?", "x one_success < a b"}, "afterok:a?afterok:b"},
		{"one_success and a retry", []string{"a+", "b", "x one_success < a b"}, "afterok:a?afterok:b"},
		{"one_success of an array", []string{"a*", "x one_success < a"},
			"held: when an instance of a has succeeded and an instance of a has failed, one_success starts it and afterok does not"},
		{"one_failed", []string{"a", "b", "x one_failed < a b"}, "afternotok:a?afternotok:b"},
		{"one_failed and an upstream_failed", []string{"g", "a < g", "x one_failed < a"}, "afternotok:a"},
		{"one_failed and a retry", []string{"a+", "x one_failed < a"},
			"held: when a has failed and is to be tried again, afternotok starts it and one_failed does not"},
		{"one_done", []string{"a", "b", "x one_done < a b"}, "afterany:a?afterany:b"},
		{"one_done and an upstream_failed", []string{"g", "a < g", "x one_done < a"},
			"held: when a has failed, one_done starts it and afterok does not"},
		{"all_skipped", []string{"a?", "x all_skipped < a"}, "held: when a has failed, afternotok starts it and all_skipped does not"},
		{"all_done_min_one_success", []string{"a", "b", "x all_done_min_one_success < a b"},
			"held: when b has not ended and a has succeeded, any afterok starts it and all_done_min_one_success does not"},

		{"a tear-down", []string{"s!", "w < s", "x all_done_setup_success < s w"}, "afterok:s,afterany:w"},
		{"a tear-down and a retry of the work", []string{"s!", "w+ < s", "x all_done_setup_success < s w"},
			"held: when w has failed and is to be tried again and s has succeeded, afterany (afterok for set-ups) starts it and all_done_setup_success does not"},
		{"a tear-down of two set-ups", []string{"s!", "r!", "x all_done_setup_success < s r"},
			"held: when r has not ended and s has succeeded, any afterok starts it and all_done_setup_success does not"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			verdicts := Natives(onSlurm(dag(test.dag...)))
			last := verdicts[len(verdicts)-1]
			require.Equal(t, test.want, last.word())
			for _, e := range last.Edges {
				require.NotEmpty(t, e.Why)
				require.GreaterOrEqual(t, e.Upstream, 0)
			}
		})
	}
}

// Every way in which what surrounds a DAG keeps an edge from being native.
func TestNativesBySurroundings(t *testing.T) {
	t.Parallel()
	started := func(e *dagbridgev1.Edge) { e.Condition = dagbridgev1.Edge_STARTED }
	for _, test := range []struct {
		name   string
		dag    []string
		change func(nodes []Node)
		want   string
	}{
		{"another cluster", []string{"a", "b", "x < a b"},
			func(n []Node) { n[1].Cluster = "k8s" }, "held: b is on cluster k8s, this one on hpc"},
		{"a cluster without dependencies", []string{"a", "x < a"},
			func(n []Node) { n[0].KeepsDependencies, n[1].KeepsDependencies = false, false }, "held: cluster hpc keeps no dependencies"},
		{"fallbacks", []string{"a", "x < a"},
			func(n []Node) { n[1].Task.Fallbacks = []string{"k8s"} }, "held: it has fallbacks: it may have to move to another cluster"},
		{"fallbacks of the upstream", []string{"a", "x < a"},
			func(n []Node) { n[0].Task.Fallbacks = []string{"k8s"} }, "held: a has fallbacks: it may have to move to another cluster"},
		{"a branch", []string{"a", "x < a"},
			func(n []Node) { n[1].Task.SkipUnless = &dagbridgev1.SkipUnless{Task: "a", Output: "o", Contains: "x"} },
			"held: behind a branch: whether it runs is known from an upstream's output"},
		{"a branch waits even if its rule does not", []string{"a", "x always < a"},
			func(n []Node) { n[1].Task.When = &dagbridgev1.When{Cel: "true"} },
			"held: behind a branch: whether it runs is known from an upstream's output"},
		{"after a branch", []string{"a", "b < a", "x none_failed < b"},
			func(n []Node) { n[1].Task.SkipUnless = &dagbridgev1.SkipUnless{Task: "a", Output: "o", Contains: "x"} },
			"held: when b is skipped, none_failed starts it and afterok does not"},
		{"an array by output", []string{"a", "x < a"},
			func(n []Node) {
				n[1].Task.Array = &dagbridgev1.Array{From: &dagbridgev1.Array_From{Task: "a", Output: "o"}}
			}, "held: its instances are known from an upstream's output"},
		{"tries of the caller's", []string{"a", "x all_done < a"},
			func(n []Node) { n[0].Task.MaxTries = 2 },
			"held: when a has failed and is to be tried again, afterany starts it and all_done does not"},
		{"a second run after an unknown end", []string{"a", "x all_done < a"},
			func(n []Node) { n[0].Task.AtMostOnce = new(false) },
			"held: when a has failed and is to be tried again, afterany starts it and all_done does not"},

		{"instance for instance", []string{"a*", "x* < a"},
			func(n []Node) { n[1].Task.Upstream[0].Instances = dagbridgev1.Edge_SAME_INDEX }, "aftercorr:a"},
		{"instance for instance beside a whole", []string{"a*", "b", "x* < a b"},
			func(n []Node) { n[2].Task.Upstream[0].Instances = dagbridgev1.Edge_SAME_INDEX }, "aftercorr:a,afterok:b"},
		{"instance for instance is afterok alone", []string{"a*", "x* all_done < a"},
			func(n []Node) { n[1].Task.Upstream[0].Instances = dagbridgev1.Edge_SAME_INDEX },
			"held: when a has failed, all_done starts it and afterok does not"},
		{"one instance of an array", []string{"a*", "x one_failed < a"},
			func(n []Node) {
				key := unmapped(n[0].Task.GetKey())
				key.MapIndex = []int32{1}
				n[1].Task.Upstream[0] = &dagbridgev1.Edge{Key: key}
			}, "afternotok:a[1]"},
		{"an array of one", []string{"a*", "x one_success < a"},
			func(n []Node) { n[0].Task.Array.Items = n[0].Task.Array.Items[:1] }, "afterok:a"},

		{"started", []string{"a", "x < a"}, func(n []Node) { started(n[1].Task.Upstream[0]) }, "after:a"},
		{"started, beside a rule", []string{"a", "b", "x all_done < a b"},
			func(n []Node) { started(n[2].Task.Upstream[0]) }, "after:a,afterany:b"},
		{"started, whatever the rest", []string{"a", "b", "x always < a b"}, func(n []Node) { started(n[2].Task.Upstream[0]) }, "after:a"},
		{"started, beside an or", []string{"a", "b", "c", "x one_success < a b c"},
			func(n []Node) { started(n[3].Task.Upstream[0]) },
			"held: a scheduler takes any of several dependencies or all of them, and STARTED is needed beside any of the others"},
		{"started, of a retried one", []string{"a+", "x < a"}, func(n []Node) { started(n[1].Task.Upstream[0]) },
			"held: a may be tried again, and only a first start counts natively"},
		{"started, of an array", []string{"a*", "x < a"}, func(n []Node) { started(n[1].Task.Upstream[0]) },
			"held: a is an array, of which a scheduler does not say when it has started"},
		{"started, with seconds", []string{"a", "x < a"}, func(n []Node) {
			started(n[1].Task.Upstream[0])
			n[1].Task.Upstream[0].Delay = durationpb.New(90 * time.Second)
		}, "held: a scheduler counts delays in whole minutes"},
		{"an array over an output, and what follows it", []string{"a", "b < a", "x < b"},
			func(n []Node) {
				n[1].Task.Array = &dagbridgev1.Array{From: &dagbridgev1.Array_From{Task: "a", Output: "o"}}
			},
			"held: b has instances that are known only when it runs"},
		{"what has to succeed", []string{"a", "b", "x all_done < a b"}, func(n []Node) { n[2].Task.Upstream[0].Condition = dagbridgev1.Edge_SUCCEEDED },
			"held: a has to succeed, whatever all_done says of the others"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			nodes := onSlurm(dag(test.dag...))
			test.change(nodes)
			verdicts := Natives(nodes)
			require.Equal(t, test.want, verdicts[len(verdicts)-1].word())
		})
	}
}

func TestNativesWithWhatIsThere(t *testing.T) {
	t.Parallel()
	existing := func(n []Node) []Node {
		for i := range n[:len(n)-1] {
			n[i].Existing = true
		}
		return n
	}
	ended := func(n []Node, state dagbridgev1.Job_State) []Node {
		n[0].Ended = state
		return n
	}
	tries := func(n []Node) []Node {
		n[0].Task.MaxTries = 2
		return n
	}
	for _, test := range []struct {
		name  string
		nodes []Node
		want  string
	}{
		{"a live one", existing(onSlurm(dag("a", "x < a"))), "afterok:a"},
		{"a live one with unknown upstreams may be skipped", existing(onSlurm(dag("a < g", "x none_failed < a"))),
			"held: when a is skipped, none_failed starts it and afterok does not"},
		{"one that has ended well", ended(existing(onSlurm(dag("a", "b", "x < a b"))), succeeded), "afterok:b"},
		{"one that has ended well enough", ended(existing(onSlurm(dag("a", "b", "x one_success < a b"))), succeeded), ""},
		{"one that was skipped", ended(existing(onSlurm(dag("a", "b", "x none_failed_min_one_success < a b"))), skipped), "afterok:b"},
		{"one that was skipped, too early", ended(existing(onSlurm(dag("a", "b?", "x none_failed_min_one_success < a b"))), skipped), "afterok:b"},
		{"one that has ended badly", ended(existing(onSlurm(dag("a", "b", "x < a b"))), cancelled),
			"held: all_success does not hold with what has ended already"},
		{"one that may be tried again", tries(ended(existing(onSlurm(dag("a", "b", "x < a b"))), failed)), "held: a is FAILED and may be tried again"},
		{"one that is not tried again", tries(ended(existing(onSlurm(dag("a", "b", "x < a b"))), succeeded)), "afterok:b"},
		{"an array that has ended", ended(existing(onSlurm(dag("a*", "b", "x < a b"))), failed), "afterok:b"},
		{"one that is not told of", onSlurm(dag("b", "x < a b")), "afterok:b"},
		{"one that is not told of and matters", onSlurm(dag("b?", "x none_failed_min_one_success < a b")),
			"held: when b is skipped and a has succeeded, none_failed_min_one_success starts it and afterok does not"},
		{"nothing that lives", onSlurm(dag("x < a")), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			verdicts := Natives(test.nodes)
			require.Equal(t, test.want, verdicts[len(verdicts)-1].word())
			for i, node := range test.nodes {
				if node.Existing {
					require.Zero(t, verdicts[i])
				}
			}
		})
	}
}

func TestNativesAnswersForEveryEdge(t *testing.T) {
	t.Parallel()
	nodes := onSlurm(dag("a", "b", "x one_success < gone a b"))
	nodes[2].Task.Upstream[0].Optional = true
	nodes[2].Task.Upstream[2].Condition = dagbridgev1.Edge_STARTED
	verdict := Natives(nodes)[2]
	require.Equal(t, Verdict{Edges: []EdgeVerdict{
		{From: "gone", Upstream: -1, Why: "optional: it has ended, or was never submitted"},
		{From: "a", Upstream: 0, Native: true, Type: translators.AfterOK, Why: "afterok"},
		{From: "b", Upstream: 1, Native: true, Type: translators.After, Why: "after"},
	}}, verdict)
}

func TestNativesOfACycleAnswers(t *testing.T) {
	t.Parallel()
	require.Len(t, Natives(onSlurm(dag("a < b", "b < a", "c < c"))), 3)
}

// What has nothing to run has no native job to wait for. At the beginning of a DAG it has ended as soon as it is there.
func TestNativesOfEmptyTasks(t *testing.T) {
	t.Parallel()
	task := func(name string, empty bool, upstream ...string) Node {
		one := &dagbridgev1.Task{Key: &dagbridgev1.TaskKey{Workflow: "w", Run: "r", Task: name}, TriggerRule: AllSuccess, Empty: empty}
		for _, up := range upstream {
			one.Upstream = append(one.Upstream, &dagbridgev1.Edge{Task: up})
		}
		return Node{Task: one, Cluster: "hpc", KeepsDependencies: true}
	}
	verdicts := Natives([]Node{task("begin", true), task("work", false, "begin"), task("more", false, "work"), task("join", true, "more"), task("last", false, "join")})
	require.True(t, verdicts[0].Held)
	require.False(t, verdicts[1].Held)
	require.False(t, verdicts[1].Edges[0].Native)
	require.True(t, verdicts[2].Edges[0].Native)
	require.True(t, verdicts[3].Held)
	require.Equal(t, "join has nothing to run, and so no native job to wait for", verdicts[4].Why)
}
