package airflow_test

import (
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
	"github.com/dagbridge/dagbridge/translators/airflow"
	"github.com/dagbridge/dagbridge/translators/graph"
)

// request is that of a case: request.json, or a run on a Monday, with a serialized DAG in it.
func request(t *testing.T, dir, dag string) *dagbridgev1.Workflow {
	t.Helper()
	text := []byte(`{"run": {"run": "manual__1"}, "logicalDate": "2026-03-09T06:05:04Z"}`)
	if own, err := os.ReadFile(filepath.Join(dir, "request.json")); err == nil {
		text = own
	}
	w := &dagbridgev1.Workflow{}
	require.NoError(t, jsoncodec.Unmarshal(text, w))
	serialized, err := os.ReadFile(dag)
	require.NoError(t, err)
	w.AirflowDag = &dagbridgev1.Json{Text: string(serialized)}
	return w
}

// TestTranslate walks the cases in testdata: a DAG, as one or both versions of Airflow serialize it (in.*.json), becomes the same workflow
// (out.json) with the same notices, or is refused with the same sentences (out.txt).
func TestTranslate(t *testing.T) {
	t.Parallel()
	cases, err := filepath.Glob("testdata/*/in.*.json")
	require.NoError(t, err)
	require.NotEmpty(t, cases)
	for _, in := range cases {
		dir := filepath.Dir(in)
		t.Run(filepath.Base(dir)+" "+filepath.Base(in), func(t *testing.T) {
			t.Parallel()
			w := request(t, dir, in)
			asked := proto.CloneOf(w)
			translated, faults := airflow.Translate(w, false)
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
			for _, fault := range graph.Check(graph.Normalize(complete(translated.Workflow)), func(*dagbridgev1.TaskKey) bool { return true }) {
				require.Equal(t, "is not supported yet", fault.Description, fault.Field) // else the DAG would have been refused here
			}
		})
	}
}

// complete is a workflow with what a caller would have said.
func complete(w *dagbridgev1.Workflow) *dagbridgev1.Workflow {
	w = proto.CloneOf(w)
	w.Run = &dagbridgev1.Run{Orchestrator: "airflow", Workflow: "risk", Run: "manual__1"}
	return w
}

// readable is a workflow as JSON without what is empty, and without what all scripts have in common.
func readable(t *testing.T, w *dagbridgev1.Workflow) string {
	t.Helper()
	text, err := jsoncodec.Marshal(w)
	require.NoError(t, err)
	var value any
	require.NoError(t, json.Unmarshal(text, &value))
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	require.NoError(t, encoder.Encode(pruned(value)))
	return b.String()
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
	case string:
		return strings.NewReplacer(airflow.PullFunction, "<pull.sh>\n", airflow.Capturing, "<capture.sh>\n", airflow.FunctionCall, "<function.py>\n").Replace(value)
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
