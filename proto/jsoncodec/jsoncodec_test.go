package jsoncodec_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/proto/jsoncodec"
)

func TestMarshal(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		message proto.Message
		want    string
	}{
		"zero scalars, lists and maps are there": {
			&dagbridgev1.Command{},
			`{"argv":[]}`,
		},
		"absent messages and optional fields are not": {
			&dagbridgev1.Attempt{Number: 1},
			`{"number":1,"cluster":"","nativeId":"","node":"","state":"STATE_UNSPECIFIED","reason":"","message":"","nativeDigest":"","token":"","indices":"","memory":"","excludedNodes":[]}`,
		},
		"an exit code of 0 is known": {
			&dagbridgev1.Attempt{State: dagbridgev1.Job_SUCCEEDED, ExitCode: proto.Int32(0)},
			`{"number":0,"cluster":"","nativeId":"","node":"","state":"SUCCEEDED","reason":"","message":"","exitCode":0,"nativeDigest":"","token":"","indices":"","memory":"","excludedNodes":[]}`,
		},
		"json as it was written": {
			&dagbridgev1.PutOutputsRequest{Id: "x", Outputs: map[string]*dagbridgev1.Json{
				"n": {Text: "9007199254740993"}, "f": {Text: "3.0"}, "o": {Text: `{ "b": 1,  "a": [null] }`}, "nil": {}, `q"`: {Text: `"é"`},
			}},
			`{"id":"x","outputs":{"f":3.0,"n":9007199254740993,"nil":null,"o":{ "b": 1,  "a": [null] },"q\"":"é"}}`,
		},
		"json in a field": {
			&dagbridgev1.GetOutputResponse{Value: &dagbridgev1.Json{Text: "1e400"}},
			`{"value":1e400}`,
		},
		"64 bits are a string": {
			&dagbridgev1.ReadLogsResponse{Data: []byte{0, 255}, Offset: 1 << 60},
			`{"data":"AP8=","offset":"1152921504606846976"}`,
		},
		"times and durations": {
			&dagbridgev1.Edge{Task: "a\n\x01\"\\/<é\u2028", Delay: durationpb.New(1500e6)},
			`{"task":"a\n\u0001\"\\/<é` + "\u2028" + `","instances":"INSTANCES_UNSPECIFIED","condition":"CONDITION_UNSPECIFIED","delay":"1.500s","optional":false}`,
		},
		"a status with details": {
			status.New(codes.NotFound, "no").Proto(),
			`{"code":5,"message":"no","details":[]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := jsoncodec.Marshal(c.message)
			require.NoError(t, err)
			require.Equal(t, c.want, string(got))
		})
	}
}

func TestMarshalRefuses(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]proto.Message{
		"text that is no JSON":        &dagbridgev1.GetOutputResponse{Value: &dagbridgev1.Json{Text: "{a:1"}},
		"two values":                  &dagbridgev1.GetOutputResponse{Value: &dagbridgev1.Json{Text: `1,"x":2`}},
		"a string that is no UTF-8":   &dagbridgev1.Script{Text: "\xff"},
		"a key that is no UTF-8":      &dagbridgev1.Job{Labels: map[string]string{"\xff": ""}},
		"JSON that is no UTF-8":       &dagbridgev1.GetOutputResponse{Value: &dagbridgev1.Json{Text: "\"\xff\""}},
		"a time beyond the year 9999": &dagbridgev1.Job{EndTime: &timestamppb.Timestamp{Seconds: 1 << 50}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := jsoncodec.Marshal(m)
			require.Error(t, err)
		})
	}
}

func TestUnmarshalFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ in, want string }{
		"an unknown field, with its path": {
			`{"task": {"retry": {"maxRetry": 1}}}`,
			`task.retry.maxRetry: unknown field; there are maxRetries, backoff, maxBackoff, maxInfrastructureRetries, finalExitCodes, memoryGrowth, timeLimitGrowth`,
		},
		"all faults at once": {
			`{"task": {"env": {"A=B": 1, "C": null}, "tryNumber": "one", "upstream": [{"instances": "SOME"}, 5], "setup": 1}, "x": 1}`,
			strings.Join([]string{
				`task.env["A=B"]: must be a string, not a number: write "1"`,
				`task.env.C: must be a string, not null`,
				`task.tryNumber: must be an integer, not "one"`,
				`task.upstream[0].instances: "SOME" is none of ALL, SAME_INDEX`,
				`task.upstream[1]: must be an object, not a number`,
				`task.setup: must be true or false, not a number`,
				`x: unknown field; there are task, waitFor, onConflict, ifLive, reserve`,
			}, "\n"),
		},
		"a doubled field, also by its other name": {
			`{"waitFor": "ACCEPTED", "wait_for": "ACCEPTED"}`,
			`wait_for: is there twice`,
		},
		"a doubled key": {
			`{"task": {"env": {"A": "1", "\u0041": "2"}}}`,
			`task.env.A: is there twice`,
		},
		"a number too large": {`{"task": {"tryNumber": 2147483648}}`, `task.tryNumber: must be an integer of 32 bits, not 2147483648`},
		"a fraction":         {`{"task": {"tryNumber": 1.5}}`, `task.tryNumber: must be an integer of 32 bits, not 1.5`},
		"a number that is none": {`{"task": {"retry": {"memoryGrowth": {"factor": "twice"}, "timeLimitGrowth": {"factor": true}}}}`,
			"task.retry.memoryGrowth.factor: must be a number, not \"twice\"\ntask.retry.timeLimitGrowth.factor: must be a number, not a boolean"},
		"a number beyond all":  {`{"task": {"retry": {"memoryGrowth": {"factor": 1e999}}}}`, `task.retry.memoryGrowth.factor: is larger than any number here can be: 1e999`},
		"a duration":           {`{"task": {"retryWindow": "1h"}}`, `task.retryWindow: must be a duration in seconds such as "90s" or "0.5s", not "1h"`},
		"a list":               {`{"task": {"fallbacks": "x"}}`, `task.fallbacks: must be a list, not a string`},
		"a map":                {`{"task": {"env": []}}`, `task.env: must be an object, not a list`},
		"a list as a document": {`[]`, `must be an object, not a list`},
		"half a surrogate":     {`{"task": {"uid": "\ud800x"}}`, `task.uid: has half of a surrogate pair (\ud800 to \udfff), which is no character`},
		"a key with half a surrogate": {
			`{"task": {"env": {"\udc00": "x"}}}`,
			`task.env[""]: a key here has half of a surrogate pair (\ud800 to \udfff), which is no character`,
		},
		"not JSON":              {"{\"é\":\n  {x: 1}}", "the document is not JSON: line 2, column 4: invalid character 'x' looking for beginning of object key string"},
		"YAML":                  {"task: x", "the document is not JSON: line 1, column 2: invalid character 'a' in literal true (expecting 'r')"},
		"cut":                   {`{"task": {`, "the document is not JSON: line 1, column 10: unexpected end of JSON input"},
		"nothing":               {" \n", "the document is not JSON: line 1, column 1: there is nothing"},
		"trailing data":         {`{} {}`, "the document is not JSON: line 1, column 4: invalid character '{' after top-level value"},
		"invalid UTF-8":         {"{\"task\": \n\"\xff\"}", "the document is not JSON: line 2, column 2: a byte that is no UTF-8"},
		"nested without an end": {strings.Repeat("[", 100_000), "the document is not JSON: line 1, column 10001: invalid character '[' exceeded max depth"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := jsoncodec.Unmarshal([]byte(c.in), &dagbridgev1.SubmitTaskRequest{})
			require.EqualError(t, err, c.want)
			var faults *jsoncodec.Error
			require.ErrorAs(t, err, &faults)
		})
	}
}

func TestUnmarshalTakes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		in   string
		want proto.Message
	}{
		"null is left out, but a value where any JSON is": {
			`{"run": null, "tasks": null, "conf": null, "parameters": {"a": null}}`,
			&dagbridgev1.Workflow{Conf: &dagbridgev1.Json{Text: "null"}, Parameters: map[string]*dagbridgev1.Json{"a": {Text: "null"}}},
		},
		"json byte for byte": {
			`{"conf" :  {"x": 1.0,"y":[12345678901234567890 ]} , "parameters":{"\u00e9":"\u00e9"}}`,
			&dagbridgev1.Workflow{Conf: &dagbridgev1.Json{Text: `{"x": 1.0,"y":[12345678901234567890 ]}`}, Parameters: map[string]*dagbridgev1.Json{"é": {Text: `"\u00e9"`}}},
		},
		"integers in each form": {
			`{"waitFor": 1, "tasks": [{"tryNumber": "3", "maxTries": 3.0, "skipExitCodes": [1e2]}]}`,
			&dagbridgev1.Workflow{WaitFor: dagbridgev1.WaitFor_ACCEPTED, Tasks: []*dagbridgev1.Task{{TryNumber: 3, MaxTries: 3, SkipExitCodes: []int32{100}}}},
		},
		"numbers in each form": {
			`{"tasks": [{"retry": {"memoryGrowth": {"factor": 1.5}, "timeLimitGrowth": {"factor": "2"}}}]}`,
			&dagbridgev1.Workflow{Tasks: []*dagbridgev1.Task{{Retry: &dagbridgev1.Retry{MemoryGrowth: &dagbridgev1.Growth{Factor: 1.5}, TimeLimitGrowth: &dagbridgev1.Growth{Factor: 2}}}}},
		},
		"escapes": {
			`{"name": "\u0041\ud83d\ude00\n\/\"\\\b\f\r\t"}`,
			&dagbridgev1.Workflow{Name: "A😀\n/\"\\\b\f\r\t"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := c.want.ProtoReflect().New().Interface()
			require.NoError(t, jsoncodec.Unmarshal([]byte(c.in), got))
			require.Empty(t, diff(c.want, got))
		})
	}
}

func TestUnmarshalReplaces(t *testing.T) {
	t.Parallel()
	m := &dagbridgev1.GetJobRequest{Id: "old"}
	require.NoError(t, jsoncodec.Unmarshal([]byte(`{}`), m))
	require.Empty(t, m.GetId())
}

func TestJSONNotTooDeep(t *testing.T) {
	t.Parallel()
	deep := func(n int) []byte {
		return []byte(`{"conf":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}`)
	}
	require.NoError(t, jsoncodec.Unmarshal(deep(1000), &dagbridgev1.Workflow{}))
	require.EqualError(t, jsoncodec.Unmarshal(deep(1001), &dagbridgev1.Workflow{}), "conf: is nested more than 1000 deep")
}

func TestFaultsAreBounded(t *testing.T) {
	t.Parallel()
	in := `{"tasks":[` + strings.Repeat("1,", 9999) + `1]}`
	var faults *jsoncodec.Error
	require.ErrorAs(t, jsoncodec.Unmarshal([]byte(in), &dagbridgev1.Workflow{}), &faults)
	require.Len(t, faults.Violations, 100)
}

func TestCheck(t *testing.T) {
	t.Parallel()
	require.NoError(t, jsoncodec.Check(&dagbridgev1.Workflow{Conf: &dagbridgev1.Json{Text: "{}"}, Name: "x"}))
	require.NoError(t, jsoncodec.Check(&spb.Status{Code: 1}))
	err := jsoncodec.Check(&dagbridgev1.Workflow{
		Conf:       &dagbridgev1.Json{Text: "{a:1"},
		Parameters: map[string]*dagbridgev1.Json{"p": {Text: ""}, "q": {Text: "1"}},
		Tasks:      []*dagbridgev1.Task{{}, {Kubernetes: &dagbridgev1.KubernetesOptions{Volumes: &dagbridgev1.Json{Text: "\xff\xfe\x00"}}}},
	})
	require.EqualError(t, err, `conf: is not JSON: "{a:1"
parameters.p: is not JSON: ""
tasks[1].kubernetes.volumes: is not JSON: "\xff\xfe\x00"`)
}

// diff is empty when the messages are equal.
func diff(want, got proto.Message) string {
	if proto.Equal(want, got) {
		return ""
	}
	return protojson.Format(want) + "\n" + protojson.Format(got)
}

// canonical is a JSON text with its members sorted and its spaces gone.
func canonical(t require.TestingT, text []byte) string {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	require.NoError(t, d.Decode(&v))
	out, err := json.Marshal(v)
	require.NoError(t, err)
	return string(out)
}
