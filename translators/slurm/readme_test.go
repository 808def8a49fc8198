package slurm

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// README.md lists the options that a task may set.
func TestReadmeListsTheOptions(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(text), "<!-- slurm.options:")
	require.True(t, found)
	list, _, found := strings.Cut(rest, "<!-- end of slurm.options -->")
	require.True(t, found)
	var listed []string
	for _, word := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(list, -1) {
		listed = append(listed, word[1])
	}
	require.Equal(t, slices.Sorted(maps.Keys(options)), listed)
}
