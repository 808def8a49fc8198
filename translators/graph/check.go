package graph

import (
	"fmt"
	"slices"
	"unicode/utf8"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators"
)

// Check finds every fault of a normalised workflow at once, beyond the rules on single fields that the protocol itself
// states. Fields are paths like "tasks[2].upstream[0].task", counted in the normalised workflow. Known says whether a key
// outside the workflow has been submitted.
func Check(w *dagbridgev1.Workflow, known func(*dagbridgev1.TaskKey) bool) translators.Faults {
	c := &checker{w: w, index: newIndex(w.GetTasks()), known: known, names: map[string]bool{}, missing: map[string]bool{}}
	for _, t := range w.GetTasks() {
		c.names[t.GetKey().GetTask()] = true
	}
	c.upstream = c.edges()
	c.checkUnsupportedWorkflow()
	c.checkRun()
	for i, t := range w.GetTasks() {
		at := fmt.Sprintf("tasks[%d]", i)
		c.checkKey(i, at, t)
		c.checkUnsupportedTask(at, t)
		c.checkProgram(at, t)
		c.checkEnv(at, t)
		c.checkResources(at, t)
		c.checkRetry(at, t)
		c.checkArray(at, t)
		c.checkEdges(i, at, t)
		c.checkTeardown(i, at, t)
		c.checkBranch(at, t)
	}
	c.checkCycles()
	return c.faults
}

// checker gathers the faults of one workflow.
type checker struct {
	w *dagbridgev1.Workflow
	index
	// upstream are the positions of each task's upstreams, edge by edge.
	upstream [][]int
	known    func(*dagbridgev1.TaskKey) bool
	// names of the tasks, whatever their map index.
	names map[string]bool
	// missing are the parts of the key that the whole run lacks.
	missing map[string]bool
	nearest nearest
	faults  translators.Faults
}

func (c *checker) add(field, format string, args ...any) { c.faults.Add(field, format, args...) }

// keyParts are the parts without which a key names nothing. All but the last are the run's.
var keyParts = []struct {
	name string
	get  func(*dagbridgev1.TaskKey) string
}{
	{"deployment", (*dagbridgev1.TaskKey).GetDeployment},
	{"orchestrator", (*dagbridgev1.TaskKey).GetOrchestrator},
	{"workflow", (*dagbridgev1.TaskKey).GetWorkflow},
	{"run", (*dagbridgev1.TaskKey).GetRun},
	{"task", (*dagbridgev1.TaskKey).GetTask},
}

func (c *checker) checkRun() {
	if len(c.tasks) == 0 && c.w.GetAirflowDag() == nil && c.w.GetKfpPipeline() == "" {
		if len(c.w.GetTasksSelected()) > 0 {
			c.add("tasks", "is empty once only tasksSelected are taken: a workflow needs at least one task")
		} else {
			c.add("tasks", "is empty: a workflow needs at least one task")
		}
	}
	for i, name := range c.w.GetTasksSelected() {
		if !c.names[name] {
			c.add(fmt.Sprintf("tasksSelected[%d]", i), "there is no task %s%s", quote(name), c.nearest.hint(name, c.names))
		}
	}
	if parent := c.w.GetRun().GetParent(); parent != nil {
		c.checkKeyParts("run.parent", parent)
	}
	run := c.runKey()
	for _, part := range keyParts[:len(keyParts)-1] {
		// Where the run lacks a part and so does every task, it is one fault, not one a task.
		has := func(t *dagbridgev1.Task) bool { return part.get(t.GetKey()) != "" }
		if part.get(run) == "" && len(c.tasks) > 1 && !slices.ContainsFunc(c.tasks, has) {
			c.add("run."+part.name, "is missing")
			c.missing[part.name] = true
		}
	}
}

// runKey is the run's key in the form of a task's, with no task.
func (c *checker) runKey() *dagbridgev1.TaskKey {
	r := c.w.GetRun()
	return &dagbridgev1.TaskKey{
		Deployment: r.GetDeployment(), Orchestrator: r.GetOrchestrator(), Workflow: r.GetWorkflow(), Run: r.GetRun(),
	}
}

func (c *checker) checkKey(i int, at string, t *dagbridgev1.Task) {
	key := t.GetKey()
	c.checkKeyParts(at+".key", key)
	run := c.runKey()
	for _, part := range keyParts[:len(keyParts)-1] {
		// A part that the run leaves out is each task's own.
		if want, got := part.get(run), part.get(key); want != "" && got != want {
			c.add(at+".key."+part.name, "is %s, but the run's is %s: a task belongs to the run it is submitted with",
				quote(got), quote(want))
		}
	}
	if first := c.find(key); first != i {
		c.add(at+".key.task", "task %s is there already, as tasks[%d]: every task of a run has its own name", quote(label(key)), first)
	} else if array := c.arrayOf(c.position[runOf(key)], key.GetTask(), key.GetMapIndex()); array >= 0 {
		c.add(at+".key.mapIndex", "task %s is there already, as an instance of the array tasks[%d]", quote(label(key)), array)
	}
}

// checkKeyParts says whether a key has all its parts.
func (c *checker) checkKeyParts(at string, key *dagbridgev1.TaskKey) bool {
	before := len(c.faults)
	for _, part := range keyParts {
		switch value := part.get(key); {
		case value == "" && !c.missing[part.name]:
			c.add(at+"."+part.name, "is missing")
		case !utf8.ValidString(value):
			c.add(at+"."+part.name, "is not UTF-8: %s", quote(value))
		}
	}
	return len(c.faults) == before
}
