package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators"
	"github.com/dagbridge/dagbridge/translators/graph"
)

// Plan says what would be submitted where, and which edges the schedulers would keep. It contacts nothing. Errors:
// translators.Faults.
func Plan(w *dagbridgev1.Workflow, clusters []Cluster) (*dagbridgev1.Plan, error) {
	return plan(prepareClone(w, clusters, nowhere))
}

// Plan is the package's Plan for an owner, with the gateway's clusters and jobs.
func (e *Engine) Plan(owner string, w *dagbridgev1.Workflow) (*dagbridgev1.Plan, error) {
	around := e.surroundings(owner)
	around.planning = true
	return plan(prepareClone(w, e.places(), around))
}

// Faults are those for which Plan would refuse a workflow. They cost less than a plan.
func Faults(w *dagbridgev1.Workflow, clusters []Cluster) translators.Faults {
	_, faults := prepareClone(w, clusters, nowhere)
	return faults
}

// Faults is the package's Faults for an owner, with the gateway's clusters and jobs.
func (e *Engine) Faults(owner string, w *dagbridgev1.Workflow) translators.Faults {
	_, faults := prepareClone(w, e.places(), e.surroundings(owner))
	return faults
}

// nowhere are the surroundings without a gateway: whatever an edge leads to may be there, and whoever is asked for.
var nowhere = surroundings{
	planning: true,
	user:     func(asked string) (string, error) { return asked, nil },
	known:    func(*dagbridgev1.TaskKey) bool { return true },
	node:     func(*dagbridgev1.TaskKey) (graph.Node, bool) { return graph.Node{}, false },
}

func prepareClone(w *dagbridgev1.Workflow, clusters []Cluster, around surroundings) (*prepared, translators.Faults) {
	return prepare(graph.Normalize(withRun(w, "plan")), clusters, around)
}

func plan(p *prepared, faults translators.Faults) (*dagbridgev1.Plan, error) {
	if len(faults) > 0 {
		return nil, faults
	}
	out := &dagbridgev1.Plan{}
	for _, one := range p.tasks {
		out.Tasks = append(out.Tasks, p.plannedTask(one))
		for k, edge := range one.verdict.Edges {
			out.Edges = append(out.Edges, &dagbridgev1.Plan_PlannedEdge{
				From: cmp.Or(graph.Upstream(one.task, one.task.GetUpstream()[k]).GetTask(), edge.From), To: one.task.GetKey().GetTask(), Native: edge.Native, Why: edge.Why,
			})
		}
	}
	return out, nil
}

// plannedTask renders one task, with its upstreams' names where their native ids would stand.
func (p *prepared) plannedTask(one *planned) *dagbridgev1.Plan_PlannedTask {
	if one.task.GetEmpty() {
		return &dagbridgev1.Plan_PlannedTask{
			Task: one.task.GetKey().GetTask(), MapIndex: one.task.GetKey().GetMapIndex(), Cluster: one.cluster.Name, Held: one.verdict.Held, Why: one.verdict.Why,
		}
	}
	sub := one.submission()
	sub.Hold = false // a person submits parents first
	sub.Depends.Any = one.verdict.Any
	for k, edge := range one.verdict.Edges {
		up := graph.Upstream(one.task, one.task.GetUpstream()[k])
		switch {
		case edge.Foreign:
			sub.Depends.Terms = append(sub.Depends.Terms, graph.Foreign(one.task, one.task.GetUpstream()[k]))
		case edge.Native:
			sub.Depends.Terms = append(sub.Depends.Terms, translators.Dependency{
				Type: edge.Type, NativeID: "<" + up.GetTask() + ">", Delay: one.task.GetUpstream()[k].GetDelay().AsDuration(),
			})
		}
	}
	sub.Inputs = p.inputs(one)
	rendering, faults := one.cluster.Backend.Render(sub)
	text := cmp.Or(rendering.Text, faults.Error())
	for _, f := range one.unready {
		rendering.Notices = append(rendering.Notices, "not ready to run: "+f.Description)
	}
	if n := p.together(one); n > 1 {
		rendering.Notices = append(rendering.Notices, fmt.Sprintf("goes in as one element of an array of %d tasks that differ only in their programs (fold: off keeps them apart)", n))
	}
	if one.chunk > 0 {
		rendering.Notices = append(rendering.Notices, fmt.Sprintf("goes in as arrays of %d instances at most, of which this is the first", one.chunk))
	}
	return &dagbridgev1.Plan_PlannedTask{
		Task: one.task.GetKey().GetTask(), MapIndex: one.task.GetKey().GetMapIndex(), Cluster: one.cluster.Name, NativeText: text,
		Held: one.verdict.Held, Why: one.verdict.Why, Notices: rendering.Notices, Instances: int32(len(one.task.GetArray().GetItems())),
	}
}

// together is how many tasks go in as one array with a task, itself included.
func (p *prepared) together(one *planned) (n int) {
	for _, other := range p.tasks {
		if one.fold > 0 && other.fold == one.fold {
			n++
		}
	}
	return n
}

// inputs are the outputs of upstream tasks on the same cluster, where it is one whose jobs read each other's.
func (p *prepared) inputs(one *planned) []translators.Input {
	var inputs []translators.Input
	for _, i := range slices.Compact(slices.Sorted(slices.Values(one.upstream))) {
		if i < 0 || p.tasks[i].task.GetEmpty() || p.tasks[i].cluster.Name != one.cluster.Name || !one.cluster.Backend.Capabilities().Dependencies {
			continue
		}
		up := p.tasks[i]
		in := translators.Input{Task: up.task.GetKey().GetTask(), Mapped: up.task.GetArray() != nil}
		for position := range up.task.GetArray().GetItems() {
			in.Jobs = append(in.Jobs, translators.InputJob{JobID: up.blankID(), Position: position})
		}
		if !in.Mapped {
			in.Jobs = []translators.InputJob{{JobID: up.blankID(), Position: -1}}
		}
		inputs = append(inputs, in)
	}
	slices.SortFunc(inputs, func(a, b translators.Input) int { return strings.Compare(a.Task, b.Task) })
	return inputs
}
