package backendtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/translators"
)

func exitZero(t *testing.T, s *suite) {
	o := s.run(t, command("true")).end(dagbridgev1.Job_SUCCEEDED)
	require.NotNil(t, o.ExitCode)
	require.Equal(t, int32(0), *o.ExitCode)
	require.Nil(t, o.Signal)
	require.False(t, o.StartTime.IsZero(), "it started")
	require.False(t, o.EndTime.Before(o.StartTime))
}

func exitCode(code int32) func(*testing.T, *suite) {
	return func(t *testing.T, s *suite) {
		o := s.run(t, command("sh", "-c", fmt.Sprintf("exit %d", code))).end(dagbridgev1.Job_FAILED)
		require.NotNil(t, o.ExitCode)
		require.Equal(t, code, *o.ExitCode)
		require.False(t, o.Infrastructure, "the program's own doing")
	}
}

func signalled(t *testing.T, s *suite) {
	o := s.run(t, command("sh", "-c", "kill -SEGV $$")).end(dagbridgev1.Job_FAILED)
	require.NotNil(t, o.ExitCode)
	require.Equal(t, int32(139), *o.ExitCode)
	if o.Signal != nil { // a shell between scheduler and program tells 139 alone
		require.Equal(t, int32(11), *o.Signal)
	}
}

func missingProgram(t *testing.T, s *suite) {
	o := s.run(t, command("no-such-program-anywhere")).end(dagbridgev1.Job_FAILED)
	require.NotNil(t, o.ExitCode)
	require.Equal(t, int32(127), *o.ExitCode)
}

func missingWorkingDirectory(t *testing.T, s *suite) {
	task, dir := s.sh(t, `touch "$0/ran"`)
	task.WorkingDirectory = filepath.Join(dir, "missing")
	a := s.run(t, task)
	if s.MakesFolders {
		a.end(dagbridgev1.Job_SUCCEEDED)
		require.NoError(t, exists(dir, "missing")())
		return
	}
	a.end(dagbridgev1.Job_FAILED)
	require.ErrorIs(t, exists(dir, "ran")(), os.ErrNotExist)
}

// missingJobFolder: somebody cleans up the folder between submission and start. A scheduler may make it anew for the job's log.
func missingJobFolder(t *testing.T, s *suite) {
	task, dir := s.sh(t, `touch "$0/ran"`)
	a := s.hold(t, task)
	a.await("held", func(o backend.Observation) bool { return o.Held })
	require.NoError(t, os.RemoveAll(filepath.Dir(s.Backend.Logs(a.Job, a.Token, -1).Stdout)))
	a.alter(backend.Change{Release: true})
	o := a.await("at its end, or gone", ended)
	if o.State == dagbridgev1.Job_SUCCEEDED {
		require.NoError(t, exists(dir, "ran")(), describe(o, true))
	}
}

func timeLimit(t *testing.T, s *suite) {
	task := command("sleep", "86400")
	task.Resources = &dagbridgev1.Resources{Cpu: s.Resources.GetCpu(), Memory: s.Resources.GetMemory(), TimeLimit: durationpb.New(s.TimeLimit)}
	o := s.run(t, task).end(dagbridgev1.Job_FAILED)
	require.Equal(t, "TIMEOUT", o.Reason)
	require.False(t, o.Infrastructure)
}

// many are submitted in one call, as the engine does.
func many(t *testing.T, s *suite) {
	const count = 200
	task, dir := s.sh(t, `echo "$DAGBRIDGE_JOB_ID" >> "$0/ran"`)
	subs := make([]translators.Submission, count)
	for i := range subs {
		subs[i] = s.submission(t, task)
	}
	ctx := s.context(t)
	results := s.Backend.Submit(ctx, subs)
	require.Len(t, results, count)
	ids := map[string]bool{}
	attempts := make([]*attempt, count)
	for i, result := range results {
		for result.Outcome == backend.Limited && ctx.Err() == nil { // the scheduler is slow, and wants the rest later
			time.Sleep(result.RetryAfter)
			result = s.Backend.Submit(ctx, subs[i:i+1])[0]
		}
		attempts[i] = s.submitted(t, subs[i], result)
		ids[result.Ref.ID] = true
	}
	require.Len(t, ids, count, "each has an id of its own")
	for _, a := range attempts {
		a.end(dagbridgev1.Job_SUCCEEDED)
	}
	ran := map[string]int{}
	for line := range strings.Lines(read(t, dir, "ran")) {
		ran[strings.TrimSpace(line)]++
	}
	for _, sub := range subs {
		require.Equal(t, 1, ran[sub.Job.Id], "runs of %s", sub.Job.Id)
	}
}

// nodeFailure runs alone: the node has other jobs too.
func nodeFailure(t *testing.T, s *suite) {
	a := s.run(t, command("sleep", "86400"))
	node := a.running().Node
	require.NotEmpty(t, node, "a running job has a node")
	s.FailNode(t, node)
	o := a.await("requeued or at its end", func(o backend.Observation) bool {
		return ended(o) || o.State == dagbridgev1.Job_SUBMITTED
	})
	if o.State != dagbridgev1.Job_SUBMITTED {
		require.Equal(t, dagbridgev1.Job_FAILED, o.State)
		require.Equal(t, "NODE_FAIL", o.Reason)
		require.True(t, o.Infrastructure)
	}
	a.cancel()
}

// alive says whether a process is there and no mere corpse.
func alive(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}
