package slurm

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
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
	path := commandsIn(t, scripts)
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

// A job is asked for from its own submission on, however many midnights ago that was, and times come as seconds since 1970: an hour
// that a zone has twice is two.
func TestTimesAreSecondsWhateverTheZone(t *testing.T) {
	t.Setenv("TZ", "Europe/Berlin")
	t.Setenv("SLURM_TIME_FORMAT", "relative")
	file := filepath.Join(t.TempDir(), "asked")
	ask := `echo "$0 $* TZ=$TZ FORMAT=$SLURM_TIME_FORMAT" >>` + file + "\n"
	b := newCommands(t, map[string]string{"squeue": ask, "sacct": ask, "sdiag": ask + "echo DBD Agent queue size: 0"})
	s := backendtest.Submission(t, &dagbridgev1.Task{Command: &dagbridgev1.Command{Argv: []string{"true"}}})
	zone, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	// the night in which the clocks go back, an hour that comes twice
	submitted := time.Date(2026, 10, 24, 23, 58, 0, 0, zone)
	finding := b.Find(t.Context(), []backend.Want{{Token: s.Token, Job: s.Job, Since: submitted}})[0]
	require.Equal(t, backend.Absent, finding.Presence, finding.Proof)
	asked, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(asked), fmt.Sprintf("--starttime=uts%d --endtime=now+300", submitted.Add(-clockSkew).Unix()))
	for line := range strings.Lines(string(asked)) {
		require.Contains(t, line, "TZ=UTC FORMAT=%s\n")
	}

	start := time.Date(2026, 10, 25, 0, 30, 0, 0, time.UTC) // 02:30, for the first time
	seconds := func(at time.Time) string { return strconv.FormatInt(at.Unix(), 10) }
	records := queueLayout{printed + fieldEnd}.parse(queueLine("77", "COMPLETED", "None", "0", "(null)",
		seconds(start), seconds(start), seconds(start.Add(40*time.Minute)), "n1", "5", "svc", "(null)", "x"))
	require.Len(t, records, 1)
	require.Equal(t, 40*time.Minute, records[0].end.Sub(records[0].start), "it ended at 02:10, for the second time")
}
