package graph

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestHint(t *testing.T) {
	t.Parallel()
	names := map[string]bool{"train": true, "trail": true, "evaluate": true, "x": true, strings.Repeat("long", 20): true}
	for _, test := range []struct{ name, want string }{
		{"trian", `: did you mean "train"?`},
		{"trai", `: did you mean "trail"?`},
		{"Evaluate", `: did you mean "evaluate"?`},
		{"evalute", `: did you mean "evaluate"?`},
		{"deploy", ""},
		{"y", ""},
		{strings.Repeat("long", 20) + "x", ""},
	} {
		require.Equal(t, test.want, new(nearest).hint(test.name, names), test.name)
	}
}

func TestHintsEnd(t *testing.T) {
	t.Parallel()
	var n nearest
	for i := range maxHints {
		require.NotEmpty(t, n.hint(fmt.Sprintf("task%d", i), map[string]bool{"task": true}), i)
	}
	require.Empty(t, n.hint("tasks", map[string]bool{"task": true}))
}

func TestDistance(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[ab]{0,6}`)
		a, b, limit := word.Draw(t, "a"), word.Draw(t, "b"), rapid.IntRange(0, 6).Draw(t, "limit")
		var plain func(a, b string) int
		plain = func(a, b string) int {
			switch {
			case a == "" || b == "":
				return len(a) + len(b)
			case a[0] == b[0]:
				return plain(a[1:], b[1:])
			}
			return 1 + min(plain(a[1:], b), plain(a, b[1:]), plain(a[1:], b[1:]))
		}
		require.Equal(t, min(plain(a, b), limit+1), distance(a, b, limit))
	})
}
