package kfp_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/dagbridge/dagbridge/integration/golden"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/proto/jsoncodec"
	"github.com/dagbridge/dagbridge/translators/graph"
	"github.com/dagbridge/dagbridge/translators/kfp"
)

func request(text string) *dagbridgev1.Workflow {
	return &dagbridgev1.Workflow{KfpPipeline: text, Run: &dagbridgev1.Run{Run: "monday"}}
}

// TestTranslate walks the cases in testdata: a pipeline as the SDK compiles it (in.yaml, of pipelines.py) becomes the same workflow
// (out.json) with the same notices, or is refused with the same sentences (out.txt).
func TestTranslate(t *testing.T) {
	t.Parallel()
	cases, err := filepath.Glob("testdata/*/in.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, cases)
	for _, in := range cases {
		dir := filepath.Dir(in)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(in)
			require.NoError(t, err)
			w := request(string(text))
			asked := proto.CloneOf(w)
			translated, faults := kfp.Translate(w, false)
			require.True(t, proto.Equal(asked, w), "the request is left as it is")
			var told strings.Builder
			for _, fault := range faults {
				fmt.Fprintf(&told, "%s: %s\n", fault.Field, fault.Description)
			}
			if len(faults) > 0 {
				require.Nil(t, translated)
				golden.Equal(t, dir, "out.txt", told.String())
				return
			}
			for _, warning := range translated.Warnings() {
				fmt.Fprintln(&told, warning)
			}
			golden.Equal(t, dir, "out.txt", told.String())
			golden.Equal(t, dir, "out.json", readable(t, translated.Workflow))
			require.Empty(t, graph.Check(graph.Normalize(translated.Workflow), func(*dagbridgev1.TaskKey) bool { return false }))
		})
	}
}

// readable is a workflow as JSON, a line a task, its step in the place of its script, without what is empty and without what all
// lightweight components have in common.
func readable(t *testing.T, w *dagbridgev1.Workflow) string {
	t.Helper()
	var b strings.Builder
	for _, task := range w.GetTasks() {
		task = proto.CloneOf(task)
		instances := len(task.GetArray().GetItems())
		if instances > 0 {
			task.Array.Items = task.GetArray().GetItems()[:1]
		}
		script := task.GetScript().GetText()
		task.Script = nil
		text, err := jsoncodec.Marshal(task)
		require.NoError(t, err)
		var value map[string]any
		require.NoError(t, json.Unmarshal(text, &value))
		value = pruned(value).(map[string]any)
		if instances > 0 {
			value["array"] = fmt.Sprintf("of %d, %d at once", instances, task.GetArray().GetMaxParallel())
		}
		if script != "" {
			step := stepOf(t, script)
			if len(step.Items) > 3 {
				step.Items = append(step.Items[:3], json.RawMessage(`"..."`))
			}
			for i, word := range step.Command {
				if strings.Contains(word, "ensurepip") || strings.Contains(word, "ephemeral_component") {
					step.Command[i] = "<" + strings.Fields(word)[0] + "...>"
				}
			}
			value["step"] = step
		}
		encoder := json.NewEncoder(&b)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", " ")
		require.NoError(t, encoder.Encode(value))
	}
	return b.String()
}

// stepOf is what the launcher would be given.
func stepOf(t *testing.T, script string) *kfp.Step {
	t.Helper()
	lines := strings.SplitAfter(script, "\n")
	require.Equal(t, "#!/bin/sh\n", lines[0])
	lines = lines[1:]
	require.Equal(t, "exec \"$DAGBRIDGE_LAUNCHER\" kfp-step <<'STEP'\n", lines[0])
	require.Equal(t, "STEP\n", lines[len(lines)-2])
	require.NotContains(t, lines[1:len(lines)-2], "STEP\n")
	step, err := kfp.ParseStep([]byte(strings.Join(lines[1:len(lines)-2], "")))
	require.NoError(t, err)
	return step
}

func pruned(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, member := range value {
			if member = pruned(member); isZero(member) {
				delete(value, key)
			} else {
				value[key] = member
			}
		}
	case []any:
		for i, each := range value {
			value[i] = pruned(each)
		}
	}
	return value
}

func isZero(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		return len(value) == 0
	case []any:
		return len(value) == 0
	case string:
		return value == "" || strings.HasSuffix(value, "_UNSPECIFIED")
	case float64:
		return value == 0
	}
	return value == false
}

// A parameter of the request's goes before the default, has the type that the pipeline declares, and is one of the pipeline's.
func TestParameters(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/linear-ml/in.yaml")
	require.NoError(t, err)
	for name, c := range map[string]struct{ parameter, value, want string }{
		"a fraction of a whole number": {"epochs", "2.5", `parameters.epochs: is "2.5", and should be a whole number`},
		"a whole number as the SDK":    {"epochs", "4.0", ""},
		"a word for a number":          {"lr", `"fast"`, `parameters.lr: is "\"fast\"", and should be a number`},
		"a number for a text":          {"raw_uri", "7", ""},
		"nobody's":                     {"lrate", "1", `parameters.lrate: the pipeline has no parameter "lrate"; it has: epochs, lr, raw_uri`},
		"no JSON":                      {"lr", "{", "parameters.lr: is not JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := request(string(text))
			w.Parameters = map[string]*dagbridgev1.Json{c.parameter: {Text: c.value}}
			translated, faults := kfp.Translate(w, false)
			if c.want != "" {
				require.EqualError(t, faults.OrNil(), c.want)
				return
			}
			require.Empty(t, faults)
			require.True(t, bytes.Contains([]byte(translated.Workflow.String()), []byte(strings.TrimSuffix(c.value, ".0"))))
		})
	}
}

// A parameter without a value is refused by a run, and shown by a plan.
func TestPlaceholders(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/parallelfor-dynamic/in.yaml")
	require.NoError(t, err)
	without := strings.Replace(string(text), "        defaultValue: 3.0\n        isOptional: true\n", "", 1)
	require.NotEqual(t, string(text), without)
	_, faults := kfp.Translate(request(without), false)
	require.ErrorContains(t, faults.OrNil(), "parameters.n: is missing: the pipeline has no default for it (--param n=...)")
	translated, faults := kfp.Translate(request(without), true)
	require.Empty(t, faults)
	require.Contains(t, translated.Warnings(), "parameter n has no value; it is shown as <n>")
}
