package local_test

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dagbridge/dagbridge/integration/program"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/server/backend/backendtest"
	"github.com/dagbridge/dagbridge/server/backend/local"
	"github.com/dagbridge/dagbridge/translators"
)

func small(o *local.Options) { o.CPUs, o.Memory = 2, 4<<30 }

// waits until a file is there.
const waits = `until [ -e "$0/go" ]; do sleep 0.1; done`

func waiting(reason string) func(backend.Observation) bool {
	return func(o backend.Observation) bool { return o.State == dagbridgev1.Job_SUBMITTED && o.Reason == reason }
}

func TestJobsWaitForCPUs(t *testing.T) {
	t.Parallel()
	g := start(t, small)
	first, half := g.sh(waits, needs("1.5", "")), g.sh(waits, needs("500m", ""))
	g.state(first, dagbridgev1.Job_RUNNING)
	g.state(half, dagbridgev1.Job_RUNNING)
	third := g.sh("true", needs("100m", ""))
	o := g.await(third, "waiting", waiting("RESOURCES"))
	require.Equal(t, "waits for 0.1 CPUs and 0 bytes of memory; 0 and 4294967296 are free", o.Message)
	require.False(t, o.Held)
	g.touch("go")
	g.state(third, dagbridgev1.Job_SUCCEEDED)
}

func TestJobsWaitForMemory(t *testing.T) {
	t.Parallel()
	g := start(t, small)
	first := g.sh(waits, needs("100m", "3Gi"))
	g.state(first, dagbridgev1.Job_RUNNING)
	second := g.sh("true", needs("100m", "2Gi"))
	g.await(second, "waiting", waiting("RESOURCES"))
	g.touch("go")
	g.state(second, dagbridgev1.Job_SUCCEEDED)
}

func TestNoneOvertakes(t *testing.T) {
	t.Parallel()
	g := start(t, small)
	first := g.sh(waits, needs("1", ""))
	g.state(first, dagbridgev1.Job_RUNNING)
	large := g.sh(`echo large >> "$0/order"`, needs("2", ""))
	smallest := g.sh(`echo small >> "$0/order"`, needs("100m", ""))
	o := g.await(smallest, "waiting", waiting("RESOURCES"))
	require.Equal(t, "waits for the jobs before it", o.Message)
	g.touch("go")
	g.state(large, dagbridgev1.Job_SUCCEEDED)
	g.state(smallest, dagbridgev1.Job_SUCCEEDED)
	require.Equal(t, "large\nsmall\n", g.file("order"))
}

func TestCancelledJobMakesRoom(t *testing.T) {
	t.Parallel()
	g := start(t, small)
	first, second := g.sh("exec sleep 86400", needs("2", "")), g.sh(`touch "$0/ran"`, needs("2", ""))
	third := g.sh("true", needs("2", ""))
	g.await(second, "waiting", waiting("RESOURCES"))
	g.cancel(second)
	require.True(t, g.state(second, dagbridgev1.Job_CANCELLED).StartTime.IsZero())
	g.cancel(first)
	g.state(third, dagbridgev1.Job_SUCCEEDED)
	_, err := os.Stat(filepath.Join(g.files, "ran"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestQueueOutlivesTheGateway(t *testing.T) {
	t.Parallel()
	g := start(t, small)
	running := g.sh(waits, needs("2", ""))
	g.state(running, dagbridgev1.Job_RUNNING)
	first, second := g.sh(`echo first >> "$0/order"`, needs("2", "")), g.sh(`echo second >> "$0/order"`, needs("2", ""))
	g.stop()
	g.open()
	for _, k := range []backend.Known{running, first, second} {
		g.watcher.Add(k)
	}
	g.state(running, dagbridgev1.Job_RUNNING)
	g.await(first, "waiting", waiting("RESOURCES"))
	g.touch("go")
	g.state(second, dagbridgev1.Job_SUCCEEDED)
	require.Equal(t, "first\nsecond\n", g.file("order"))
	entries, err := os.ReadDir(filepath.Join(g.dir, "queue"))
	require.NoError(t, err)
	require.Empty(t, entries, "what has ended is not read again")
}

func TestSupervisorThatCannotStartIsTriedAgain(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "dagbridge")
	g := start(t, func(o *local.Options) { o.Supervisor = []string{missing, "supervise"} })
	k := g.sh("true")
	o := g.await(k, "waiting", func(o backend.Observation) bool { return o.State == dagbridgev1.Job_SUBMITTED && o.Message != "" })
	require.Contains(t, o.Message, "its supervisor cannot be started")
	require.False(t, o.Held, "nobody is to release it")
	require.NoError(t, os.Symlink(os.Args[0], missing))
	g.state(k, dagbridgev1.Job_SUCCEEDED)
}

func TestSupervisorThatEndsBeforeItBeginsIsTriedAgain(t *testing.T) {
	t.Parallel()
	script := filepath.Join(t.TempDir(), "dagbridge")
	writeProgram(t, script, "#!/bin/sh\necho broken >&2\nexit 1\n")
	g := start(t, func(o *local.Options) { o.Supervisor = []string{script} })
	k := g.sh("true")
	g.await(k, "waiting", func(o backend.Observation) bool {
		return o.State == dagbridgev1.Job_SUBMITTED && o.Message == "its supervisor ended before it began: broken"
	})
	g.cancel(k)
	g.state(k, dagbridgev1.Job_CANCELLED)
}

func TestOneProcessRunsTheQueue(t *testing.T) {
	t.Parallel()
	g := start(t)
	k := g.sh("exec sleep 86400")
	other := cluster(t, g.dir)
	sentence := "another process runs the jobs in " + g.dir
	sub := backendtest.Submission(t, &dagbridgev1.Task{Command: &dagbridgev1.Command{Argv: []string{"true"}}})

	result := other.Submit(t.Context(), []translators.Submission{sub})[0]
	require.Equal(t, backend.NotSent, result.Outcome)
	require.Contains(t, result.Message, sentence)
	finding := other.Find(t.Context(), []backend.Want{{Token: k.Ref.Token, Job: k.Job}})[0]
	require.Equal(t, backend.Uncertain, finding.Presence)
	require.ErrorContains(t, other.Cancel(t.Context(), []backend.Known{k})[0], sentence)
	require.ErrorContains(t, other.Alter(t.Context(), []backend.Change{{Ref: k.Ref, Release: true}})[0], sentence)
	require.ErrorContains(t, firstNews(t, other, k).Err, sentence)
	require.NoError(t, other.Close())
}

// Had the disk been taken away, nothing that it lacks would be proven gone.
func TestMissingFolderIsNoNews(t *testing.T) {
	t.Parallel()
	g := start(t)
	k := g.sh("exec sleep 86400")
	g.state(k, dagbridgev1.Job_RUNNING)
	g.watcher.Stop()
	require.NoError(t, os.Rename(g.dir, g.dir+".away"))
	require.ErrorContains(t, firstNews(t, g.backend, k).Err, "cannot be seen")
	require.NoError(t, os.Rename(g.dir+".away", g.dir))
	require.NoError(t, firstNews(t, g.backend, k).Err)
}

func TestNothingIsLookedAtWhileNothingIsKnown(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "cluster")
	b := cluster(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	b.Observe(ctx, func() []backend.Known {
		if calls++; calls == 3 {
			cancel()
		}
		return nil
	}, func(backend.News) { t.Error("news of nothing") })
	_, err := os.Stat(dir)
	require.ErrorIs(t, err, os.ErrNotExist, "the folder is not even made")
	require.NoError(t, b.Close())
}

// Whoever has lost an order learns from news that is told again that it is still to be given.
func TestNewsIsToldAgain(t *testing.T) {
	t.Parallel()
	g := start(t)
	k := g.sh("exec sleep 86400")
	g.state(k, dagbridgev1.Job_RUNNING)
	g.watcher.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	told := 0
	g.backend.Observe(ctx, func() []backend.Known { return []backend.Known{k} }, func(n backend.News) {
		if told += len(n.Observations); told == 2 {
			cancel()
		}
	})
	require.Equal(t, 2, told)
}

// firstNews is what Observe tells first.
func firstNews(t *testing.T, b *local.Backend, known ...backend.Known) (first backend.News) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	b.Observe(ctx, func() []backend.Known { return known }, func(n backend.News) {
		if first.AsOf.IsZero() {
			first = n
		}
		cancel()
	})
	require.WithinDuration(t, time.Now(), first.AsOf, patience)
	return first
}

// slowly is a supervisor that takes its time before it begins.
func slowly(t *testing.T, seconds string) func(*local.Options) {
	path := filepath.Join(t.TempDir(), "dagbridge")
	text := "#!/bin/sh\nsleep " + seconds + "\nexec '" + os.Args[0] + "' supervise \"$@\"\n"
	writeProgram(t, path, text)
	return func(o *local.Options) { o.Supervisor = []string{path} }
}

// The gateway ends after it has started a supervisor, and before that has begun: the next one starts another.
func TestTwoSupervisorsStartOneProgram(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ first, second string }{
		"the first is faster":  {"0.5", "1.5"},
		"the second is faster": {"1.5", "0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := start(t, slowly(t, c.first))
			k := g.sh(`echo ran >> "$0/runs"; exec sleep 86400`)
			g.stop()
			g.change = []func(*local.Options){slowly(t, c.second)}
			g.open()
			g.watcher.Add(k)
			g.file("runs")
			// The slower one has found the other's marker when it says so.
			g.eventually(func() bool {
				text, err := os.ReadFile(filepath.Join(g.attempt(k), "supervisor"))
				return err == nil && string(text) == "the job has a supervisor already\n"
			}, "the slower one has not begun")
			g.state(k, dagbridgev1.Job_RUNNING)
			g.cancel(k)
			g.state(k, dagbridgev1.Job_CANCELLED)
			require.Equal(t, "ran\n", g.file("runs"))
		})
	}
}

func TestCancelReachesASupervisorThatHasNotBegun(t *testing.T) {
	t.Parallel()
	g := start(t, slowly(t, "1"))
	k := g.sh(`touch "$0/ran"`)
	g.state(k, dagbridgev1.Job_RUNNING)
	g.cancel(k)
	g.state(k, dagbridgev1.Job_CANCELLED)
	_, err := os.Stat(filepath.Join(g.files, "ran"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestJobThatCannotBeWrittenDownIsRefusedForNow(t *testing.T) {
	t.Parallel()
	g := start(t)
	sub := backendtest.Submission(t, &dagbridgev1.Task{Command: &dagbridgev1.Command{Argv: []string{"true"}}})
	attempt := filepath.Dir(g.backend.Logs(sub.Job, sub.Token, -1).Stdout)
	require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Dir(attempt)), 0o700))
	require.NoError(t, os.WriteFile(filepath.Dir(attempt), nil, 0o600)) // a file where the folder should be
	result := g.backend.Submit(t.Context(), []translators.Submission{sub})[0]
	require.NotEqual(t, backend.Submitted, result.Outcome)
	require.Contains(t, result.Message, "the job cannot be written down")
	require.NoError(t, os.Remove(filepath.Dir(attempt)))
	result = g.backend.Submit(t.Context(), []translators.Submission{sub})[0]
	require.Equal(t, backend.Submitted, result.Outcome, result.Message)
	k := backend.Known{Ref: result.Ref, Job: sub.Job}
	g.watcher.Add(k)
	g.state(k, dagbridgev1.Job_SUCCEEDED)
}

// writeProgram writes a file that is then run. Another test's fork must not inherit the descriptor while it is open for
// writing: the kernel would not run the file ("text file busy").
func writeProgram(t testing.TB, path, text string) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	require.NoError(t, program.Write(path, []byte(text)))
}
