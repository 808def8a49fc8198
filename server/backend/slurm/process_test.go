package slurm

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dagbridge/dagbridge/integration/program"
)

// commandsIn makes a folder of commands.
func commandsIn(t *testing.T, scripts map[string]string) string {
	t.Helper()
	path := t.TempDir()
	for name, text := range scripts {
		writeProgram(t, filepath.Join(path, name), "#!/bin/sh\n"+text)
	}
	return path
}

func TestAGatewayThatIsNotRootBecomesAUserBySudo(t *testing.T) {
	// sudo that lets everybody become anybody, and shows how it was asked
	asked := filepath.Join(t.TempDir(), "asked")
	path := commandsIn(t, map[string]string{
		"sudo":   `echo "$*" >` + asked + `; shift 4; exec "$@"`,
		"sbatch": "env; cat",
	})
	t.Setenv("PATH", path+":"+os.Getenv("PATH"))
	t.Setenv("SLURM_CONF", "/etc/slurm.conf")
	t.Setenv("SUDO_USER", "somebody")
	p := &processes{}
	o, err := p.run(t.Context(), command{user: "bob", environment: []string{searchPath}, stdin: "script\n", name: "sbatch", arguments: []string{"--x=a b"}})
	require.NoError(t, err)
	require.Zero(t, o.status, o.stderr)
	text, err := os.ReadFile(asked)
	require.NoError(t, err)
	require.Equal(t, "-n -u bob -- /usr/bin/env -i "+searchPath+" SLURM_CONF=/etc/slurm.conf "+path+"/sbatch --x=a b\n", string(text))
	require.Equal(t, "SLURM_CONF=/etc/slurm.conf\n"+searchPath+"\nPWD="+pwd(t)+"\nscript\n", o.stdout)
}

func pwd(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	require.NoError(t, err)
	return dir
}

func TestASudoThatLetsNobodyInHasRunNothing(t *testing.T) {
	for name, c := range map[string]struct {
		sudo       string
		notStarted bool
	}{
		"no":                         {"echo 'sudo: a password is required' >&2; exit 1", true},
		"no, and a warning":          {"echo 'sudo: unable to resolve host x' >&2; echo 'sudo: a password is required' >&2; exit 1", true},
		"a warning, and sbatch ran":  {"echo 'sudo: unable to resolve host x' >&2; echo 'sbatch: error: Socket timed out' >&2; exit 1", false},
		"sbatch ended without words": {"exit 1", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("PATH", commandsIn(t, map[string]string{"sudo": c.sudo, "sbatch": ""})+":"+os.Getenv("PATH"))
			w := &cli{runner: &processes{}, timeout: 10 * time.Second, self: "svc"}
			_, err := w.order(t.Context(), "bob", "sbatch")
			require.Error(t, err)
			require.Equal(t, c.notStarted, errors.As(err, new(errNotStarted)), err.Error())
		})
	}
}

func TestACommandThatWillNotEndIsKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := commandsIn(t, map[string]string{"squeue": "trap '' TERM; echo $$ >" + dir + "/pid; while :; do sleep 0.1; done"})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for {
			if _, err := os.Stat(dir + "/pid"); err == nil {
				cancel()
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	_, err := (&processes{path: path}).run(ctx, command{name: "squeue", environment: []string{searchPath}})
	require.ErrorContains(t, err, "in time")
	pid, err := os.ReadFile(dir + "/pid")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		text, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/cmdline")
		return err != nil || len(text) == 0
	}, time.Minute, 10*time.Millisecond)
}

// writeProgram writes a file that is then run. Another test's fork must not inherit the descriptor while it is open for
// writing: the kernel would not run the file ("text file busy").
func writeProgram(t testing.TB, path, text string) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	require.NoError(t, program.Write(path, []byte(text)))
}
