package backendtest

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/translators"
)

func on(kind translators.DependencyType, upstream *attempt) translators.Dependencies {
	return translators.Dependencies{Terms: []translators.Dependency{{Type: kind, NativeID: upstream.ref.ID}}}
}

func refusedDependencies(t *testing.T, s *suite) {
	sub := s.submission(t, command("true"))
	sub.Depends.Terms = []translators.Dependency{{Type: translators.AfterOK, NativeID: "1"}}
	_, faults := s.Backend.Render(sub)
	require.NotEmpty(t, faults)
}

// after submits a task with a native dependency.
func (s *suite) after(t *testing.T, kind translators.DependencyType, upstream *attempt, task *dagbridgev1.Task) *attempt {
	t.Helper()
	sub := s.submission(t, task)
	sub.Depends = on(kind, upstream)
	return s.submit(t, sub)
}

// upstream waits for a file, then exits with a code.
func (s *suite) upstream(t *testing.T, code string) (a *attempt, release func()) {
	task, dir := s.sh(t, `until [ -e "$0/go" ]; do sleep 0.1; done; touch "$0/done"; exit `+code)
	return s.run(t, task), func() { touch(t, dir, "go") }
}

func afterOK(t *testing.T, s *suite) {
	up, release := s.upstream(t, "0")
	down := s.after(t, translators.AfterOK, up, command("true"))
	o := down.await("waiting for its upstream", func(o backend.Observation) bool {
		return o.State == dagbridgev1.Job_SUBMITTED && o.DependenciesKnown
	})
	require.Equal(t, []string{up.ref.ID}, o.Dependencies)
	require.False(t, o.NeverSatisfied)
	release()
	upEnd := up.end(dagbridgev1.Job_SUCCEEDED)
	require.False(t, down.end(dagbridgev1.Job_SUCCEEDED).StartTime.Before(upEnd.EndTime), "it starts when its upstream has ended")
}

func neverSatisfied(o backend.Observation) bool { return o.NeverSatisfied }

func afterOKFailed(t *testing.T, s *suite) {
	up, release := s.upstream(t, "3")
	task, dir := s.sh(t, `touch "$0/ran"`)
	down := s.after(t, translators.AfterOK, up, task)
	release()
	up.end(dagbridgev1.Job_FAILED)
	down.await("never to start", neverSatisfied)
	down.cancel()
	down.end(dagbridgev1.Job_CANCELLED)
	require.ErrorIs(t, exists(dir, "ran")(), os.ErrNotExist)
}

func afterAny(t *testing.T, s *suite) {
	up, release := s.upstream(t, "3")
	down := s.after(t, translators.AfterAny, up, command("true"))
	release()
	up.end(dagbridgev1.Job_FAILED)
	down.end(dagbridgev1.Job_SUCCEEDED)
}

// rewriteDependency is what a retry of the upstream does.
func rewriteDependency(t *testing.T, s *suite) {
	first, release := s.upstream(t, "3")
	down := s.after(t, translators.AfterOK, first, command("true"))
	release()
	first.end(dagbridgev1.Job_FAILED)
	down.await("never to start", neverSatisfied)

	second, release := s.upstream(t, "0")
	depends := on(translators.AfterOK, second)
	down.alter(backend.Change{Depends: &depends})
	down.await("waiting for the second", func(o backend.Observation) bool {
		return !o.NeverSatisfied && len(o.Dependencies) == 1 && o.Dependencies[0] == second.ref.ID
	})
	release()
	second.end(dagbridgev1.Job_SUCCEEDED)
	down.end(dagbridgev1.Job_SUCCEEDED)
}
