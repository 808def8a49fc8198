package kfp_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagbridge/dagbridge/translators/kfp"
)

// Any value is taken where a task wants a text, and only a value of the type where it wants another one.
func TestAsInput(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ kind, value, want string }{
		{"STRING", `"a"`, `"a"`},
		{"STRING", `3.0`, `"3"`},
		{"STRING", `true`, `"true"`},
		{"STRING", `{"a": [1, "b"]}`, `"{\"a\":[1,\"b\"]}"`},
		{"NUMBER_INTEGER", `3.0`, `3`},
		{"NUMBER_INTEGER", `"3"`, ""},
		{"LIST", `{"a": 1}`, ""},
	} {
		typed, err := kfp.AsInput(c.kind, json.RawMessage(c.value))
		if c.want == "" {
			require.Error(t, err, c)
			continue
		}
		require.NoError(t, err, c)
		require.Equal(t, c.want, string(typed))
	}
}
