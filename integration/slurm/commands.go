package slurmtest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Bin is the folder of the cluster's own sbatch, squeue and so on.
func (c *Cluster) Bin() string { return filepath.Join(c.Prefix, "bin") }

// enter begins a command line that is run in the root file system of the cluster's release, if it has one of its own.
func (c *Cluster) enter(tb testing.TB) []string {
	tb.Helper()
	pid, err := os.ReadFile(filepath.Join(c.Prefix, "run", "root.pid"))
	switch {
	case err == nil:
		return []string{"nsenter", "--target", strings.TrimSpace(string(pid)), "--mount"}
	case errors.Is(err, os.ErrNotExist):
		return nil
	}
	tb.Fatal(err)
	return nil
}

// Run runs one of Slurm's commands as root and returns what it printed.
func (c *Cluster) Run(tb testing.TB, command string, arguments ...string) string {
	tb.Helper()
	output, err := exec.Command(filepath.Join(c.Bin(), command), arguments...).CombinedOutput()
	if err != nil {
		tb.Fatalf("%s %s: %v\n%s", command, strings.Join(arguments, " "), err, output)
	}
	return strings.TrimSpace(string(output))
}

// Token makes a token for slurmrestd that is good for so many seconds.
func (c *Cluster) Token(tb testing.TB, user, seconds string) string {
	tb.Helper()
	_, token, found := strings.Cut(c.Run(tb, "scontrol", "token", "lifespan="+seconds, "username="+user), "SLURM_JWT=")
	if !found {
		tb.Fatal("scontrol token printed no token")
	}
	return token
}

// TokenFile is a file with User's token.
func (c *Cluster) TokenFile(tb testing.TB) string {
	tb.Helper()
	file := filepath.Join(tb.TempDir(), "slurm.jwt")
	if err := os.WriteFile(file, []byte(c.Token(tb, User, "86400")+"\n"), 0o600); err != nil {
		tb.Fatal(err)
	}
	return file
}

// WorkDir is a new folder that every user of the cluster can reach; a test's own temporary folder is root's alone.
func (c *Cluster) WorkDir(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp(filepath.Join(c.Prefix, "out"), "work-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return dir
}

// Daemon does "stop" (and waits), "kill" (by SIGKILL), "start", "restart", "hang" (it takes connections and does not answer) or
// "wake" to one of slurmctld, slurmdbd, slurmrestd, slurmd-n1, slurmd-n2, mariadb and munged. After start and restart the daemon
// may not answer yet.
func (c *Cluster) Daemon(tb testing.TB, action, daemon string) {
	tb.Helper()
	output, err := exec.Command(filepath.Join(c.Prefix, "daemon.sh"), c.Prefix, action, daemon).CombinedOutput()
	if err != nil {
		tb.Fatalf("%s %s: %v\n%s", action, daemon, err, output)
	}
}

// AwaitController waits until slurmctld answers.
func (c *Cluster) AwaitController(tb testing.TB) {
	tb.Helper()
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if text, _ := exec.Command(filepath.Join(c.Bin(), "scontrol"), "ping").CombinedOutput(); strings.Contains(string(text), "is UP") {
			return
		}
	}
	tb.Fatal("slurmctld does not answer")
}
