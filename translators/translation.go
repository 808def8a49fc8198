package translators

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// Translation is an orchestrator's DAG as a workflow, with what a person should know.
type Translation struct {
	// Field of the request in which the DAG stands; empty: it is native, and nothing was translated.
	Field string
	// Workflow has native tasks in the place of the DAG.
	Workflow *dagbridgev1.Workflow
	// Notices on the whole DAG.
	Notices []string
	// TaskNotices by task id.
	TaskNotices map[string][]string
}

// Warnings are all notices; one that several tasks share is one that names them.
func (t *Translation) Warnings() []string {
	warnings := slices.Clone(t.Notices)
	var order []string
	tasks := map[string][]string{}
	for _, task := range t.Workflow.GetTasks() {
		id := task.GetKey().GetTask()
		for _, notice := range t.TaskNotices[id] {
			if tasks[notice] == nil {
				order = append(order, notice)
			}
			if !slices.Contains(tasks[notice], id) { // several instances of a task have its id
				tasks[notice] = append(tasks[notice], id)
			}
		}
	}
	for _, notice := range order {
		warnings = append(warnings, SomeOf(tasks[notice])+": "+notice)
	}
	return warnings
}

// taskField is the beginning of a field of the translated workflow.
var taskField = regexp.MustCompile(`^tasks\[([0-9]+)\]\.?`)

// Faults are those of the translated workflow as faults of the DAG: each names its task.
func (t *Translation) Faults(faults Faults) Faults {
	var told Faults
	for _, f := range faults {
		found := taskField.FindStringSubmatch(f.Field)
		if found == nil {
			told = append(told, f)
			continue
		}
		i, _ := strconv.Atoi(found[1]) // it is digits
		where := strings.TrimPrefix(f.Field, found[0])
		if where != "" {
			where += " "
		}
		told.Add(t.Field, "task %s: %s%s", quote(t.Workflow.GetTasks()[i].GetKey().GetTask()), where, f.Description)
	}
	return told
}

// quote writes a name in quotes, short enough for a sentence.
func quote(name string) string {
	const most = 100
	if len(name) > most {
		name = strings.ToValidUTF8(name[:most], "") + "..."
	}
	return strconv.Quote(name)
}

// SomeOf names some of several.
func SomeOf(names []string) string {
	const most = 3
	if len(names) <= most+1 {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
