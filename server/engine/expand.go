package engine

import (
	"encoding/json"
	"fmt"
	"strconv"

	"google.golang.org/protobuf/proto"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators/graph"
)

// maxExpansion is how many instances an upstream's output may make: as many as an array can be submitted with.
const maxExpansion = 100_000

// toExpand: it is an array whose instances an upstream's output has still to say. Until then it is one job, without a native one.
func (n *node) toExpand() bool { return n.task.GetArray().GetFrom() != nil && len(n.kids) == 0 }

// expand makes the instances of such an array, now that it is to run. From then on it is as any other: its task has its items, in the store
// too, and a process that starts anew finds nothing else.
func (t *txn) expand(n *node) {
	count, instead, why := t.countItems(n)
	if count == 0 {
		t.endByRule(n, instead, "EXPANSION", why)
		return
	}
	rec := proto.CloneOf(t.rec(n.id()))
	job := rec.GetJob()
	task := graph.Shallow(n.task)
	task.Array = graph.Shallow(task.GetArray())
	for range count {
		task.Array.Items = append(task.Array.Items, &dagbridgev1.Array_Item{})
	}
	one := &planned{task: task, cluster: t.e.byName[job.GetCluster()].Cluster, user: job.GetUser(), released: true, generation: rec.GetGeneration()}
	one.split()
	stillWanted(rec)
	rec.Ready, rec.Unrolled = true, one.unrolled || one.chunk > 0
	job.Reason, job.Message = "", ""
	a := &admission{owner: job.GetOwner(), runID: job.GetRunId(), resolve: newResolver(t.Tx)}
	a.spread(t, one, &node{rec: rec, task: task}, "")
	*t.expanded = append(*t.expanded, a.staged...)
}

// countItems is how many instances an upstream's output says. Where it says none, the array ends in another state instead, for a reason.
func (t *txn) countItems(n *node) (count int, instead dagbridgev1.Job_State, why string) {
	from := n.task.GetArray().GetFrom()
	what := fmt.Sprintf("output %s of %s", from.GetOutput(), from.GetTask())
	var value *dagbridgev1.Json
	for _, u := range t.e.mem.edges(n) {
		if u.task == from.GetTask() && u.id != "" {
			value = t.rec(u.id).GetJob().GetOutputs()[from.GetOutput()]
		}
	}
	var items []json.RawMessage
	number, isNumber := elements(value.GetText())
	switch err := json.Unmarshal([]byte(value.GetText()), &items); {
	case isNumber && number > maxExpansion:
		return 0, dagbridgev1.Job_UPSTREAM_FAILED, fmt.Sprintf("%s is %d, and an array has %d instances at most", what, number, maxExpansion)
	case isNumber && number == 0:
		return 0, dagbridgev1.Job_SKIPPED, what + " is 0: there is nothing to run"
	case isNumber:
		return number, dagbridgev1.Job_STATE_UNSPECIFIED, ""
	case value == nil:
		return 0, dagbridgev1.Job_UPSTREAM_FAILED, what + " is not there: nothing says how many instances there are"
	case err != nil || items == nil:
		return 0, dagbridgev1.Job_UPSTREAM_FAILED, what + " is neither a list nor a number: nothing says how many instances there are"
	case len(items) > maxExpansion:
		return 0, dagbridgev1.Job_UPSTREAM_FAILED, fmt.Sprintf("%s has %d elements, and an array has %d instances at most", what, len(items), maxExpansion)
	case len(items) == 0:
		return 0, dagbridgev1.Job_SKIPPED, what + " is an empty list: there is nothing to run"
	}
	return len(items), dagbridgev1.Job_STATE_UNSPECIFIED, ""
}

// elements is an output that is no list, but the number of its elements.
func elements(text string) (number int, ok bool) {
	number, err := strconv.Atoi(text)
	return number, err == nil && number >= 0
}

// expanded: the instances of an array are there. One that goes one by one, or in chunks, waits for nothing any more itself. mu is held.
func (m *memory) expanded(n, fresh *node, unit bool) {
	delete(m.staged, n.id())
	n.task, n.kids = fresh.task, fresh.kids
	if !unit {
		m.unwait(n)
		n.ups = nil
	}
}
