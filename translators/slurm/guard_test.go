package slurm_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagbridge/dagbridge/translators"
	"github.com/dagbridge/dagbridge/translators/slurm"
)

func TestACancelledTryNeverStarts(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	s := submission(sh("echo ran >> count"))
	require.NoError(t, os.MkdirAll(slurm.Dir(n.site, jobID), 0o770))
	require.NoError(t, os.WriteFile(slurm.CancelMark(n.site, jobID, token, -1), nil, 0o660))
	got := n.run(s)
	require.Equal(t, slurm.ExitCancelled, got.code)
	require.Contains(t, got.stderr, "it was cancelled")
	require.NoFileExists(t, filepath.Join(slurm.Dir(n.site, jobID), "count"))
	require.NoFileExists(t, slurm.ExitMarker(n.site, jobID, token, -1))

	s.Token = jobID + ".2"
	require.Equal(t, 0, n.run(s).code, "the mark is of one attempt")
}

func TestAJobWhoseUpstreamHasNotSucceededDoesNotRun(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	const upstream, array = "01910000-0000-7000-8000-00000000000a", "01910000-0000-7000-8000-00000000000b"
	first := submission(sh("exit 3"))
	first.Job.Id, first.Token = upstream, upstream+".1"
	require.Equal(t, 3, n.run(first).code)

	s := submission(sh("echo ran >> count"))
	s.Guard = []translators.InputJob{{JobID: upstream, Position: -1}}
	for _, position := range []int{8, 9, 10, 12} {
		s.Guard = append(s.Guard, translators.InputJob{JobID: array, Position: position})
	}
	job, faults := slurm.Translate(n.site, s)
	require.Empty(t, faults)
	require.Contains(t, job.Script, "/succeeded_{8..10}", "elements that follow each other are one word")
	require.Equal(t, slurm.ExitPremature, n.run(s).code)
	require.NoFileExists(t, slurm.StartMarker(n.site, jobID, token, -1))
	require.NoFileExists(t, filepath.Join(slurm.Dir(n.site, jobID), "count"))

	first = submission(sh("exit 0"))
	first.Job.Id, first.Token = upstream, upstream+".2"
	require.Equal(t, 0, n.run(first).code, "another attempt of it succeeds")
	for _, position := range []int{8, 9, 10, 12} {
		path := slurm.SucceededPath(n.site, n.site.User, array, position)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o770))
		require.NoError(t, os.WriteFile(path, nil, 0o660))
	}
	got := n.run(s)
	require.Equal(t, 0, got.code, got.stderr)
}

func TestARequeuedJobHasNotSucceededUntilItHasAgain(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	succeeded := slurm.SucceededPath(n.site, n.site.User, jobID, -1)
	s := submission(sh("[ -e once ] && exit 3; : > once; kill $PPID"))
	require.Equal(t, 0, n.run(s).code)
	require.FileExists(t, succeeded)
	require.Equal(t, 3, n.run(s, "SLURM_RESTART_COUNT=1").code)
	require.NoFileExists(t, succeeded)
}
