package engine

import (
	"fmt"
	"slices"
	"strings"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators"
	"github.com/dagbridge/dagbridge/translators/graph"
)

// prepared is a workflow that has passed every check, with what is to become of each task.
type prepared struct {
	w     *dagbridgev1.Workflow
	tasks []*planned
	// order is topological.
	order []int
}

// planned is one task of it.
type planned struct {
	index   int
	task    *dagbridgev1.Task
	cluster Cluster
	// user that it runs as; "": the cluster's own.
	user    string
	verdict graph.Verdict
	// upstream is, for each edge, the index of its task within the workflow; -1: outside.
	upstream []int
	// unrolled: its instances go one by one.
	unrolled bool
	// chunk is how many of its instances a native array takes, where that is not all of them; else 0.
	chunk int
	// fold numbers, from 1, the tasks that go in together as one array; 0: it goes in by itself.
	fold int
	// unready is what the cluster lacks for the task, of one that is only planned.
	unready translators.Faults
	// hold, batch: see storev1.JobRecord. A batch is numbered from 1 within the workflow; 0: none.
	hold  bool
	batch int
	// released: its rule has held.
	released bool
	// generation: see storev1.JobRecord.
	generation int32
}

// surroundings are what a workflow's edges may lead to outside it.
type surroundings struct {
	// planning: nothing is to be submitted, so that a task may want an image that its cluster does not have.
	planning bool
	// user is as whom a task runs that names this one, or nobody; an error is a sentence.
	user func(asked string) (string, error)
	// known: the key has been submitted before.
	known func(*dagbridgev1.TaskKey) bool
	// node is the live job of a key, if any.
	node func(*dagbridgev1.TaskKey) (graph.Node, bool)
}

// prepare checks a normalised workflow and plans it. It contacts no cluster.
func prepare(w *dagbridgev1.Workflow, clusters []Cluster, around surroundings) (*prepared, translators.Faults) {
	faults := graph.Check(w, around.known)
	p := &prepared{w: w}
	for i, task := range w.GetTasks() {
		one := &planned{index: i, task: task}
		p.tasks = append(p.tasks, one)
		field := fmt.Sprintf("tasks[%d]", i)
		one.cluster = clusterNamed(clusters, task.GetCluster())
		switch {
		case one.cluster.Backend == nil:
			faults.Add(field+".cluster", "there is no cluster %q; there are: %s", task.GetCluster(), names(clusters))
		case !faultIn(faults, field):
			faults = append(faults, graph.CheckForeign(field, task, one.cluster.Name, one.cluster.Backend.Capabilities().Dependencies)...)
			faults = append(faults, one.act(field, around)...)
			if !task.GetEmpty() { // else nothing of it goes to the cluster
				found := append(renderFaults(field, one), one.launcher(field)...)
				if around.planning {
					found, one.unready = partition(found, field)
				}
				faults = append(faults, found...)
			}
		}
	}
	if len(faults) > 0 {
		return nil, faults
	}
	p.order = graph.Order(w.GetTasks())
	p.judge(around)
	p.fold()
	p.group()
	return p, nil
}

// clusterNamed is the cluster of a name, the first one for "".
func clusterNamed(clusters []Cluster, name string) Cluster {
	for _, c := range clusters {
		if c.Name == name || name == "" {
			return c
		}
	}
	return Cluster{}
}

func names(clusters []Cluster) string {
	all := make([]string, len(clusters))
	for i, c := range clusters {
		all[i] = c.Name
	}
	return strings.Join(all, ", ")
}

// faultIn: something inside the field is faulty already, so that its cluster's translator need not be asked.
func faultIn(faults translators.Faults, field string) bool {
	for _, f := range faults {
		if f.Field == field || strings.HasPrefix(f.Field, field+".") || strings.HasPrefix(f.Field, field+"[") {
			return true
		}
	}
	return false
}

// renderFaults are what the task's cluster cannot say. Instances of an array that go one by one are tried on the first.
func renderFaults(field string, one *planned) translators.Faults {
	var faults translators.Faults
	for _, sub := range one.submissions() {
		if faults = one.cluster.Backend.Check(sub); len(faults) > 0 {
			break
		}
	}
	for i := range faults {
		faults[i].Field = field + "." + strings.TrimPrefix(faults[i].Field, "task.")
	}
	return faults
}

// launcher is what is wrong with a task that starts this program, on a cluster whose jobs do not find it.
func (one *planned) launcher(field string) (faults translators.Faults) {
	if translators.Launches(one.task) && !one.cluster.Backend.Capabilities().Launcher {
		faults.Add(field+".container", "steps of pipelines do not run on %s: its jobs do not find this program", one.cluster.Name)
	}
	return faults
}

// clusterFields are what a cluster's configuration may lack, beside images.
var clusterFields = []string{"slurm.container", "kubernetes.namespace", "kubernetes.template.kind"}

// partition parts faults of a task into those of its description and those of where it would run: the image, and what runs it.
func partition(all translators.Faults, field string) (faults, unready translators.Faults) {
	for _, f := range all {
		switch {
		case strings.HasPrefix(f.Field, field+".container"), slices.Contains(clusterFields, strings.TrimPrefix(f.Field, field+".")):
			unready = append(unready, f)
		default:
			faults = append(faults, f)
		}
	}
	return faults, unready
}

// submission is the task as it would be submitted, before it has a job; of a large array its first chunk.
func (one *planned) submission() translators.Submission { return one.submissions()[0] }

// submissions are all the chunks.
func (one *planned) submissions() []translators.Submission {
	id := one.blankID()
	job := &dagbridgev1.Job{Id: id, Key: one.task.GetKey(), TryNumber: one.task.GetTryNumber(), Uid: one.task.GetUid(), User: one.user}
	sub := translators.Submission{Token: token(id, 1), Job: job, Task: one.task, Hold: one.hold}
	items, size := one.task.GetArray().GetItems(), one.cluster.Backend.Capabilities().MaxArraySize
	if len(items) == 0 {
		return []translators.Submission{sub}
	}
	if one.unrolled || size == 0 {
		sub.Task = graph.InstanceTask(one.task, 0)
		return []translators.Submission{sub}
	}
	sub.MaxParallel = int(one.task.GetArray().GetMaxParallel())
	var all []translators.Submission
	for from := 0; from < len(items); from += size {
		chunk := sub
		for i, item := range items[from:min(from+size, len(items))] {
			chunk.Instances = append(chunk.Instances, translators.Instance{Position: i, JobID: id, MapIndex: graph.MapIndex(from + i), Item: item})
		}
		all = append(all, chunk)
	}
	return all
}

// blankID stands for the id of a job that is not made yet: each task's own, so that texts submitted by hand do not take each
// other for doubles.
func (one *planned) blankID() string { return fmt.Sprintf("00000000-0000-7000-8000-%012d", one.index) }

// judge decides which tasks go natively.
func (p *prepared) judge(around surroundings) {
	nodes := make([]graph.Node, 0, len(p.tasks))
	for _, one := range p.tasks {
		nodes = append(nodes, graph.Node{
			Task: one.task, Cluster: one.cluster.Name, User: one.user, KeepsDependencies: one.cluster.Backend.Capabilities().Dependencies,
		})
	}
	outside := map[string]bool{}
	for i, upstream := range graph.Upstreams(p.w.GetTasks()) {
		one := p.tasks[i]
		one.upstream = upstream
		for j, edge := range one.task.GetUpstream() {
			if upstream[j] >= 0 {
				continue
			}
			key := graph.Upstream(one.task, edge)
			if key == nil { // foreign
				continue
			}
			if s := graph.KeyString(key); !outside[s] {
				if node, ok := around.node(key); ok {
					outside[s] = true
					nodes = append(nodes, node)
				}
			}
		}
	}
	verdicts := graph.Natives(nodes)
	for _, i := range p.order {
		one := p.tasks[i]
		one.verdict = verdicts[i]
		for k, u := range one.upstream {
			switch {
			case u < 0 || one.verdict.Held || !one.verdict.Edges[k].Native:
			case p.tasks[u].unrolled:
				one.holdBecause(p.tasks[u].task.GetKey().GetTask() + " goes one by one")
			case p.tasks[u].chunk > 0 && (one.verdict.Any || !ofChunks(one.verdict.Edges[k].Type)):
				one.holdBecause(fmt.Sprintf("%s goes in several arrays, of which the scheduler cannot say together: %s", p.tasks[u].task.GetKey().GetTask(), one.verdict.Edges[k].Type))
			}
		}
		if one.split(); one.unrolled && !one.verdict.Held && len(one.task.GetUpstream()) > 0 {
			one.holdBecause("the array goes one by one here")
		}
	}
}

// split says how an array goes in: as one native array, in chunks, or one by one, where the cluster has no arrays, or each
// instance waits here for its own upstream, or fewer may run at once than there are chunks.
func (one *planned) split() {
	array, size := one.task.GetArray(), one.cluster.Backend.Capabilities().MaxArraySize
	items := len(array.GetItems())
	switch {
	case items == 0:
	case size == 0 || one.verdict.Held && sameIndex(one.task):
		one.unrolled = true
	case items > size:
		chunks, parallel := (items+size-1)/size, int(array.GetMaxParallel())
		if one.unrolled = parallel > 0 && parallel < chunks; !one.unrolled {
			one.chunk = size
		}
	}
}

// ofChunks: a dependency on each chunk of an array says the same as one on all of it.
func ofChunks(kind translators.DependencyType) bool {
	return kind == translators.AfterOK || kind == translators.AfterAny || kind == translators.AfterCorr
}

// holdBecause overrules a native verdict.
func (one *planned) holdBecause(why string) {
	one.verdict.Held, one.verdict.Why = true, why
	for i := range one.verdict.Edges {
		if edge := &one.verdict.Edges[i]; !edge.Foreign {
			edge.Native, edge.Why = false, why
		}
	}
}

func withoutIndex(key *dagbridgev1.TaskKey) *dagbridgev1.TaskKey {
	return &dagbridgev1.TaskKey{
		Deployment: key.GetDeployment(), Orchestrator: key.GetOrchestrator(), Workflow: key.GetWorkflow(), Run: key.GetRun(), Task: key.GetTask(),
	}
}

func sameIndex(task *dagbridgev1.Task) bool {
	for _, edge := range task.GetUpstream() {
		if edge.GetInstances() == dagbridgev1.Edge_SAME_INDEX {
			return true
		}
	}
	return false
}

// group finds what must be in the scheduler before any of it starts. Tasks that native edges join are one batch, as far as
// no task that waits here lies between them: what comes after such a task goes in with it, later. A batch's roots go in held.
// So does a task that waits natively for anything but the success of all, until the scheduler has shown its dependencies:
// success leaves a marker that the job itself checks (Submission.Guard); other ends may leave none.
func (p *prepared) group() {
	level := make([]int, len(p.tasks))
	root := make([]int, len(p.tasks)) // union-find
	hasParent, hasChild := make([]bool, len(p.tasks)), make([]bool, len(p.tasks))
	for i := range root {
		root[i] = i
	}
	find := func(i int) int {
		for root[i] != i {
			root[i] = root[root[i]]
			i = root[i]
		}
		return i
	}
	for _, i := range p.order {
		one := p.tasks[i]
		for _, u := range one.upstream {
			if u >= 0 {
				level[i] = max(level[i], level[u])
			}
		}
		if one.verdict.Held {
			level[i]++
			continue
		}
		for k, edge := range one.verdict.Edges {
			if !edge.Native || edge.Foreign {
				continue
			}
			hasParent[i] = true
			if u := one.upstream[k]; u >= 0 && level[u] == level[i] {
				hasChild[u] = true
				root[find(u)] = find(i)
			}
		}
	}
	// Tasks that go in together are one native job.
	first := map[int]int{}
	for i, one := range p.tasks {
		if f := one.fold; f > 0 {
			if _, there := first[f]; !there {
				first[f] = i
			}
			root[find(i)] = find(first[f])
			hasChild[first[f]] = hasChild[first[f]] || hasChild[i]
		}
	}
	for i, one := range p.tasks {
		if one.fold > 0 {
			hasChild[i] = hasChild[first[one.fold]]
		}
		if hasChild[i] || hasParent[i] {
			one.batch = find(i) + 1
		}
		one.hold = hasChild[i] && !hasParent[i] || hasParent[i] && !guarded(one.verdict.Any, one.dependencyTypes())
	}
}

// dependencyTypes are those of its native edges, in the order of its edges; "" of the others and of foreign ones.
func (one *planned) dependencyTypes() []string {
	types := make([]string, len(one.verdict.Edges))
	for k, edge := range one.verdict.Edges {
		if edge.Native && !edge.Foreign {
			types[k] = string(edge.Type)
		}
	}
	return types
}

// guarded: all that a job waits for natively is success, which leaves a marker that its script checks.
func guarded(alternatives bool, dependencyTypes []string) bool {
	return !alternatives && !slices.ContainsFunc(dependencyTypes, func(kind string) bool {
		return kind != "" && kind != string(translators.AfterOK)
	})
}
