package slurm

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/server/backend/backendtest"
	"github.com/dagbridge/dagbridge/translators"
)

// newCommands is a backend whose commands are a test's own scripts.
func newCommands(t *testing.T, scripts map[string]string) *Backend {
	t.Helper()
	path := t.TempDir()
	for name, text := range scripts {
		require.NoError(t, os.WriteFile(filepath.Join(path, name), []byte("#!/bin/sh\n"+text), 0o755))
	}
	b, err := New(Options{
		Name: "fake", CLI: &CLI{Path: path}, WorkDir: t.TempDir(), Timeout: 100 * time.Millisecond, Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	return b
}

func submitTo(t *testing.T, b *Backend) backend.SubmitResult {
	t.Helper()
	s := backendtest.Submission(t, &dagbridgev1.Task{Command: &dagbridgev1.Command{Argv: []string{"true"}}})
	return b.Submit(t.Context(), []translators.Submission{s})[0]
}

func TestAnSbatchThatHangsIsUnknown(t *testing.T) {
	t.Parallel()
	result := submitTo(t, newCommands(t, map[string]string{"sbatch": "exec sleep 60"}))
	require.Equal(t, backend.Unknown, result.Outcome, result.Message)
	require.Contains(t, result.Message, "in time")
}

func TestAnSbatchThatIsNotThereIsNotSent(t *testing.T) {
	t.Parallel()
	result := submitTo(t, newCommands(t, nil))
	require.Equal(t, backend.NotSent, result.Outcome, result.Message)
}

func TestNothingOfTheGatewaysEnvironmentReachesSbatch(t *testing.T) {
	t.Setenv("SBATCH_PARTITION", "of the gateway's user")
	t.Setenv("SLURM_CONF", "/etc/slurm/slurm.conf")
	file := filepath.Join(t.TempDir(), "environment")
	result := submitTo(t, newCommands(t, map[string]string{"sbatch": "/usr/bin/env | /usr/bin/cut -d= -f1 | /usr/bin/sort >" + file + "; cat >/dev/null; echo 88"}))
	require.Equal(t, backend.Submitted, result.Outcome, result.Message)
	names, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "PATH\nPWD\nSLURM_CONF\n", string(names)) // PWD is the shell's own
}

func TestAWorkDirThatIsNotMountedIsNotMade(t *testing.T) {
	t.Parallel()
	b := newCommands(t, map[string]string{"sbatch": "echo 88"})
	require.NoError(t, os.Remove(b.site.WorkDir))
	result := submitTo(t, b)
	require.Equal(t, backend.NotSent, result.Outcome, result.Message)
	require.Contains(t, result.Message, b.site.WorkDir)
}

func TestAJobsFolderIsItsUsersAndTheGatewaysGroups(t *testing.T) {
	t.Parallel()
	b := newCommands(t, nil)
	for range 2 { // an earlier attempt's folder is taken as it is
		require.NoError(t, b.makeFolder(t.Context(), &dagbridgev1.Job{Id: "job"}))
		info, err := os.Stat(filepath.Join(b.site.WorkDir, b.site.User, "job"))
		require.NoError(t, err)
		require.Equal(t, os.ModeDir|os.ModeSetgid|0o770, info.Mode())
	}
}

func TestSqueueThatFailsIsNoEmptyQueue(t *testing.T) {
	t.Parallel()
	b := newCommands(t, map[string]string{"squeue": "echo 'slurm_load_jobs error: Unable to contact slurm controller (connect failure)' >&2; exit 1"})
	_, err := b.looks.jobs(t.Context(), nil)
	require.ErrorContains(t, err, "Unable to contact")

	b = newCommands(t, map[string]string{"squeue": "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1"})
	records, err := b.looks.jobs(t.Context(), []string{"5"})
	require.NoError(t, err)
	require.Empty(t, records)
}
