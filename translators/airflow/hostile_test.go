package airflow_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators"
	"github.com/dagbridge/dagbridge/translators/airflow"
)

func translate(text string) (*translators.Translation, error) {
	t, faults := airflow.Translate(&dagbridgev1.Workflow{AirflowDag: &dagbridgev1.Json{Text: text}}, true)
	return t, faults.OrNil()
}

// dagOf is a document with these tasks.
func dagOf(tasks ...string) string {
	return `{"__version": 3, "dag": {"dag_id": "d", "tasks": [` + strings.Join(tasks, ",") + `]}}`
}

// bashTask is a BashOperator with more fields.
func bashTask(id, more string) string {
	return fmt.Sprintf(`{"__type": "operator", "__var": {"task_id": %q, "task_type": "BashOperator", "bash_command": "true"%s}}`, id, more)
}

// What is no DAG, or a bad one, is refused by a sentence.
func TestBadDAGs(t *testing.T) {
	t.Parallel()
	many := func(n int, task func(i int) string) []string {
		tasks := make([]string, n)
		for i := range tasks {
			tasks[i] = task(i)
		}
		return tasks
	}
	for name, c := range map[string]struct{ dag, want string }{
		"a cycle of templates' steps":  {dagOf(bashTask("a", `, "cwd": "/{% for a in range(90000) %}{% for b in range(90000) %}{% endfor %}{% endfor %}"`)), "take too long to render"},
		"a growing text":               {dagOf(bashTask("a", `, "cwd": "{{ 'x' * 100000000 }}"`)), "makes more than"},
		"a list":                       {`[]`, "is no object"},
		"deep nesting":                 {dagOf(bashTask("a", `, "env": `+strings.Repeat("[", 5000)+strings.Repeat("]", 5000))), "nested deeper"},
		"deep templates":               {dagOf(bashTask("a", `, "cwd": "{{ `+strings.Repeat("(", 5000)+strings.Repeat(")", 5000)+` }}"`)), "nested deeper"},
		"doubles":                      {dagOf(bashTask("a", ""), bashTask("a", "")), `task "a" is there already, as tasks[0]`},
		"edges to nowhere":             {dagOf(bashTask("a", `, "downstream_task_ids": ["b", 7]`)), `leads to "b", and there is no such task`},
		"empty":                        {dagOf(), "there is nothing to run"},
		"no JSON":                      {`{"__version": 3`, "is not JSON"},
		"no version":                   {`{"dag": {}}`, "__version: is missing"},
		"no task id":                   {dagOf(`{"__type": "operator", "__var": {}}`), "task_id: is missing"},
		"nothing":                      {``, "is not JSON"},
		"too large":                    {`"` + strings.Repeat("x", 33<<20) + `"`, "are taken at most"},
		"too many instances":           {dagOf(bashTask("a", `, "_is_mapped": true, "_expand_input_attr": "expand_input", "expand_input": {"type": "dict-of-lists", "value": {"a": [`+strings.TrimSuffix(strings.Repeat("1,", 1000), ",")+`], "b": [`+strings.TrimSuffix(strings.Repeat("1,", 1000), ",")+`]}}`)), "makes more than 100000 instances"},
		"twice the same member":        {`{"dag": {}, "dag": {}}`, "twice"},
		"version of tomorrow":          {`{"__version": 4, "dag": {}}`, "versions 1 to 3 are known"},
		"a wrong list of edges":        {dagOf(bashTask("a", `, "downstream_task_ids": 5`)), "should be a list of task ids"},
		"wrong types in a task":        {dagOf(bashTask("a", `, "retries": "x", "retry_delay": [], "execution_timeout": {}, "pool_slots": {}, "pool": "p"`)), "should be a whole number"},
		"wrong types of a mapped task": {dagOf(bashTask("a", `, "_is_mapped": true, "_expand_input_attr": 5`)), "what over is missing"},
		"a rule of nobody's":           {dagOf(bashTask("a", `, "trigger_rule": "sometimes"`)), "is no trigger rule"},
		"a group that is a task":       {`{"__version": 3, "dag": {"dag_id": "d", "task_group": {"children": {"a": 5}}, "tasks": [` + bashTask("a", "") + `]}}`, "neither a task nor a group"},
		"a set-up before every other task": {dagOf(many(20_000, func(i int) string {
			return bashTask(fmt.Sprint(i), fmt.Sprintf(`, "is_setup": %t, "downstream_task_ids": ["%d"]`, i%2 == 0, min(i+1, 19_999)))
		})...), "more set-ups"},
		"set-ups before and after each": {dagOf(many(3000, func(i int) string {
			return bashTask(fmt.Sprint(i), fmt.Sprintf(`, "is_setup": true, "trigger_rule": "all_done", "downstream_task_ids": ["%d", "%d"]`, min(i+1, 2999), min(i+2, 2999)))
		})...), "more set-ups"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := translate(c.dag)
			require.ErrorContains(t, err, c.want)
		})
	}
}

// FuzzTranslate: whatever comes, it is translated or refused.
func FuzzTranslate(f *testing.F) {
	seeds, err := filepath.Glob("testdata/*/in.*.json")
	require.NoError(f, err)
	for _, seed := range seeds {
		if text, err := os.ReadFile(seed); err == nil && len(text) < 50_000 {
			f.Add(string(text))
		}
	}
	f.Add(dagOf(bashTask("a", `, "env": {"A": "{{ ds }}"}`), bashTask("b", `, "is_setup": true`)))
	f.Fuzz(func(t *testing.T, text string) {
		translated, err := translate(text)
		if err == nil {
			require.NotEmpty(t, translated.Workflow.GetTasks())
		}
	})
}

// BenchmarkTranslate is a DAG of five thousand tasks with templates, each after two others.
func BenchmarkTranslate(b *testing.B) {
	tasks := make([]string, 5000)
	for i := range tasks {
		tasks[i] = bashTask(fmt.Sprintf("task_%d", i), fmt.Sprintf(`, "env": {"DAY": "{{ ds }}", "I": "%d"}, "retries": 2, "retry_delay": 300.0, "downstream_task_ids": [%q, %q]`,
			i, fmt.Sprintf("task_%d", min(i+1, 4999)), fmt.Sprintf("task_%d", min(i+7, 4999))))
	}
	text := dagOf(tasks...)
	text = strings.ReplaceAll(text, `"downstream_task_ids": ["task_4999", "task_4999"]`, `"downstream_task_ids": []`)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		_, err := translate(text)
		require.NoError(b, err)
	}
}
