package slurm

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// texts are of any bytes but NUL, and often of those that mean something to a shell.
func texts() *rapid.Generator[string] {
	bytes := rapid.OneOf(rapid.SampledFrom([]byte("'\"\\$`!*?~#&|;<>(){}[]= \t\n\r-_ab1")), rapid.ByteRange(1, 255))
	return rapid.Custom(func(t *rapid.T) string { return string(rapid.SliceOfN(bytes, 0, 40).Draw(t, "text")) })
}

// remotely runs a command as a login shell would be handed it.
func remotely(t require.TestingT, shell string, c command, path, stdin string) (stdout, stderr string, status int) {
	var out, errs bytes.Buffer
	cmd := exec.Command(shell, "-c", remoteLine(c, path, mark))
	cmd.Env = []string{"PATH=/usr/bin:/bin", "SLURM_CONF=/etc/a b/slurm.conf", "SBATCH_PARTITION=no"}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	err := cmd.Run()
	if _, exited := err.(*exec.ExitError); !exited {
		require.NoError(t, err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

const mark = "OVER2AND4OUT"

func TestARemoteCommandGetsWhatItIsGiven(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"sh", "bash"} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				arguments := rapid.SliceOfN(texts(), 0, 4).Draw(t, "arguments")
				stdin := texts().Draw(t, "stdin")
				value := texts().Draw(t, "value")
				show := `env -0; printf '%s\0' "$@"; cat`
				c := command{environment: []string{"A=" + value}, stdin: stdin, name: "sh", arguments: append([]string{"-c", show, "sh"}, arguments...)}
				stdout, stderr, status := remotely(t, shell, c, "/bin", stdin+mark)
				o, err := hear(stdout, stderr, mark, status)
				require.NoError(t, err)
				fields := strings.Split(o.stdout, "\x00")
				var shown []string
				for _, field := range fields[:len(fields)-1] {
					if !strings.HasPrefix(field, "PWD=") { // the shell's own
						shown = append(shown, field)
					}
				}
				given := append([]string{"A=" + value, "SLURM_CONF=/etc/a b/slurm.conf"}, arguments...)
				if len(arguments) == 0 {
					given = append(given, "") // printf prints its format once
				}
				if len(stdin) == 0 {
					require.Equal(t, given, shown)
					return
				}
				require.Equal(t, append(given, stdin), append(shown, fields[len(fields)-1]))
			})
		})
	}
}

func TestAScriptThatIsCutOnItsWayIsNotRun(t *testing.T) {
	t.Parallel()
	script := "#!/bin/sh\necho whole\n"
	c := command{stdin: script, name: "sh", environment: []string{searchPath}}
	for cut := range len(script + mark) {
		stdout, stderr, status := remotely(t, "sh", c, "", (script + mark)[:cut])
		o, err := hear(stdout, stderr, mark, status)
		require.NoError(t, err)
		require.True(t, o.notStarted(), "%d: %+v", cut, o)
		require.Empty(t, o.stdout)
	}
	stdout, stderr, status := remotely(t, "sh", c, "", script+mark)
	o, err := hear(stdout, stderr, mark, status)
	require.NoError(t, err)
	require.Equal(t, output{stdout: "whole\n"}, o)
}

func TestHalfAnAnswerIsNone(t *testing.T) {
	t.Parallel()
	c := command{name: "sh", arguments: []string{"-c", "echo 1; echo 2; echo oh >&2; exit 3"}, environment: []string{searchPath}}
	stdout, stderr, status := remotely(t, "sh", c, "", "")
	whole, err := hear("welcome\n"+stdout, "motd\n"+stderr, mark, status)
	require.NoError(t, err)
	require.Equal(t, output{"1\n2\n", "oh\n", 3}, whole)
	for cut := range len(stdout) {
		_, err := hear(stdout[:cut], stderr, mark, status)
		require.Error(t, err, stdout[:cut])
	}
	for cut := range len(stderr) {
		_, err := hear(stdout, stderr[:cut], mark, status)
		require.Error(t, err, stderr[:cut])
	}
}

func TestAMissingCommandOnALoginNodeIsNotStarted(t *testing.T) {
	t.Parallel()
	for _, stdin := range []string{"", "script"} {
		stdout, stderr, status := remotely(t, "sh", command{name: "sbatch", stdin: stdin}, "/nowhere", stdin+mark)
		o, err := hear(stdout, stderr, mark, status)
		require.NoError(t, err)
		require.True(t, o.notStarted(), "%+v", o)
	}
}
