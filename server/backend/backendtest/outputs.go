package backendtest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/translators"
)

// writes is a task that leaves a text as its outputs.
func writes(text string) *dagbridgev1.Task {
	return command("sh", "-c", `printf %s "$1" > "$DAGBRIDGE_OUTPUT"`, "sh", text)
}

func (a *attempt) outputs(position int) (string, error) {
	text, err := a.suite.Backend.Outputs(a.suite.context(a.t), a.ref, a.Job, position)
	return string(text), err
}

// members of a JSON object, each as it was written.
func members(t *testing.T, text string) map[string]string {
	t.Helper()
	var raw map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(text), &raw), text)
	values := map[string]string{}
	for name, value := range raw {
		values[name] = string(value)
	}
	return values
}

func outputsJSON(t *testing.T, s *suite) {
	a := s.run(t, writes(`{ "auc": 3.0, "id": 9007199254740993, "tiny": 1e-7, "text": "a\u0062 é \"q\" \\", "list": [1, {"k": null}] }`+"\n"))
	a.end(dagbridgev1.Job_SUCCEEDED)
	text, err := a.outputs(-1)
	require.NoError(t, err)
	require.Equal(t, map[string]string{
		"auc": "3.0", "id": "9007199254740993", "tiny": "1e-7", "text": `"a\u0062 é \"q\" \\"`, "list": `[1, {"k": null}]`,
	}, members(t, text))
}

func outputsLines(t *testing.T, s *suite) {
	a := s.run(t, writes("auc=3.0\nmodel=/x/y=z \"q\" \\n é\nempty=\n"))
	a.end(dagbridgev1.Job_SUCCEEDED)
	text, err := a.outputs(-1)
	require.NoError(t, err)
	var values map[string]string
	require.NoError(t, json.Unmarshal([]byte(text), &values), text)
	require.Equal(t, map[string]string{"auc": "3.0", "model": `/x/y=z "q" \n é`, "empty": ""}, values)
}

func outputsNone(t *testing.T, s *suite) {
	for _, task := range []*dagbridgev1.Task{command("true"), writes("")} {
		a := s.run(t, task)
		a.end(dagbridgev1.Job_SUCCEEDED)
		text, err := a.outputs(-1)
		require.NoError(t, err)
		require.Empty(t, text)
	}
}

func outputsKilled(t *testing.T, s *suite) {
	task, dir := s.sh(t, `printf '{"half": 1}' > "$DAGBRIDGE_OUTPUT"; touch "$0/ran"; exec sleep 86400`)
	a := s.run(t, task)
	eventually(t, s.Patience, "it has written", exists(dir, "ran"))
	a.running()
	text, err := a.outputs(-1)
	require.NoError(t, err)
	require.Empty(t, text, "none before the end")
	a.cancel()
	a.end(dagbridgev1.Job_CANCELLED)
	text, err = a.outputs(-1)
	require.NoError(t, err)
	require.Empty(t, text)

	failed := s.run(t, command("sh", "-c", `printf '{"half": 1}' > "$DAGBRIDGE_OUTPUT"; exit 3`))
	failed.end(dagbridgev1.Job_FAILED)
	text, err = failed.outputs(-1)
	require.NoError(t, err)
	require.Empty(t, text)
}

func outputsRefused(text string) func(*testing.T, *suite) {
	return func(t *testing.T, s *suite) { s.run(t, writes(text)).refused() }
}

func outputsTooLarge(t *testing.T, s *suite) {
	limit := cmp.Or(s.OutputBytes, 48<<10)
	size := limit - 1<<10
	fits := s.run(t, writes(fmt.Sprintf(`{"k":"%s"}`, strings.Repeat("x", size))))
	// One argument cannot hold much more than the limit; a file can.
	over := s.run(t, command("sh", "-c", `{ printf '{"k":"'; head -c 2000000 /dev/zero | tr '\0' x; printf '"}'; } > "$DAGBRIDGE_OUTPUT"`))
	fits.end(dagbridgev1.Job_SUCCEEDED)
	text, err := fits.outputs(-1)
	require.NoError(t, err)
	require.Len(t, members(t, text)["k"], size+2)
	require.Contains(t, over.refused(), fmt.Sprint(limit))
}

// refused waits until the outputs are: either the scheduler has been told so, or the gateway finds out when it reads them.
func (a *attempt) refused() (sentence string) {
	a.t.Helper()
	o := a.await("at its end", ended)
	_, err := a.outputs(-1)
	var refusal *backend.OutputError
	if errors.As(err, &refusal) {
		require.NotEmpty(a.t, refusal.Sentence)
		return refusal.Sentence
	}
	require.NoError(a.t, err)
	require.Equal(a.t, dagbridgev1.Job_FAILED, o.State, describe(o, true))
	require.Equal(a.t, "OUTPUTS_REFUSED", o.Reason)
	require.NotEmpty(a.t, o.Message)
	return o.Message
}

func inputs(t *testing.T, s *suite) {
	sub := s.submission(t, command("sh", "-c", `cat "$DAGBRIDGE_INPUTS"`))
	object, list := `{"id": 9007199254740993, "loss": 3.0, "text": "it's $(x) \\ \"é\""}`, `[{"a":1},{}]`
	sub.Inputs = []translators.Input{
		{Task: "pre \"process\"", JSON: object},
		{Task: "simulate", JSON: list, Mapped: true},
	}
	with, without := s.submit(t, sub), s.run(t, command("sh", "-c", `cat "$DAGBRIDGE_INPUTS"`))
	with.end(dagbridgev1.Job_SUCCEEDED)
	require.Equal(t, map[string]string{"pre \"process\"": object, "simulate": list}, members(t, with.stdout(-1)))
	without.end(dagbridgev1.Job_SUCCEEDED)
	require.Empty(t, members(t, without.stdout(-1)))
}
