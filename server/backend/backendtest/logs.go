package backendtest

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
)

func logs(t *testing.T, s *suite) {
	task, dir := s.sh(t, `echo one; until [ -e "$0/go" ]; do sleep 0.1; done; echo two`)
	a := s.run(t, task)
	a.eventually("the first line is in the log", func() error {
		text, err := a.log(-1, "stdout", 0)
		if err == nil && text != "one\n" {
			err = errNotYet
		}
		return err
	})
	text, err := a.log(-1, "stdout", int64(len("one\n")))
	require.NoError(t, err)
	require.Empty(t, text, "nothing more yet")
	touch(t, dir, "go")
	a.end(dagbridgev1.Job_SUCCEEDED)
	a.eventually("the second line is in the log", func() error {
		if text, err = a.log(-1, "stdout", int64(len("one\n"))); err == nil && text != "two\n" {
			err = errNotYet
		}
		return err
	})
	require.Equal(t, "one\ntwo\n", a.stdout(-1))
	text, err = a.log(-1, "stdout", 1000)
	require.NoError(t, err, "an offset beyond the end")
	require.Empty(t, text)
}

func stderrApart(t *testing.T, s *suite) {
	a := s.run(t, command("sh", "-c", "echo out; echo err >&2"))
	a.end(dagbridgev1.Job_SUCCEEDED)
	out, want := a.stdout(-1), "err\n"
	if s.LogsByCommand {
		want = ""
		require.ElementsMatch(t, []string{"out", "err"}, strings.Fields(out))
	} else {
		require.Equal(t, "out\n", out)
	}
	text, err := a.log(-1, "stderr", 0)
	require.NoError(t, err)
	require.Equal(t, want, text)
}

func logFiles(t *testing.T, s *suite) {
	a := s.run(t, command("sh", "-c", "echo out; echo err >&2"))
	a.end(dagbridgev1.Job_SUCCEEDED)
	require.Equal(t, "out\n", a.stdout(-1)) // a file system may show it a moment later
	paths := s.Backend.Logs(a.Job, a.Token, -1)
	require.Equal(t, "out\n", read(t, paths.Stdout))
	require.Equal(t, "err\n", read(t, paths.Stderr))
}

func logsBefore(t *testing.T, s *suite) {
	a := s.hold(t, command("true"))
	a.await("held", isHeld)
	for _, stream := range []string{"stdout", "stderr"} {
		_, err := a.log(-1, stream, 0)
		require.ErrorIs(t, err, backend.ErrNoFile)
	}
}

func logsHuge(t *testing.T, s *suite) {
	const size = 40_000_000
	a := s.run(t, command("sh", "-c", "head -c 40000000 /dev/zero | tr '\\0' x; printf tail"))
	a.end(dagbridgev1.Job_SUCCEEDED)

	r, total, err := s.Backend.Log(s.context(t), a.ref, a.Job, -1, "stdout", 0)
	require.NoError(t, err)
	require.EqualValues(t, size+len("tail"), total, "the size of the file")
	piece := make([]byte, 64<<10)
	n, err := r.Read(piece)
	require.NoError(t, err)
	require.Positive(t, n)
	rest, err := io.CopyBuffer(io.Discard, struct{ io.Reader }{r}, piece)
	require.NoError(t, err)
	require.EqualValues(t, total, int64(n)+rest)
	require.NoError(t, r.Close())

	text, err := a.log(-1, "stdout", size-3)
	require.NoError(t, err)
	require.Equal(t, "xxxtail", text)
}
