package graph

import (
	"slices"
	"time"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Normalize is a clone of a workflow in which everything left out has its default, so that nothing after it knows defaults.
// Tasks take what they lack from the run (the parts of the key, try and uid) and the workflow (the cluster). Edges name
// their upstreams as before; what a tear-down waits for is written out. Of a workflow with tasksSelected only
// those tasks are left, and their edges to the others are optional: an earlier submission is waited for, absence is not.
//
// A run that is left out altogether is orchestrator "cli" and the workflow's name, unless its tasks say whose they are; its
// run id, random, is the caller's business.
func Normalize(w *dagbridgev1.Workflow) *dagbridgev1.Workflow {
	w = proto.CloneOf(w)
	if w == nil {
		w = &dagbridgev1.Workflow{}
	}
	if w.Run == nil {
		w.Run = &dagbridgev1.Run{}
		if !slices.ContainsFunc(w.Tasks, func(t *dagbridgev1.Task) bool { return t.GetKey().GetOrchestrator() != "" }) {
			w.Run.Orchestrator = "cli"
		}
	}
	run := w.Run
	setDefault(&run.Deployment, "default")
	setDefault(&run.Workflow, w.Name)
	setDefault(&run.TryNumber, 1)
	setDefault(&run.Mode, dagbridgev1.Run_ALL)
	if run.Parent != nil {
		setDefault(&run.Parent.Deployment, "default")
	}
	setDefault(&w.WaitFor, dagbridgev1.WaitFor_ACCEPTED)
	setDefault(&w.OnConflict, dagbridgev1.OnConflict_REFUSE)
	setDefault(&w.IfLive, dagbridgev1.IfLive_ATTACH)

	selectTasks(w)
	for _, t := range w.Tasks {
		normalizeTask(t, w)
	}
	writeScopes(w.Tasks)
	return w
}

func setDefault[T comparable](field *T, value T) {
	var unset T
	if *field == unset {
		*field = value
	}
}

func selectTasks(w *dagbridgev1.Workflow) {
	if len(w.TasksSelected) == 0 {
		return
	}
	selected := make(map[string]bool, len(w.TasksSelected))
	for _, name := range w.TasksSelected {
		selected[name] = true
	}
	left := map[string]bool{}
	for _, t := range w.Tasks {
		left[t.GetKey().GetTask()] = !selected[t.GetKey().GetTask()]
	}
	w.Tasks = slices.DeleteFunc(w.Tasks, func(t *dagbridgev1.Task) bool { return left[t.GetKey().GetTask()] })
	for _, t := range w.Tasks {
		for _, e := range t.Upstream {
			if left[e.GetTask()] {
				e.Optional = true
			}
		}
	}
}

func normalizeTask(t *dagbridgev1.Task, w *dagbridgev1.Workflow) {
	if t.Key == nil {
		t.Key = &dagbridgev1.TaskKey{}
	}
	setDefault(&t.Key.Deployment, w.Run.Deployment)
	setDefault(&t.Key.Orchestrator, w.Run.Orchestrator)
	setDefault(&t.Key.Workflow, w.Run.Workflow)
	setDefault(&t.Key.Run, w.Run.Run)
	setDefault(&t.TryNumber, w.Run.TryNumber)
	setDefault(&t.Uid, w.Run.Uid)
	setDefault(&t.Cluster, w.Cluster)

	setDefault(&t.MaxTries, 1)
	if t.RetryWindow == nil {
		t.RetryWindow = durationpb.New(time.Hour)
	}
	if t.Teardown != nil {
		setDefault(&t.TriggerRule, AllDoneSetupSuccess)
	}
	setDefault(&t.TriggerRule, AllSuccess)
	setDefault(&t.Launch, dagbridgev1.Task_ONCE)
	if t.AtMostOnce == nil {
		t.AtMostOnce = new(true)
	}
	if t.Retry != nil {
		if t.Retry.Backoff == nil {
			t.Retry.Backoff = durationpb.New(30 * time.Second)
		}
		if t.Retry.MaxBackoff == nil {
			t.Retry.MaxBackoff = durationpb.New(max(600*time.Second, t.Retry.Backoff.AsDuration()))
		}
	}
	if t.Resources == nil {
		t.Resources = &dagbridgev1.Resources{}
	}
	setDefault(&t.Resources.Nodes, 1)
	setDefault(&t.Resources.TasksPerNode, 1)
	for _, gpu := range t.Resources.Gpus {
		if gpu.Count == nil {
			gpu.Count = new(int32(1))
		}
	}
	for _, e := range t.Upstream {
		setDefault(&e.Instances, dagbridgev1.Edge_ALL)
		if e.Key != nil {
			setDefault(&e.Key.Deployment, "default")
		}
		if e.Native != nil {
			setDefault(&e.Native.Cluster, t.Cluster)
		}
	}
}
