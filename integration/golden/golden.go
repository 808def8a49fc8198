// Package golden compares what tests make with files that are kept beside them. With -update the files are written anew instead:
// the diff is then to be read.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the golden files, and pages that are made of the source")

// Equal compares a text with a file of a folder.
func Equal(tb testing.TB, folder, name, got string) {
	tb.Helper()
	file := filepath.Join(folder, name)
	if *update {
		require.NoError(tb, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(tb, err)
	require.Equal(tb, string(want), got)
}
