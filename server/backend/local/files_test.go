package local_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/server/backend/local"
)

// A program may leave anything where its outputs should be; reading it must neither hang nor fail the gateway.
func TestOddOutputFilesAreRefused(t *testing.T) {
	t.Parallel()
	g := start(t)
	for name, lines := range map[string]string{
		"a pipe":          `mkfifo "$DAGBRIDGE_OUTPUT"`,
		"a folder":        `mkdir "$DAGBRIDGE_OUTPUT"`,
		"a loop of links": `ln -s output "$DAGBRIDGE_OUTPUT"`,
		"a device":        `ln -s /dev/zero "$DAGBRIDGE_OUTPUT"`,
		"no UTF-8":        `printf 'a=\377\376' > "$DAGBRIDGE_OUTPUT"`,
	} {
		k := g.sh(lines)
		g.state(k, dagbridgev1.Job_SUCCEEDED)
		_, err := g.backend.Outputs(t.Context(), k.Ref, k.Job, -1)
		var refusal *backend.OutputError
		require.ErrorAs(t, err, &refusal, name)
		require.NotEmpty(t, refusal.Sentence)
	}
}

func TestOutputLimitIsTheSites(t *testing.T) {
	t.Parallel()
	g := start(t, func(o *local.Options) { o.OutputLimit = 10 })
	fits, over := g.sh(`printf '{"a": 123}' > "$DAGBRIDGE_OUTPUT"`), g.sh(`printf '{"a": 1234}' > "$DAGBRIDGE_OUTPUT"`)
	g.state(fits, dagbridgev1.Job_SUCCEEDED)
	text, err := g.backend.Outputs(t.Context(), fits.Ref, fits.Job, -1)
	require.NoError(t, err)
	require.Equal(t, `{"a": 123}`, string(text))
	g.state(over, dagbridgev1.Job_SUCCEEDED)
	_, err = g.backend.Outputs(t.Context(), over.Ref, over.Job, -1)
	require.EqualError(t, err, "the outputs are 11 bytes, and 10 are the limit: write large results to a file, and its path to the outputs")
}

func TestUnknownStreamIsRefused(t *testing.T) {
	t.Parallel()
	g := start(t)
	k := g.sh("true")
	_, _, err := g.backend.Log(t.Context(), k.Ref, k.Job, -1, "stdlog", 0)
	require.EqualError(t, err, `there is no stream "stdlog": ask for stdout or stderr`)
}

// The program inherits three files, and nothing of the gateway's, nor of its supervisor's.
func TestProgramHasThreeFiles(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer func() { require.NoError(t, errors.Join(r.Close(), w.Close())) }()
	// As if this process had been started with it.
	inherited, err := unix.FcntlInt(w.Fd(), unix.F_DUPFD, 100)
	require.NoError(t, err)
	defer func() { require.NoError(t, unix.Close(inherited)) }()

	g := start(t)
	k := g.sh("", func(task *dagbridgev1.Task) { task.Command.Argv = []string{"ls", "-l", "/proc/self/fd"} })
	g.state(k, dagbridgev1.Job_SUCCEEDED)
	stdout, err := os.ReadFile(g.backend.Logs(k.Job, k.Ref.Token, -1).Stdout)
	require.NoError(t, err)
	// The fourth is ls's own, of the folder that it reads.
	require.Regexp(t, `^total 0\n.* 0 -> /dev/null\n.* 1 -> .*/stdout\n.* 2 -> .*/stderr\n.* 3 -> /proc/\d+/fd\n$`, string(stdout))
}

func TestProgramRunsInItsOwnFolder(t *testing.T) {
	t.Parallel()
	g := start(t)
	k := g.sh(`cat > "$0/stdin"; pwd > "$0/dir"`)
	g.state(k, dagbridgev1.Job_SUCCEEDED)
	require.Empty(t, g.file("stdin"))
	own := filepath.Dir(g.attempt(k))
	require.Equal(t, own+"\n", g.file("dir"))
	info, err := os.Stat(own)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm(), "other users do not read jobs")
	require.EqualValues(t, os.Getuid(), info.Sys().(*syscall.Stat_t).Uid)
}
