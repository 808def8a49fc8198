package kfp_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/dagbridge/dagbridge/translators/kfp"
)

func execution() *kfp.Execution {
	return &kfp.Execution{
		Step: &kfp.Step{Name: "train"},
		Parameters: map[string]json.RawMessage{
			"text": json.RawMessage(`"it's \"{{$.inputs.parameters['n']}}\" \\ \n"`), "n": json.RawMessage(`3.0`), "big": json.RawMessage(`9007199254740993`),
			"half": json.RawMessage(`0.5`), "tiny": json.RawMessage(`1e-7`), "yes": json.RawMessage(`true`), "list": json.RawMessage(`[1, {"a": "b c"}]`),
		},
		Artifacts:       map[string][]kfp.Artifact{"data": {{Name: "data", URI: "s3://bucket/d", Metadata: json.RawMessage(`{"rows": 5, "who": "me"}`)}}},
		OutputFiles:     map[string]string{"acc": "/out/acc"},
		OutputArtifacts: map[string]kfp.Artifact{"model": {Name: "model", URI: "/root/model"}},
		OutputFile:      "/out/said", Job: "job-1", Run: "monday", Root: "/root", Created: "2026-03-09T06:05:04Z", Workspace: "/root/workspace",
	}
}

// Every form of a placeholder, alone and within a text.
func TestPlaceholdersInArguments(t *testing.T) {
	t.Parallel()
	for argument, want := range map[string]string{
		"{{$.inputs.parameters['text']}}":                                            "it's \"{{$.inputs.parameters['n']}}\" \\ \n",
		`{{$.inputs.parameters["n"]}}`:                                               "3",
		"--n={{$.inputs.parameters['n']}},{{$.inputs.parameters['half']}}":           "--n=3,0.5",
		"{{$.inputs.parameters['big']}}":                                             "9007199254740993",
		"{{$.inputs.parameters['tiny']}}":                                            "0.0000001",
		"{{$.inputs.parameters['yes']}}":                                             "true",
		"{{$.inputs.parameters['list']}}":                                            `[1,{"a":"b c"}]`,
		"{{$.inputs.artifacts['data'].uri}}":                                         "s3://bucket/d",
		"{{$.inputs.artifacts['data'].path}}":                                        "/s3/bucket/d",
		"{{$.inputs.artifacts['data'].metadata['rows']}}":                            "5",
		"{{$.inputs.artifacts['data'].metadata}}":                                    `{"rows": 5, "who": "me"}`,
		"{{$.outputs.artifacts['model'].uri}} {{$.outputs.artifacts['model'].path}}": "/root/model /root/model",
		"{{$.outputs.parameters['acc'].output_file}}":                                "/out/acc",
		"{{$.outputs.output_file}}":                                                  "/out/said",
		"{{$.pipeline_job_name}} {{$.pipeline_job_uuid}}":                            "monday monday",
		"{{$.pipeline_task_name}} {{$.pipeline_task_uuid}}":                          "train job-1",
		"{{$.pipeline_root}} {{$.workspace_path}}":                                   "/root /root/workspace",
		"{{$.pipeline_job_create_time_utc}}":                                         "2026-03-09T06:05:04Z",
		"{{item}} {{$ {{}} %F0%9F \u2728 --x":                                        "{{item}} {{$ {{}} %F0%9F \u2728 --x",
		"":                                                                           "",
		" ":                                                                          " ",
	} {
		x := execution()
		x.Step.Args = []string{argument}
		argv, err := x.Argv()
		require.NoError(t, err, argument)
		require.Equal(t, []string{want}, argv, argument)
	}
}

func TestStructures(t *testing.T) {
	t.Parallel()
	for argument, want := range map[string][]string{
		`{"IfPresent": {"InputName": "text", "Then": ["--text", "{{$.inputs.parameters['text']}}"], "Else": ["--none"]}}`: {"--text", "it's \"{{$.inputs.parameters['n']}}\" \\ \n"},
		`{"IfPresent": {"InputName": "absent", "Then": ["--text"], "Else": ["--none", "x"]}}`:                             {"--none", "x"},
		`{"IfPresent": {"InputName": "absent", "Then": ["--text"]}}`:                                                      nil,
		`{"IfPresent": {"InputName": "data", "Then": "there"}}`:                                                           {"there"},
		`{"Concat": ["a=", "{{$.inputs.parameters['n']}}", {"IfPresent": {"InputName": "absent", "Then": "b"}}, "c"]}`:    {"a=3c"},
		`{"IfPresent": {"InputName": "n", "Then": [{"Concat": ["--n=", "{{$.inputs.parameters['n']}}"]}, "z"]}}`:          {"--n=3", "z"},
		`{"a": "b"}`:        {`{"a": "b"}`},
		`{"IfPresent" oops`: {`{"IfPresent" oops`},
	} {
		x := execution()
		x.Step.Command = []string{"run"}
		x.Step.Args = []string{argument}
		argv, err := x.Argv()
		require.NoError(t, err, argument)
		require.Equal(t, append([]string{"run"}, want...), argv, argument)
	}
}

func TestExecutorInput(t *testing.T) {
	t.Parallel()
	x := execution()
	x.Parameters = map[string]json.RawMessage{"n": json.RawMessage("5"), "html": json.RawMessage(`"<&>"`)}
	text, err := x.Input()
	require.NoError(t, err)
	require.Contains(t, string(text), `"<&>"`)
	require.JSONEq(t, `{
		"inputs": {
			"parameterValues": {"n": 5, "html": "<&>"},
			"artifacts": {"data": {"artifacts": [{"name": "data", "type": {}, "uri": "s3://bucket/d", "metadata": {"rows": 5, "who": "me"}}]}}
		},
		"outputs": {
			"parameters": {"acc": {"outputFile": "/out/acc"}},
			"artifacts": {"model": {"artifacts": [{"name": "model", "type": {}, "uri": "/root/model"}]}},
			"outputFile": "/out/said"
		}
	}`, string(text))
}

// Any text comes through its placeholder byte for byte, wherever that stands, and is read for placeholders no more.
func TestTextsComeThrough(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"{{$}}", "{{$.inputs.parameters['x']}}", `{"Concat": ["a"]}`, `"`, `\`, "'", "\n", "--", "{{", "}}"}))
		value := strings.ToValidUTF8(strings.Join(rapid.SliceOfN(piece, 0, 5).Draw(t, "value"), ""), "?")
		text, err := kfp.JSON(value)
		require.NoError(t, err)
		x := &kfp.Execution{Step: &kfp.Step{}, Parameters: map[string]json.RawMessage{"x": text}}
		x.Step.Args = []string{"{{$.inputs.parameters['x']}}", "<{{$.inputs.parameters['x']}}>", `{"Concat": ["a", "{{$.inputs.parameters['x']}}"]}`}
		argv, err := x.Argv()
		require.NoError(t, err)
		require.Equal(t, []string{value, "<" + value + ">", "a" + value}, argv)
	})
}

// What a program writes into the file of a parameter is read by its type; what is not of the type is refused.
func TestReadParameter(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ kind, text, want, fails string }{
		{"STRING", "a\nb ", `"a\nb "`, ""},
		{"STRING", "5", `"5"`, ""},
		{"NUMBER_INTEGER", "42\n", `42`, ""},
		{"NUMBER_INTEGER", "4.0", `4`, ""},
		{"NUMBER_INTEGER", "-9007199254740993", `-9007199254740993`, ""},
		{"NUMBER_INTEGER", "4.5", ``, "a whole number"},
		{"NUMBER_DOUBLE", "0.9375\n", `0.9375`, ""},
		{"NUMBER_DOUBLE", "nan", ``, "a number"},
		{"BOOLEAN", "True\n", `true`, ""},
		{"BOOLEAN", "1", ``, "true or false"},
		{"LIST", `[1, "a"]`, `[1, "a"]`, ""},
		{"LIST", `{}`, ``, "a list"},
		{"STRUCT", `{"a": 1}`, `{"a": 1}`, ""},
		{"STRUCT", `{"a": 1`, ``, "a mapping"},
	} {
		got, err := kfp.ReadParameter(c.kind, []byte(c.text))
		if c.fails != "" {
			require.ErrorContains(t, err, c.fails, fmt.Sprint(c))
			continue
		}
		require.NoError(t, err, fmt.Sprint(c))
		require.Equal(t, c.want, string(got))
	}
}
