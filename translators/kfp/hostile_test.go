package kfp_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagbridge/dagbridge/translators/kfp"
)

// pipelineOf is a pipeline of these components and tasks, in one line each.
func pipelineOf(components, tasks string) string {
	return fmt.Sprintf(`{"pipelineInfo": {"name": "p"}, "schemaVersion": "2.1.0", "components": {%s}, "root": {"dag": {"tasks": {%s}}},
"deploymentSpec": {"executors": {"e": {"container": {"image": "i", "command": ["true"]}}}}}`, components, tasks)
}

const leaf = `"leaf": {"executorLabel": "e"}`

func task(name, component, more string) string {
	return fmt.Sprintf(`"%s": {"componentRef": {"name": "%s"}%s}`, name, component, more)
}

// What is no pipeline, or a bad one, is refused by a sentence.
func TestBadPipelines(t *testing.T) {
	t.Parallel()
	linear, err := os.ReadFile("testdata/linear-ml/in.yaml")
	require.NoError(t, err)
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'k'; c++ {
		bomb += fmt.Sprintf("%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n", c, c, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1)
	}
	doubling := leaf
	for i := range 60 {
		of := "leaf"
		if i > 0 {
			of = fmt.Sprint("c", i-1)
		}
		doubling += fmt.Sprintf(`, "c%d": {"dag": {"tasks": {%s, %s}}}`, i, task("a", of, ""), task("b", of, ""))
	}
	chain := leaf
	for i := range 5000 {
		of := "leaf"
		if i > 0 {
			of = fmt.Sprint("c", i-1)
		}
		chain += fmt.Sprintf(`, "c%d": {"dag": {"tasks": {%s}}}`, i, task("a", of, ""))
	}
	loop := func(items string) string {
		return `, "parameterIterator": {"itemInput": "x", "items": {"raw": "` + items + `"}}`
	}
	body := `"body": {"inputDefinitions": {"parameters": {"x": {"parameterType": "NUMBER_INTEGER"}}}, "dag": {"tasks": {` + task("a", "leaf", "") + `}}}`
	ten := "[" + strings.TrimSuffix(strings.Repeat("1,", 1000), ",") + "]"
	nested := leaf + `, "inner": {"dag": {"tasks": {` + task("a", "leaf", loop(ten)) + `, ` + task("l", "body", loop(ten)) + `}}}, ` + body
	for name, c := range map[string]struct{ text, want string }{
		"a bomb of aliases":       {bomb, "alias"},
		"a component's own alias": {"root: &a {dag: *a}", "nested deeper"},
		"a cycle":                 {pipelineOf(leaf, task("a", "leaf", `, "dependentTasks": ["b"]`)+","+task("b", "leaf", `, "dependentTasks": ["a"]`)), "task a: waits for itself: a <- b <- a"},
		"a list":                  {"[]", "a compiled pipeline is a mapping"},
		"a missing component":     {pipelineOf(leaf, task("a", "leave", "")), `task a: is the component "leave", which the file does not have`},
		"a self":                  {pipelineOf(leaf, task("a", "leaf", `, "dependentTasks": ["a"]`)), "task a: waits for itself: a <- a"},
		"an unknown placeholder":  {strings.Replace(string(linear), "{{$.inputs.parameters[''lr'']}}", "{{$.inputs.parameters[''rl'']}}", 1), `task train: "rl" is asked for`},
		"Argo's":                  {"apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nspec: {}\n", "is what version 1 of KFP's SDK compiles"},
		"chained DAGs":            {pipelineOf(chain, task("a", "c4999", "")), "DAGs within DAGs are taken"},
		"cut off":                 {string(linear[:bytes.Index(linear, []byte("root:"))]), "may be cut off"},
		"cut off within a line":   {string(linear[:1000]), "line"},
		"deep":                    {strings.Repeat("[", 100_000), "not YAML"},
		"deep and closed":         {"root: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000), "nested deeper"},
		"doubled":                 {"root: {}\nroot: {}\n", "twice"},
		"doubling DAGs":           {pipelineOf(doubling, task("a", "c59", "")), "the pipeline makes more than"},
		"empty":                   {"", "is empty"},
		"loops in loops":          {pipelineOf(nested, task("a", "inner", loop(ten))), "makes"},
		"neither":                 {"a: 1", "root: is missing"},
		"no list":                 {pipelineOf(leaf+","+body, task("a", "body", loop(`{}`))), "which is no list"},
		"no number":               {"root: .inf", "no number"},
		"no tasks":                {pipelineOf(leaf, ""), "there is nothing to run in it"},
		"null tasks":              {pipelineOf(leaf, `"a": null`), "task a: is empty"},
		"null component":          {pipelineOf(`"leaf": null`, task("a", "leaf", "")), "does not have"},
		"null root":               {`{"root": null, "schemaVersion": "2.1.0"}`, "root: is missing"},
		"a null DAG":              {pipelineOf(`"d": {"dag": null}`, task("a", "d", loop(`[1]`))), "neither a DAG nor has an executor"},
		"old":                     {`{"schemaVersion": "2.0.0", "root": {}, "pipelineInfo": {"name": "p"}}`, "compile the pipeline with KFP's SDK 2"},
		"platform alone":          {"platforms: {kubernetes: {}}", "the pipeline is missing"},
		"three documents":         {"a: 1\n---\nb: 1\n---\nc: 1\n", "more than two documents"},
		"too large":               {strings.Repeat(" ", 40<<20), "are taken at most"},
		"two pipelines":           {string(linear) + "\n---\n" + string(linear), "has two pipelines"},
		"wrong type":              {`{"root": {"dag": {"tasks": []}}, "schemaVersion": "2.1.0"}`, "root.dag.tasks: holds a array"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, faults := kfp.Translate(request(c.text), true)
			require.ErrorContains(t, faults.OrNil(), c.want)
		})
	}
}

// FuzzTranslate: whatever comes, it is translated or refused, and what is translated is made of steps that can be read.
func FuzzTranslate(f *testing.F) {
	seeds, err := filepath.Glob("testdata/*/in.yaml")
	require.NoError(f, err)
	for _, seed := range seeds {
		text, err := os.ReadFile(seed)
		require.NoError(f, err)
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		translated, faults := kfp.Translate(request(text), true)
		if len(faults) > 0 {
			return
		}
		require.NotEmpty(t, translated.Workflow.GetTasks())
		for _, each := range translated.Workflow.GetTasks() {
			if !each.GetEmpty() {
				stepOf(t, each.GetScript().GetText())
			}
		}
	})
}

// BenchmarkTranslate is a pipeline of some 3,600 lines: one that the SDK has compiled, its parts under other names side by side.
func BenchmarkTranslate(b *testing.B) {
	var text strings.Builder
	const parts = 50
	text.WriteString("pipelineInfo: {name: p}\nschemaVersion: 2.1.0\ncomponents:\n")
	for i := range parts {
		fmt.Fprintf(&text, "  comp-%d:\n    executorLabel: exec-%d\n    inputDefinitions:\n      parameters:\n        a:\n          parameterType: STRING\n        b:\n          parameterType: NUMBER_DOUBLE\n          defaultValue: 1.0\n          isOptional: true\n"+
			"    outputDefinitions:\n      parameters:\n        Output:\n          parameterType: STRING\n", i, i)
	}
	text.WriteString("deploymentSpec:\n  executors:\n")
	for i := range parts {
		fmt.Fprintf(&text, "    exec-%d:\n      container:\n        image: python:3.11\n        args: [--executor_input, '{{$}}']\n        command:\n        - sh\n        - -ec\n        - |\n", i)
		for line := range 30 {
			fmt.Fprintf(&text, "          print('line %d of %d')\n", line, i)
		}
	}
	text.WriteString("root:\n  dag:\n    tasks:\n")
	for i := range parts {
		fmt.Fprintf(&text, "      task-%d:\n        cachingOptions:\n          enableCache: true\n        componentRef:\n          name: comp-%d\n        dependentTasks:", i, i)
		from := "            a:\n              runtimeValue:\n                constant: x\n"
		if i == 0 {
			text.WriteString(" []\n")
		} else {
			fmt.Fprintf(&text, " [task-%d]\n", i-1)
			from = fmt.Sprintf("            a:\n              taskOutputParameter:\n                outputParameterKey: Output\n                producerTask: task-%d\n", i-1)
		}
		text.WriteString("        inputs:\n          parameters:\n" + from + "        taskInfo:\n          name: task\n")
	}
	for b.Loop() {
		_, faults := kfp.Translate(request(text.String()), false)
		require.NoError(b, faults.OrNil())
	}
	b.ReportMetric(float64(strings.Count(text.String(), "\n")), "lines")
}
