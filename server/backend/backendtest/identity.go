package backendtest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/translators"
)

// submitTwice is what happens when an answer is lost: whether the second submission is adopted or makes a second native
// job, the program runs once.
func submitTwice(t *testing.T, s *suite) {
	task, dir := s.sh(t, `echo "$DAGBRIDGE_JOB_ID" >> "$0/ran"; until [ -e "$0/go" ]; do sleep 0.1; done`)
	sub := s.submission(t, task)
	first := s.submit(t, sub)
	eventually(t, s.Patience, "the first runs", exists(dir, "ran"))

	finding := first.find()
	require.Equal(t, backend.Found, finding.Presence, finding.Proof)
	require.Equal(t, first.ref.ID, finding.Refs[0].ID)

	results := s.Backend.Submit(s.context(t), []translators.Submission{sub})
	second := s.submitted(t, sub, results[0])
	if second.ref.ID != first.ref.ID {
		o := second.await("at its end", ended)
		require.Equal(t, dagbridgev1.Job_FAILED, o.State, "the second must not run, and must not pass for a success")
	}
	touch(t, dir, "go")
	first.end(dagbridgev1.Job_SUCCEEDED)
	require.Equal(t, sub.Job.Id+"\n", read(t, dir, "ran"))

	// Nor does one that comes after the end.
	results = s.Backend.Submit(s.context(t), []translators.Submission{sub})
	third := s.submitted(t, sub, results[0])
	third.await("at its end", ended)
	require.Equal(t, sub.Job.Id+"\n", read(t, dir, "ran"))
}

func findAlways(t *testing.T, s *suite) {
	task, dir := s.sh(t, `until [ -e "$0/go" ]; do sleep 0.1; done`)
	a := s.hold(t, task)
	found := func(when string) {
		t.Helper()
		finding := a.find()
		require.Equal(t, backend.Found, finding.Presence, "%s: %s", when, finding.Proof)
		require.Len(t, finding.Refs, 1)
		require.Equal(t, a.ref.ID, finding.Refs[0].ID)
		require.Equal(t, a.Token, finding.Refs[0].Token)
	}
	found("held")
	a.alter(backend.Change{Release: true})
	a.running()
	found("running")
	touch(t, dir, "go")
	a.end(dagbridgev1.Job_SUCCEEDED)
	found("ended")
}

func findAbsent(t *testing.T, s *suite) {
	there := s.hold(t, command("true"))
	absent := s.submission(t, command("true"))
	findings := s.Backend.Find(s.context(t), []backend.Want{
		{Token: absent.Token, Job: absent.Job, Since: time.Now()},
		{Token: there.Token, Job: there.Job, Since: time.Now().Add(-s.Patience)},
	})
	require.Len(t, findings, 2)
	require.Equal(t, backend.Absent, findings[0].Presence, findings[0].Proof)
	require.NotEmpty(t, findings[0].Proof)
	require.False(t, findings[0].Started)
	require.Empty(t, findings[0].Refs)
	require.Equal(t, backend.Found, findings[1].Presence, "answers come in the order of the questions")
	require.Empty(t, s.Backend.Find(s.context(t), nil))
}
