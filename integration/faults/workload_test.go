package faults

import (
	"fmt"
	"strconv"

	"google.golang.org/protobuf/types/known/durationpb"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// workload is runs of small programs that write to the ledger.
type workload struct {
	ledger
	// name of the workflow that the runs are of.
	name string
	// partition of the tasks; empty for the default.
	partition string
	runs      []*dagbridgev1.Workflow
	// tasks, each of an array's instances counted; programs that run for them when all goes as designed; tasks that never run.
	tasks, programs, never int
}

// edit changes a task.
type edit func(*dagbridgev1.Task)

// add makes a run of tasks.
func (w *workload) add(kind string, tasks ...*dagbridgev1.Task) *dagbridgev1.Workflow {
	one := &dagbridgev1.Workflow{
		Run:     &dagbridgev1.Run{Orchestrator: "airflow", Workflow: w.name, Run: fmt.Sprintf("%s-%03d", kind, len(w.runs)), TryNumber: 1, Uid: "u1"},
		Cluster: "hpc", Tasks: tasks,
	}
	for _, task := range tasks {
		runs, _ := strconv.Atoi(task.GetLabels()[labelRuns])
		n := max(1, len(task.GetArray().GetItems()))
		w.tasks += n
		w.programs += runs * n
		if runs == 0 {
			w.never += n
		}
	}
	w.runs = append(w.runs, one)
	return one
}

// task is one that runs once and succeeds, after those it names.
func (w *workload) task(name string, ups []string, edits ...edit) *dagbridgev1.Task {
	task := &dagbridgev1.Task{
		Key: &dagbridgev1.TaskKey{Task: name}, Command: w.program("exit 0"),
		Resources: &dagbridgev1.Resources{Cpu: "1", Memory: "20Mi"}, Slurm: &dagbridgev1.SlurmOptions{Partition: w.partition},
		Labels: map[string]string{labelEnds: "SUCCEEDED", labelRuns: "1"},
	}
	for _, up := range ups {
		task.Upstream = append(task.Upstream, &dagbridgev1.Edge{Task: up})
	}
	for _, e := range edits {
		e(task)
	}
	return task
}

// becomes is what the task is designed to become.
func becomes(state dagbridgev1.Job_State, runs int) edit {
	return func(task *dagbridgev1.Task) {
		task.Labels = map[string]string{labelEnds: state.String(), labelRuns: strconv.Itoa(runs)}
	}
}

func rule(word string) edit {
	return func(task *dagbridgev1.Task) { task.TriggerRule = word }
}

// array of so many instances.
func array(n int) edit {
	return func(task *dagbridgev1.Task) {
		task.Array = &dagbridgev1.Array{}
		for range n {
			task.Array.Items = append(task.Array.Items, &dagbridgev1.Array_Item{})
		}
	}
}

// flaky fails at its first attempt, and is retried.
func (w *workload) flaky(task *dagbridgev1.Task) {
	task.Command = w.program(`case $DAGBRIDGE_OUTPUT in */1.output | */1_*) exit 3 ;; esac`)
	task.Retry = &dagbridgev1.Retry{MaxRetries: 2, Backoff: durationpb.New(0), MaxBackoff: durationpb.New(0)}
	becomes(dagbridgev1.Job_SUCCEEDED, 2)(task)
}

// fails at its end.
func (w *workload) fails(task *dagbridgev1.Task) {
	task.Command = w.program("exit 4")
	becomes(dagbridgev1.Job_FAILED, 1)(task)
}

// dies takes the wrapper with it, so that it leaves no exit marker.
func (w *workload) dies(task *dagbridgev1.Task) {
	task.Command = w.program("kill -KILL $PPID")
	becomes(dagbridgev1.Job_FAILED, 1)(task)
}

// The shapes of runs.

func (w *workload) single() *dagbridgev1.Workflow { return w.add("single", w.task("only", nil)) }

func (w *workload) retried() *dagbridgev1.Workflow {
	return w.add("retried", w.task("only", nil, w.flaky))
}

// chain of native edges.
func (w *workload) chain(n int) *dagbridgev1.Workflow {
	tasks := []*dagbridgev1.Task{w.task("t0", nil)}
	for i := 1; i < n; i++ {
		tasks = append(tasks, w.task(fmt.Sprintf("t%d", i), []string{fmt.Sprintf("t%d", i-1)}))
	}
	return w.add("chain", tasks...)
}

// fan is one task, n after it, one after them all.
func (w *workload) fan(n int) *dagbridgev1.Workflow {
	tasks := []*dagbridgev1.Task{w.task("split", nil)}
	var ways []string
	for i := range n {
		ways = append(ways, fmt.Sprintf("way%d", i))
		tasks = append(tasks, w.task(ways[i], []string{"split"}))
	}
	return w.add("fan", append(tasks, w.task("join", ways))...)
}

// mapped is an array between two tasks.
func (w *workload) mapped(n int, edits ...edit) *dagbridgev1.Workflow {
	return w.add("mapped", w.task("list", nil), w.task("map", []string{"list"}, append(edits, array(n))...), w.task("reduce", []string{"map"}))
}

// rules are edges that the gateway holds, and ends that are none of a program's.
func (w *workload) rules() *dagbridgev1.Workflow {
	return w.add("rules",
		w.task("ok", nil),
		w.task("ko", nil, w.fails),
		w.task("flaky", nil, w.flaky),
		w.task("never", []string{"ko"}, becomes(dagbridgev1.Job_UPSTREAM_FAILED, 0)),
		w.task("after_never", []string{"never"}, becomes(dagbridgev1.Job_UPSTREAM_FAILED, 0)),
		w.task("all_failed", []string{"ko"}, rule("all_failed")),
		w.task("one_success", []string{"ok", "ko"}, rule("one_success")),
		w.task("one_failed", []string{"ko", "flaky"}, rule("one_failed")),
		w.task("all_done", []string{"flaky", "ko", "never"}, rule("all_done")),
		w.task("retried_then", []string{"flaky"}),
		w.task("none_failed", []string{"ok", "flaky"}, rule("none_failed")),
	)
}
