package graph

import (
	"fmt"
	"strings"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// dag builds tasks from lines like "join none_failed < a b": a name, a trigger rule if it is not the default, and the
// upstreams. A name may carry marks: "!" set-up, "?" may skip itself by its exit code, "*" an array of three, "+" is retried,
// "~" is retried after a node has failed.
func dag(lines ...string) []*dagbridgev1.Task {
	var tasks []*dagbridgev1.Task
	for _, line := range lines {
		head, upstream, _ := strings.Cut(line, "<")
		words := strings.Fields(head)
		name := strings.TrimRight(words[0], "!?*+~")
		t := &dagbridgev1.Task{
			Key:         &dagbridgev1.TaskKey{Deployment: "default", Orchestrator: "o", Workflow: "w", Run: "r", Task: name},
			Command:     &dagbridgev1.Command{Argv: []string{"true"}},
			TriggerRule: AllSuccess,
			MaxTries:    1,
			AtMostOnce:  new(true),
		}
		if len(words) > 1 {
			t.TriggerRule = words[1]
		}
		for _, mark := range words[0][len(name):] {
			switch mark {
			case '!':
				t.Setup = true
			case '?':
				t.SkipExitCodes = []int32{99}
			case '*':
				t.Array = &dagbridgev1.Array{Items: []*dagbridgev1.Array_Item{{}, {}, {}}}
			case '+':
				t.Retry = &dagbridgev1.Retry{MaxRetries: 1}
			case '~':
				t.Retry = &dagbridgev1.Retry{MaxInfrastructureRetries: 1}
			}
		}
		for _, up := range strings.Fields(upstream) {
			t.Upstream = append(t.Upstream, &dagbridgev1.Edge{Task: up, Instances: dagbridgev1.Edge_ALL})
		}
		tasks = append(tasks, t)
	}
	return tasks
}

// onSlurm puts tasks on one cluster that keeps dependencies.
func onSlurm(tasks []*dagbridgev1.Task) []Node {
	nodes := make([]Node, len(tasks))
	for i, t := range tasks {
		nodes[i] = Node{Task: t, Cluster: "hpc", KeepsDependencies: true}
	}
	return nodes
}

// word is a verdict in short: "held: why", or the native edges.
func (v Verdict) word() string {
	if v.Held {
		return "held: " + v.Why
	}
	var words []string
	for _, e := range v.Edges {
		if e.Native {
			words = append(words, fmt.Sprintf("%s:%s", e.Type, e.From))
		}
	}
	separator := ","
	if v.Any {
		separator = "?"
	}
	return strings.Join(words, separator)
}
