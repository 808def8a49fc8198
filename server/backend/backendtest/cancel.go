package backendtest

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
)

func isHeld(o backend.Observation) bool { return o.State == dagbridgev1.Job_SUBMITTED && o.Held }

func holdRelease(t *testing.T, s *suite) {
	task, dir := s.sh(t, `touch "$0/ran"`)
	a := s.hold(t, task)
	a.await("held", isHeld)
	// Another that came later, and needs the same, runs: so it is the hold that this one waits for.
	s.run(t, command("true")).end(dagbridgev1.Job_SUCCEEDED)
	require.ErrorIs(t, exists(dir, "ran")(), os.ErrNotExist)
	a.await("held still", isHeld)
	a.alter(backend.Change{Release: true})
	a.end(dagbridgev1.Job_SUCCEEDED)
	require.NoError(t, exists(dir, "ran")())
}

func alterGone(t *testing.T, s *suite) {
	ended := s.run(t, command("true"))
	ended.end(dagbridgev1.Job_SUCCEEDED)
	ended.alter(backend.Change{Release: true})
	never := s.submission(t, command("true"))
	errs := s.Backend.Alter(s.context(t), []backend.Change{
		{Ref: backend.NativeRef{ID: ended.ref.ID, Token: never.Token}, Job: never.Job, Release: true},
	})
	require.Equal(t, []error{nil}, errs)
	require.Empty(t, s.Backend.Alter(s.context(t), nil))
}

func cancelHeld(t *testing.T, s *suite) {
	task, dir := s.sh(t, `touch "$0/ran"`)
	a := s.hold(t, task)
	a.await("held", isHeld)
	a.cancel()
	o := a.end(dagbridgev1.Job_CANCELLED)
	require.True(t, o.StartTime.IsZero(), "it never started")
	a.alter(backend.Change{Release: true}) // an order that comes too late
	require.ErrorIs(t, exists(dir, "ran")(), os.ErrNotExist)
}

func cancelRunning(t *testing.T, s *suite) {
	task, dir := s.sh(t, `touch "$0/ran"; exec sleep 86400`)
	a := s.run(t, task)
	a.running()
	eventually(t, s.Patience, "it runs", exists(dir, "ran"))
	a.cancel()
	o := a.end(dagbridgev1.Job_CANCELLED)
	require.False(t, o.StartTime.IsZero())
	a.cancel() // twice is once
}

// cancelStubborn: neither the program, nor what it left in the background, heeds SIGTERM.
func cancelStubborn(t *testing.T, s *suite) {
	task, dir := s.sh(t, `trap "" TERM; sleep 86400 & echo "$! $$" > "$0/pids.part"; mv "$0/pids.part" "$0/pids"
while :; do sleep 1; done`)
	a := s.run(t, task)
	eventually(t, s.Patience, "it runs", exists(dir, "pids"))
	a.running()
	a.cancel()
	a.end(dagbridgev1.Job_CANCELLED)
	for _, word := range strings.Fields(read(t, dir, "pids")) {
		pid, err := strconv.Atoi(word)
		require.NoError(t, err)
		eventually(t, s.Patience, "its processes are dead", func() error {
			if alive(pid) {
				return fmt.Errorf("process %d is still there", pid)
			}
			return nil
		})
	}
}

func cancelEnded(t *testing.T, s *suite) {
	ended, live := s.run(t, command("true")), s.run(t, command("sleep", "86400"))
	ended.end(dagbridgev1.Job_SUCCEEDED)
	live.running()
	unknown := s.submission(t, command("true"))
	errs := s.Backend.Cancel(s.context(t), []backend.Known{
		ended.known(),
		{Ref: backend.NativeRef{ID: "999999999", Token: unknown.Token}, Job: unknown.Job},
		live.known(),
	})
	require.Equal(t, []error{nil, nil, nil}, errs)
	require.Empty(t, s.Backend.Cancel(s.context(t), nil))
	live.end(dagbridgev1.Job_CANCELLED)
	ended.end(dagbridgev1.Job_SUCCEEDED) // the true end stands
}

// cancelOther: ids are used again, so that an old reference may name somebody else's job.
func cancelOther(t *testing.T, s *suite) {
	task, dir := s.sh(t, `until [ -e "$0/go" ]; do sleep 0.1; done`)
	other := s.run(t, task)
	other.running()
	stale := s.submission(t, task)
	errs := s.Backend.Cancel(s.context(t), []backend.Known{
		{Ref: backend.NativeRef{ID: other.ref.ID, Token: stale.Token}, Job: stale.Job},
	})
	require.Equal(t, []error{nil}, errs)
	touch(t, dir, "go")
	other.end(dagbridgev1.Job_SUCCEEDED)
}
