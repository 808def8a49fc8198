package slurmtest_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagbridge/dagbridge/integration/program"
	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/server/backend/backendtest"
	"github.com/dagbridge/dagbridge/server/backend/slurm"
	"github.com/dagbridge/dagbridge/translators"
)

// counted are Slurm's commands, each behind a script that notes its name.
type counted struct{ path, calls string }

func count(t *testing.T, c *slurmtest.Cluster) counted {
	t.Helper()
	n := counted{path: t.TempDir(), calls: filepath.Join(t.TempDir(), "calls")}
	commands, err := os.ReadDir(c.Bin())
	require.NoError(t, err)
	for _, command := range commands {
		text := fmt.Sprintf("#!/bin/sh\necho %s >> %s\nexec %s \"$@\"\n", command.Name(), n.calls, filepath.Join(c.Bin(), command.Name()))
		require.NoError(t, program.Write(filepath.Join(n.path, command.Name()), []byte(text)))
	}
	return n
}

// since are the calls since the last time, by the command.
func (n counted) since(t *testing.T) map[string]int {
	t.Helper()
	text, err := os.ReadFile(n.calls)
	if !os.IsNotExist(err) {
		require.NoError(t, err)
		require.NoError(t, os.Remove(n.calls))
	}
	all := map[string]int{}
	for _, name := range strings.Fields(string(text)) {
		all[name]++
	}
	return all
}

// However many jobs there are, a look is one call, a cancel of all is two, and no job is no call.
func TestCallsDoNotGrowWithTheJobs(t *testing.T) {
	t.Parallel()
	c := slurmtest.Shared(t)
	n := count(t, c)
	o := ways["CLI"].options(t, c)
	o.CLI.Path = n.path
	b := newBackend(t, o)
	t.Cleanup(func() { require.NoError(t, b.Close()) })

	observe(t, b, nil, 5)
	require.Empty(t, n.since(t), "no job is live")

	submissions := make([]translators.Submission, 120)
	for i := range submissions {
		submissions[i] = held(backendtest.Submission(t, task("true")))
	}
	known := make([]backend.Known, len(submissions))
	for i, result := range b.Submit(t.Context(), submissions) {
		require.Equal(t, backend.Submitted, result.Outcome, result.Message)
		known[i] = backend.Known{Ref: result.Ref, Job: submissions[i].Job}
	}
	require.Equal(t, map[string]int{"sbatch": len(submissions)}, n.since(t))

	for _, some := range [][]backend.Known{known[:1], known} {
		for _, news := range observe(t, b, some, 4) {
			require.NoError(t, news.Err)
			require.Len(t, news.Observations, len(some))
		}
		require.Equal(t, map[string]int{"squeue": 4}, n.since(t), "%d jobs", len(some))
	}
	for _, err := range b.Cancel(t.Context(), known) {
		require.NoError(t, err)
	}
	require.Equal(t, map[string]int{"squeue": 1, "scancel": 1}, n.since(t))
}

// observe watches jobs until they have been asked for so many times, and answers with what was told.
func observe(t *testing.T, b *slurm.Backend, known []backend.Known, times int) (news []backend.News) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	b.Observe(ctx, func() []backend.Known {
		if times--; times < 0 {
			cancel()
			return nil
		}
		return known
	}, func(n backend.News) { news = append(news, n) })
	return news
}
