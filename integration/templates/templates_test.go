// Package templates compares the templates of translators/airflow/jinja with those of Airflow itself.
package templates

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dagbridge/dagbridge/translators/airflow/jinja"
)

// rendered is what becomes of a template.
type rendered struct {
	Text  *string `json:"text"`
	Error string  `json:"error"`
}

// oracle is what Airflow makes of templates.
func oracle(t *testing.T, templates []string) []rendered {
	t.Helper()
	environment := exec.Command("../../clients/python/environment.sh", "airflow-3.3")
	environment.Stderr = t.Output()
	folder, err := environment.Output()
	require.NoError(t, err)
	asked, err := json.Marshal(templates)
	require.NoError(t, err)
	python := exec.Command(filepath.Join(strings.TrimSpace(string(folder)), "bin/python"), "oracle.py")
	python.Env = append(os.Environ(), "AIRFLOW_HOME="+t.TempDir())
	python.Stdin, python.Stderr = bytes.NewReader(asked), t.Output()
	answer, err := python.Output()
	require.NoError(t, err)
	var all []rendered
	require.NoError(t, json.Unmarshal(answer, &all))
	require.Len(t, all, len(templates))
	return all
}

// dict is a mapping of names and values in turn.
func dict(members ...any) *jinja.Dict {
	d := &jinja.Dict{}
	for i := 0; i < len(members); i += 2 {
		d.Set(members[i].(string), members[i+1])
	}
	return d
}

// renderer has the variables of oracle.py.
func renderer() *jinja.Renderer {
	moment := jinja.Time{Time: time.Date(2026, 3, 9, 6, 5, 4, 0, time.UTC)}
	return jinja.NewRenderer(map[string]any{
		"ds": "2026-03-09", "ds_nodash": "20260309", "ts": "2026-03-09T06:05:04+00:00", "logical_date": moment, "run_id": "manual__1",
		"params": dict("lr", 0.001, "epochs", int64(10), "name", "Süß 'q'", "flag", true, "list", jinja.List{int64(1), 2.5, "x"},
			"nested", dict("b", int64(1), "a", jinja.List{nil})),
		"dag_run": &jinja.Object{Name: "dag_run", Why: "is not supported", Attr: map[string]any{
			"conf":   dict("who", "world", "n", int64(3), "items", jinja.List{"a", "b"}, "none", nil),
			"run_id": "manual__1", "dag_id": "risk", "logical_date": moment,
		}},
		"macros": jinja.Macros(),
	})
}

// refusedHere are templates of the corpus that Airflow renders, and that are refused: each is known, none is rendered otherwise.
var refusedHere = map[string]string{
	`{{ 5 % 2.0 }}`:             "not supported",
	`{{ params.name.upper() }}`: "beyond ASCII",
	`{{ (1, 2, 3) }}`:           "a tuple has no text",
}

func TestTemplatesAreAirflows(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("corpus.txt")
	require.NoError(t, err)
	var templates []string
	for line := range strings.Lines(string(text)) {
		templates = append(templates, strings.NewReplacer(`\n`+"\n", "\n", "\n", "").Replace(line))
	}
	answers := oracle(t, templates)
	for i, want := range answers {
		got, err := renderer().Render(templates[i])
		why, refused := refusedHere[templates[i]]
		switch {
		case refused:
			assert.ErrorContains(t, err, why, templates[i])
			assert.NotNil(t, want.Text, templates[i])
		case want.Text == nil:
			assert.Error(t, err, "%s renders to %v, Airflow says %s", templates[i], got, want.Error)
		case assert.NoError(t, err, "%s: Airflow renders %q", templates[i], *want.Text):
			have, known := got.String()
			assert.True(t, known)
			assert.Equal(t, *want.Text, have, templates[i])
		}
	}
}
