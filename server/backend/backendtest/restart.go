package backendtest

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
)

// restart runs last and alone: it ends the Backend that the other rules use.
func restart(t *testing.T, s *suite) {
	waits := `echo "$DAGBRIDGE_JOB_ID" >> "$0/ran"; until [ -e "$0/go" ]; do sleep 0.1; done; printf '{"a": 1}' > "$DAGBRIDGE_OUTPUT"; touch "$0/done"`
	meanwhileTask, meanwhileDir := s.sh(t, waits)
	afterTask, afterDir := s.sh(t, waits)
	heldTask, heldDir := s.sh(t, `touch "$0/ran"`)
	meanwhile, after := s.run(t, meanwhileTask), s.run(t, afterTask)
	doomed, held := s.run(t, command("sleep", "86400")), s.hold(t, heldTask)
	before := s.run(t, command("sh", "-c", "echo before; exit 3"))
	before.end(dagbridgev1.Job_FAILED)
	for _, a := range []*attempt{meanwhile, after, doomed} {
		a.running()
	}
	held.await("held", isHeld)

	s.watcher.Stop()
	require.NoError(t, s.Backend.Close())
	touch(t, meanwhileDir, "go")
	eventually(t, s.Patience, "a job ends while there is no gateway", exists(meanwhileDir, "done"))

	s.Backend = s.Restart(t)
	defer func() { require.NoError(t, s.Backend.Close()) }()
	s.watcher = Watch(t, s.Backend)
	defer s.watcher.Stop()
	for _, a := range []*attempt{before, meanwhile, after, doomed, held} {
		finding := a.find()
		require.Equal(t, backend.Found, finding.Presence, finding.Proof)
		require.Equal(t, a.ref.ID, finding.Refs[0].ID)
		s.watcher.Add(a.known())
	}
	require.EqualValues(t, 3, *before.end(dagbridgev1.Job_FAILED).ExitCode)
	require.Equal(t, "before\n", before.stdout(-1))
	meanwhile.end(dagbridgev1.Job_SUCCEEDED)
	text, err := meanwhile.outputs(-1)
	require.NoError(t, err)
	require.JSONEq(t, `{"a": 1}`, text)

	after.running()
	held.await("held still", isHeld)
	require.ErrorIs(t, exists(heldDir, "ran")(), os.ErrNotExist)
	doomed.cancel()
	held.alter(backend.Change{Release: true})
	touch(t, afterDir, "go")
	doomed.end(dagbridgev1.Job_CANCELLED)
	held.end(dagbridgev1.Job_SUCCEEDED)
	after.end(dagbridgev1.Job_SUCCEEDED)
	for _, dir := range []string{meanwhileDir, afterDir} {
		require.Len(t, read(t, dir, "ran"), len(after.Job.Id)+1, "it ran once")
	}
}
