package kubernetes

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPaths(t *testing.T) {
	t.Parallel()
	var o map[string]any
	require.NoError(t, json.Unmarshal([]byte(`{
		"spec": {"roles": {"Master": {"template": 1}, "Worker": {"template": 2}, "None": null}, "jobs": [{"name": "a", "spec": {"template": 3}}, {"name": "b", "spec": {"template": 4}}, 5]},
		"status": {"phase": "Done", "count": 3, "ok": true, "conditions": [{"type": "Ready", "status": "False"}, {"type": "Complete", "status": "True", "message": "m"}]}
	}`), &o))
	for path, want := range map[string][]any{
		"spec.roles.Master.template":             {1.0},
		"spec.roles.*.template":                  {1.0, 2.0},
		"spec.roles.Absent.template":             nil,
		"spec.roles.Master.absent":               {nil},
		"spec.jobs[name=b].spec.template":        {4.0},
		"spec.jobs[*].spec.template":             {3.0, 4.0},
		"spec.jobs.spec.template":                {3.0, 4.0},
		"spec.jobs[name=c].spec.template":        nil,
		"status.phase.deeper":                    nil,
		"status.conditions[type=Ready].status":   {"False"},
		"status.conditions[type=Complete].other": {nil},
	} {
		steps, err := parsePath(path)
		require.NoError(t, err, path)
		var got []any
		for _, at := range walk(o, steps) {
			got = append(got, at.value())
		}
		require.Equal(t, want, got, path)
	}
	for text, want := range map[string]bool{
		"status.phase=Done": true, "status.phase=Do": false, "status.count=3": true, "status.ok=true": true, "status.absent=": false,
		"status.conditions[type=Complete].status=True": true, "status.conditions[type=Ready].status=True": false, "status.conditions[type=Gone].status=True": false,
		"status.conditions.status=False": true,
	} {
		c, err := parseCondition(text)
		require.NoError(t, err, text)
		_, holds := c.where(o)
		require.Equal(t, want, holds, text)
	}
}

func FuzzPath(f *testing.F) {
	for _, seed := range []string{"a.b", "a[b=c].d=e", "a[*].b", "[", "a..b", "a.", "a]b=", "*.*=*"} {
		f.Add(seed)
	}
	o := map[string]any{"a": map[string]any{"b": []any{map[string]any{"c": "d"}, nil, "x"}}, "": map[string]any{}}
	f.Fuzz(func(t *testing.T, text string) {
		if steps, err := parsePath(text); err == nil {
			require.NotEmpty(t, steps)
			walk(o, steps)
		}
		if c, err := parseCondition(text); err == nil {
			c.where(o)
		}
	})
}
