package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagbridge/dagbridge/server/config"
)

// What README.md shows can be typed: it has a row for every command, its workflow can be planned, its configuration read.
func TestReadme(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	for _, command := range newRoot().Commands() {
		if !command.Hidden {
			require.Regexp(t, regexp.MustCompile("(?m)^\\|.*`"+command.Name()+"\\b"), string(text))
		}
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	require.Len(t, blocks, 2)

	workflow := filepath.Join(t.TempDir(), "workflow.yaml")
	require.NoError(t, os.WriteFile(workflow, []byte(blocks[0][1]), 0o600))
	root := newRoot()
	root.SetOut(io.Discard)
	root.SetArgs([]string{"plan", "--kind", "slurm", workflow})
	require.NoError(t, root.Execute())

	_, err = config.Parse("README.md", []byte(blocks[1][1]))
	require.NoError(t, err)
}
