package integration

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/zip"
)

// A module is fetched as a zip file whose names hold less than those of a file system: one name that does not fit, in a folder
// of tests too, and nobody can fetch any of it.
func TestTheModuleCanBeFetched(t *testing.T) {
	t.Parallel()
	files, err := zip.CheckDir("..")
	require.NoError(t, err)
	require.Greater(t, len(files.Valid), 100)
}
