package slurmtest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
)

// A newer release runs in a root file system of its own, several clusters at a time, and its jobs see the tests' folders.
func TestReleasesSideBySide(t *testing.T) {
	for release, version := range map[slurmtest.Release]string{slurmtest.Middle: "24.11.", slurmtest.Newest: "2"} {
		for _, name := range []string{"one", "another"} {
			t.Run(string(release)+" "+name, func(t *testing.T) {
				t.Parallel()
				c := slurmtest.Start(t, slurmtest.Options{Release: release, NoAccounting: true})
				require.True(t, strings.HasPrefix(c.Version, version), c.Version)
				file := filepath.Join(c.WorkDir(t), "version")
				c.Run(t, "sbatch", "--wait", "--output="+file, "--wrap=sbatch --version")
				said, err := os.ReadFile(file)
				require.NoError(t, err)
				require.Contains(t, string(said), c.Version)
				mounts, err := os.ReadFile("/proc/self/mountinfo")
				require.NoError(t, err)
				require.NotContains(t, string(mounts), c.Prefix)
			})
		}
	}
}
