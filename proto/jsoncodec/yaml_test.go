package jsoncodec_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/proto/jsoncodec"
)

func TestUnmarshalYAML(t *testing.T) {
	t.Parallel()
	var got dagbridgev1.Workflow
	require.NoError(t, jsoncodec.UnmarshalYAML([]byte(`
name: ml
parameters:
  big: 9007199254740993
  exact: 3.0
  yes: yes
  day: 2026-01-01
  none: ~
  list: [1, two, {three: 3}]
tasks:
  - &base
    key: {task: a}
    script:
      text: |
        echo hi
    env: {EPOCHS: 3, RATE: 1.10, DEBUG: true}
    resources: {cpu: 4, memory: 16Gi}
  - <<: *base
    key: {task: b}
    upstream: [{task: a}]
`), &got))
	parameters := make(map[string]string)
	for name, value := range got.GetParameters() {
		parameters[name] = value.GetText()
	}
	require.Equal(t, map[string]string{
		"big": "9007199254740993", "exact": "3.0", "yes": `"yes"`, "day": `"2026-01-01"`, "none": "null", "list": `[1,"two",{"three":3}]`,
	}, parameters)
	require.Len(t, got.GetTasks(), 2)
	for i, id := range []string{"a", "b"} {
		require.Equal(t, id, got.GetTasks()[i].GetKey().GetTask())
		require.Equal(t, "echo hi\n", got.GetTasks()[i].GetScript().GetText())
		require.Equal(t, map[string]string{"EPOCHS": "3", "RATE": "1.10", "DEBUG": "true"}, got.GetTasks()[i].GetEnv())
		require.Equal(t, "4", got.GetTasks()[i].GetResources().GetCpu())
	}
}

func TestUnmarshalYAMLFaults(t *testing.T) {
	t.Parallel()
	laughs := "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	merges := "a0: &a0 {x: 1}\n"
	for i := range 9 {
		a := string(rune('0' + i))
		b := string(rune('1' + i))
		laughs += "a" + b + ": &a" + b + " [" + strings.TrimSuffix(strings.Repeat("*a"+a+",", 10), ",") + "]\n"
		merges += "a" + b + ": &a" + b + " {<<: [" + strings.TrimSuffix(strings.Repeat("*a"+a+",", 10), ",") + "]}\n"
	}
	for name, c := range map[string]struct{ in, want string }{
		"all faults with their lines": {
			"name: x\ntasks:\n  - key: {task: a}\n    scirpt: {text: x}\n    env:\n      A=B: {}\n",
			"tasks[0].scirpt: line 4: unknown field; there are key, ",
		},
		"a doubled key":     {"name: x\nname: y", "name: line 2: is there twice"},
		"octal":             {"name: x\ntasks: [{tryNumber: 010}]", "tasks[0].tryNumber: line 2: 010 is no plain decimal number"},
		"hexadecimal":       {"parameters: {a: 0x1F}", "parameters.a: line 1: 0x1F is no plain decimal number"},
		"infinite":          {"parameters: {a: .inf}", "parameters.a: line 1: .inf is no plain decimal number"},
		"a tag":             {"name: !!binary aGk=", "name: line 1: !!binary is not understood"},
		"a complex key":     {"? [a]\n: b", "line 1: a key must be a word"},
		"two documents":     {"name: x\n---\nname: y", "there is more than one document"},
		"nothing":           {"# only a comment\n", "the document is empty"},
		"not YAML":          {"a: [", "the document is not YAML: line 1: "},
		"a word":            {"hello", "line 1: must be an object, not a string"},
		"aliases in itself": {"parameters: &p {a: *p}", "is nested more than 1000 deep"},
		"a billion laughs":  {"parameters:\n  " + strings.ReplaceAll(laughs, "\n", "\n  "), "the document is larger than"},
		"a billion merges":  {"parameters:\n  " + strings.ReplaceAll(merges, "\n", "\n  "), "the document is larger than"},
		"merging a word":    {"<<: x", "line 1: only mappings can be merged with <<"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := jsoncodec.UnmarshalYAML([]byte(c.in), &dagbridgev1.Workflow{})
			require.ErrorContains(t, err, c.want)
			var faults *jsoncodec.Error
			require.ErrorAs(t, err, &faults)
		})
	}
}

func FuzzUnmarshalYAML(f *testing.F) {
	for _, seed := range []string{"a: &a [*a]", "<<: {a: 1}", "tasks: [{cpu: 1}]", "? x", "- 1", "name: !!str 1", "{a: 1e5, b: 0b1}", "---\n...\n---\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var m, again dagbridgev1.Workflow
		if jsoncodec.UnmarshalYAML(in, &m) != nil {
			return
		}
		text, err := jsoncodec.Marshal(&m)
		require.NoError(t, err)
		require.NoError(t, jsoncodec.UnmarshalYAML(text, &again))
		require.Empty(t, diff(&m, &again))
	})
}
