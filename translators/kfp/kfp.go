// Package kfp reads a pipeline as the SDK of Kubeflow Pipelines compiles it (the intermediate representation, schema 2.1.0, alone or
// with its platform's document, or within a PipelineVersion or a PipelineJob) and makes a workflow of native tasks of it.
//
// Every executor is a task whose program is the launcher of this same binary, with a Step on its stdin: what to run, its inputs, its
// outputs. What is known when the pipeline is translated stands in the step: the pipeline's parameters, constants, what is
// put together of them, the items of loops. What other steps leave is named by task and index, and looked up by the launcher
// when it starts; it finds it in the run's folder, where each step leaves its outputs when it has succeeded. So edges say only
// who waits for whom.
//
//   - A task's id is its path through the DAGs ("for-loop-1/train"). DAGs themselves have no job; where something has to
//     wait for all of one that may be skipped in part, there is a task with nothing to run, named as the DAG.
//   - A condition is a step of its own, "<DAG>/@condition", which judges the pipeline's CEL as KFP's driver does; when it does not
//     hold it ends SKIPPED, and with it all that is in the DAG. An error fails it.
//   - A loop is one array where all in it can be; otherwise, its instances are tasks with a map index, one number for each
//     loop around them. Where its items, or those of a loop within it, are known only when the pipeline runs, a step,
//     "<loop>/@items", lists the instances, and each task in it is one array over the list.
//   - What runs whatever became of the tasks before it waits for every one of these, however deep, to end.
//   - A task that is retried, and one whose failure others ignore, fails the run only if it is the last; what an exit handler guards
//     does always.
//
// The step cache of KFP is not here: enableCache means nothing, each step runs.
//
// The package is pure: no context, network, files, clock, randomness or logging. It also has what the launcher has to do without
// them: placeholders, types, conditions, the executor's input.
package kfp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators"
)

const (
	// field is where a pipeline stands in a request.
	field = "kfpPipeline"
	// maxTasks is how many tasks may come of a pipeline, and maxWork how many of its parts are gone through for that: DAGs within
	// DAGs double from one to the next.
	maxTasks = 20_000
	maxWork  = 100_000
	// maxEdges is how many edges they may have.
	maxEdges = 500_000
	// maxItems is how many instances a loop may have.
	maxItems = 100_000
)

// Translate makes tasks of a workflow's kfpPipeline. A run that does not say whose it is is one of KFP's, of the pipeline. With
// placeholders, parameters may be without a value: they are shown by their names, and told by a notice.
func Translate(w *dagbridgev1.Workflow, placeholders bool) (*translators.Translation, translators.Faults) {
	t := &translator{
		workflow: proto.CloneOf(w), placeholders: placeholders, shown: map[string]*Value{}, notices: map[string][]string{},
		skippedBy: map[string][]Condition{},
	}
	p, err := read(w.GetKfpPipeline())
	if err == nil {
		t.expressions, err = NewExpressions()
	}
	if err != nil {
		t.faults.Add(field, "%v", err)
		return nil, t.faults
	}
	t.spec, t.platform = p.spec, p.platform
	t.name()
	t.root(p.parameters)
	t.selection()
	if len(t.workflow.Tasks) == 0 && len(t.faults) == 0 {
		t.faults.Add(field, "there is nothing to run in it")
	}
	if len(t.faults) > 0 {
		return nil, t.faults
	}
	t.workflow.KfpPipeline, t.workflow.Parameters = "", nil
	return &translators.Translation{Field: field, Workflow: t.workflow, Notices: t.general, TaskNotices: t.notices}, nil
}

// translator is the work on one pipeline.
type translator struct {
	workflow     *dagbridgev1.Workflow
	placeholders bool
	spec         *pipelineSpec
	platform     platformSpec
	expressions  *Expressions
	// shown are the parameters without a value, of which a plan shows the names.
	shown map[string]*Value
	// skippedBy are, for each task, the conditions that may skip it.
	skippedBy   map[string][]Condition
	work, edges int
	// unknown: a loop was met within one that goes instance by instance, and cannot, since its own items are not known yet.
	unknown bool
	general []string
	notices map[string][]string
	faults  translators.Faults
}

// name says whose the run is.
func (t *translator) name() {
	t.workflow.Run = cmp.Or(t.workflow.Run, &dagbridgev1.Run{})
	run := t.workflow.Run
	if t.spec.PipelineInfo.Name == "" && run.GetWorkflow() == "" {
		t.faults.Add(field, "pipelineInfo.name: is missing")
	}
	run.Deployment = cmp.Or(run.Deployment, "default")
	run.Orchestrator, run.Workflow = cmp.Or(run.Orchestrator, "kfp"), cmp.Or(run.Workflow, t.spec.PipelineInfo.Name)
}

// root goes through the outermost DAG. A single component may be compiled by itself; then it is the only task.
func (t *translator) root(brought map[string]json.RawMessage) {
	if w := t.workflow; w.GetConf() != nil || w.GetLogicalDate() != nil {
		t.faults.Add(field, "conf and logicalDate are an Airflow DAG's: a pipeline has parameters")
	}
	if root := t.spec.DefaultPipelineRoot; strings.Contains(strings.TrimPrefix(root, "file://"), "://") {
		t.once("artifacts are kept in the cluster's own folder: the pipeline's root %s is in an object store, which is not supported yet", root)
	}
	in := inputs{parameters: t.rootParameters(brought), artifacts: map[string]*Value{}}
	for _, name := range sorted(t.spec.Root.InputDefinitions.Artifacts) {
		switch {
		case t.spec.Root.InputDefinitions.Artifacts[name].IsOptional:
		case t.placeholders:
			in.artifacts[name] = t.show(name)
		default:
			in.artifacts[name] = t.show(name) // so that whatever else is wrong is told, too
			t.faults.Add(field, "the pipeline's own input %s is an artifact, which nothing can hand to it: import it (dsl.importer)", brief(name))
		}
	}
	if t.spec.Root.DAG == nil {
		t.faults.Add(field, "root.dag: is missing")
		return
	}
	t.dag(t.spec.Root, in, scope{})
}

// selection takes some of the tasks, with those of a condition or a join of theirs.
func (t *translator) selection() {
	known := map[string]bool{}
	for _, task := range t.workflow.GetTasks() {
		known[task.GetKey().GetTask()] = true
	}
	for i, name := range t.workflow.GetTasksSelected() {
		if !known[name] && len(t.faults) == 0 {
			t.faults.Add(fmt.Sprintf("tasksSelected[%d]", i), "the pipeline has no task %s; it has: %s", brief(name), translators.SomeOf(sorted(known)))
		}
	}
}

// fault is something wrong with a task.
func (t *translator) fault(task, format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	if f := (translators.Fault{Field: field, Description: "task " + task + ": " + what}); !slices.Contains(t.faults[max(0, len(t.faults)-100):], f) {
		t.faults.Add(field, "task %s: %s", task, what)
	}
}

// notice is something that a person should know of a task.
func (t *translator) notice(task, format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(t.notices[task], text) {
		t.notices[task] = append(t.notices[task], text)
	}
}

// once is a notice on the whole pipeline.
func (t *translator) once(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(t.general, text) {
		t.general = append(t.general, text)
	}
}

// isShown: the value is a parameter's name in the place of its value.
func (t *translator) isShown(value *Value) bool {
	for _, shown := range t.shown {
		if shown == value {
			return true
		}
	}
	return false
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
