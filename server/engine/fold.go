package engine

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators/graph"
)

// fold finds the tasks that go in together as one native array: those whose job descriptions are equal and that wait for the
// same, natively or for nothing. Their programs, environments and keys may differ, and each keeps its own job, mapping, log and
// outputs. A scheduler takes a thousand elements of an array in the time of a few jobs.
func (p *prepared) fold() {
	if p.w.GetFold() == "off" {
		return
	}
	var last int
	members := map[string][]*planned{}
	for _, i := range p.order {
		one := p.tasks[i]
		can := one.cluster.Backend.Capabilities()
		size := can.MaxArraySize
		if !can.Folds || size < 2 || one.verdict.Held || one.verdict.Any || one.task.GetArray() != nil || needsItsOwn(one.task) {
			continue
		}
		key := one.foldKey()
		together := members[key]
		switch {
		case len(together) == size:
			together = nil // another array
		case len(together) == 1:
			last++
			together[0].fold = last
			fallthrough
		case len(together) > 1:
			one.fold = together[0].fold
		}
		members[key] = append(together, one)
	}
}

// needsItsOwn: an edge is about the index, or the name, of the native job.
func needsItsOwn(task *dagbridgev1.Task) bool {
	return slices.ContainsFunc(task.GetUpstream(), func(edge *dagbridgev1.Edge) bool {
		return edge.GetInstances() == dagbridgev1.Edge_SAME_INDEX || edge.GetCondition() == dagbridgev1.Edge_SINGLETON
	})
}

// foldKey is the same for tasks that can go in together: all that a task says but its program and who it is.
func (one *planned) foldKey() string {
	t := graph.Shallow(one.task)
	t.Key, t.TryNumber, t.Uid, t.Command, t.Script, t.Env, t.Labels = nil, 0, "", nil, nil, nil, nil
	edges := make([]string, len(t.Upstream))
	for i, edge := range t.Upstream {
		edges[i] = deterministic(edge)
	}
	slices.Sort(edges)
	t.Upstream = nil
	return strings.Join(append(edges, one.cluster.Name, deterministic(t)), "\x00")
}

func deterministic(m proto.Message) string {
	text, _ := proto.MarshalOptions{Deterministic: true}.Marshal(m) // it came over the wire: it can go back
	return string(text)
}
