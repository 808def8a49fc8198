package slurmtest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/dagbridge/dagbridge/integration/program"
	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/server/backend/backendtest"
	"github.com/dagbridge/dagbridge/server/backend/slurm"
)

// loginOptions are for a backend by way of a login node.
func loginOptions(t *testing.T, c *slurmtest.Cluster, n *slurmtest.LoginNode) slurm.Options {
	o := way{}.options(t, c)
	o.SSH = login(c, n)
	return o
}

// login is how a login node is reached.
func login(c *slurmtest.Cluster, n *slurmtest.LoginNode) *slurm.SSH {
	return &slurm.SSH{
		Host: "127.0.0.1", Port: n.Port, User: slurmtest.User, KeyFile: n.KeyFile, KnownHostsFile: n.KnownHosts, Path: c.Bin(),
	}
}

// looks says how a look for a job that nobody has ends.
func looks(t *testing.T, b *slurm.Backend) backend.Finding {
	t.Helper()
	s := backendtest.Submission(t, task("true"))
	return b.Find(t.Context(), []backend.Want{{Token: s.Token, Job: s.Job, Since: time.Now()}})[0]
}

func closing(t *testing.T, b *slurm.Backend) *slurm.Backend {
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return b
}

func TestWhoIsLetInAtALoginNode(t *testing.T) {
	t.Parallel()
	c, n := slurmtest.Shared(t), slurmtest.LogIn(t)
	strange, key := n.NewKeyFile(t, "strange")
	agentOf := func(t *testing.T, keys ...string) string {
		socket := filepath.Join(t.TempDir(), "agent")
		agent := exec.Command("ssh-agent", "-D", "-a", socket)
		require.NoError(t, agent.Start())
		t.Cleanup(func() { _ = agent.Process.Kill(); _ = agent.Wait() })
		require.Eventually(t, func() bool { _, err := os.Stat(socket); return err == nil }, time.Minute, 10*time.Millisecond)
		for _, key := range keys {
			add := exec.Command("ssh-add", "-q", key)
			add.Env = []string{"SSH_AUTH_SOCK=" + socket}
			require.NoError(t, add.Run())
		}
		return socket
	}
	for name, test := range map[string]struct {
		change func(*testing.T, *slurm.SSH)
		fault  string
	}{
		"by a key": {func(*testing.T, *slurm.SSH) {}, ""},
		"by a certificate": {func(t *testing.T, o *slurm.SSH) {
			o.KeyFile, o.CertFile = strange, n.Certify(t, key.PublicKey(), slurmtest.User, time.Hour)
		}, ""},
		"at a host that an authority knows": {func(t *testing.T, o *slurm.SSH) { o.KnownHostsFile = n.AuthorityFile(t) }, ""},
		"by an agent":                       {func(t *testing.T, o *slurm.SSH) { o.KeyFile, o.Agent = "", agentOf(t, n.KeyFile) }, ""},
		"not by a strange key":              {func(_ *testing.T, o *slurm.SSH) { o.KeyFile = strange }, "does not let slurmtest in"},
		"not by a certificate that is over": {func(t *testing.T, o *slurm.SSH) {
			o.KeyFile, o.CertFile = strange, n.Certify(t, key.PublicKey(), slurmtest.User, -time.Minute)
		}, "does not let slurmtest in"},
		"not by somebody else's certificate": {func(t *testing.T, o *slurm.SSH) {
			o.KeyFile, o.CertFile = strange, n.Certify(t, key.PublicKey(), "slurmtest2", time.Hour)
		}, "does not let slurmtest in"},
		"not by a certificate of another key": {func(t *testing.T, o *slurm.SSH) {
			o.CertFile = n.Certify(t, key.PublicKey(), slurmtest.User, time.Hour)
		}, "is of another key"},
		"not without a key":                    {func(t *testing.T, o *slurm.SSH) { o.KeyFile, o.Agent = "", agentOf(t) }, "has no keys"},
		"not by a file without a key":          {func(_ *testing.T, o *slurm.SSH) { o.KeyFile = n.KnownHosts }, "holds no private key"},
		"not where nobody listens":             {func(_ *testing.T, o *slurm.SSH) { o.Port = 1 }, "cannot be reached"},
		"not at a host nobody knows":           {func(_ *testing.T, o *slurm.SSH) { o.Host = "localhost" }, "no authorities for hostname: localhost"},
		"not without the known hosts":          {func(_ *testing.T, o *slurm.SSH) { o.KnownHostsFile = "/nowhere" }, "ssh.knownHostsFile"},
		"not into commands that are not there": {func(_ *testing.T, o *slurm.SSH) { o.Path = "/nowhere" }, "does not run"},
	} {
		t.Run(name, func(t *testing.T) {
			o := loginOptions(t, c, n)
			test.change(t, o.SSH)
			b := closing(t, newBackend(t, o))
			s := backendtest.Submission(t, task("true"))
			if test.fault == "" {
				finding := looks(t, b)
				require.Equal(t, backend.Absent, finding.Presence, finding.Proof)
				return
			}
			result := (&bench{backend: b}).try(t, s)
			require.Equal(t, backend.NotSent, result.Outcome, result.Message)
			require.Contains(t, result.Message, test.fault)
			finding := looks(t, b)
			require.Equal(t, backend.Uncertain, finding.Presence)
			require.Contains(t, finding.Proof, test.fault)
		})
	}
}

func TestAHostWithAnotherKeyIsToldNothing(t *testing.T) {
	t.Parallel()
	c, n := slurmtest.Shared(t), slurmtest.LogIn(t)
	n.Signal(t, syscall.SIGKILL)
	right := n.NewHostKey(t)
	n.Start(t)
	b := closing(t, newBackend(t, loginOptions(t, c, n)))
	for range 3 {
		result := (&bench{backend: b}).try(t, backendtest.Submission(t, task("true")))
		require.Equal(t, backend.NotSent, result.Outcome)
		require.Contains(t, result.Message, "somebody may be in between")
		require.Contains(t, result.Message, ssh.FingerprintSHA256(right))
		require.Contains(t, result.Message, n.KnownHosts+", line 1")
	}
	require.Zero(t, n.Connections(t))
	// the file is read again once it is right
	line := knownhosts.Line([]string{n.Address()}, right)
	require.NoError(t, os.WriteFile(n.KnownHosts, []byte(line+"\n"), 0o644))
	require.Eventually(t, func() bool { return looks(t, b).Presence == backend.Absent }, patience, 100*time.Millisecond)
}

func TestAHundredCommandsAtOnceShareOneConnection(t *testing.T) {
	t.Parallel()
	c := slurmtest.Shared(t)
	for name, options := range map[string][]string{"as sshd comes": nil, "two sessions at most": {"MaxSessions 2"}} {
		t.Run(name, func(t *testing.T) {
			n := slurmtest.LogIn(t, options...)
			b := closing(t, newBackend(t, loginOptions(t, c, n)))
			var all sync.WaitGroup
			findings := make([]backend.Finding, 100)
			for i := range findings {
				all.Go(func() { findings[i] = looks(t, b) })
			}
			all.Wait()
			for _, finding := range findings {
				require.Equal(t, backend.Absent, finding.Presence, finding.Proof)
			}
			require.Equal(t, 1, n.Connections(t))
		})
	}
}

// slowCommands are Slurm's, but for an sbatch that stops before it has submitted.
func slowCommands(t *testing.T, c *slurmtest.Cluster, n *slurmtest.LoginNode) (path, begun string) {
	path = filepath.Dir(n.KnownHosts)
	begun = filepath.Join(c.Prefix, "out", "begun-"+filepath.Base(path))
	for _, name := range []string{"squeue", "sacct", "scancel", "scontrol"} {
		require.NoError(t, os.Symlink(filepath.Join(c.Bin(), name), filepath.Join(path, name)))
	}
	text := "#!/bin/sh\necho $$ >" + begun + "\nexec sleep 600\n"
	require.NoError(t, program.Write(filepath.Join(path, "sbatch"), []byte(text)))
	return path, begun
}

func TestASubmissionWhoseConnectionIsCutIsUnknown(t *testing.T) {
	t.Parallel()
	c, n := slurmtest.Shared(t), slurmtest.LogIn(t)
	o := loginOptions(t, c, n)
	var begun string
	o.SSH.Path, begun = slowCommands(t, c, n)
	b := closing(t, newBackend(t, o))
	results := make(chan backend.SubmitResult)
	go func() { results <- (&bench{backend: b}).try(t, backendtest.Submission(t, task("true"))) }()
	require.Eventually(t, func() bool { _, err := os.Stat(begun); return err == nil }, patience, 20*time.Millisecond)
	n.Signal(t, syscall.SIGKILL)
	result := <-results
	require.Equal(t, backend.Unknown, result.Outcome, result.Message)
	require.Contains(t, result.Message, "cut")
	require.Equal(t, backend.Uncertain, looks(t, b).Presence)
	n.Start(t)
	require.Eventually(t, func() bool { return looks(t, b).Presence == backend.Absent }, patience, 100*time.Millisecond)
}

// Slots of the connection must not be left to commands that nobody waits for any more.
func TestACommandThatIsTooLateIsEnded(t *testing.T) {
	t.Parallel()
	c, n := slurmtest.Shared(t), slurmtest.LogIn(t, "MaxSessions 1")
	o := loginOptions(t, c, n)
	o.Timeout = time.Second
	var begun string
	o.SSH.Path, begun = slowCommands(t, c, n)
	b := closing(t, newBackend(t, o))
	require.Eventually(t, func() bool { return looks(t, b).Presence == backend.Absent }, patience, 100*time.Millisecond)
	result := (&bench{backend: b}).try(t, backendtest.Submission(t, task("true")))
	require.Equal(t, backend.Unknown, result.Outcome, result.Message)
	require.Contains(t, result.Message, "in time")
	pid := strings.TrimSpace(readFile(t, begun))
	require.Eventually(t, func() bool {
		text, err := os.ReadFile("/proc/" + pid + "/cmdline")
		return err != nil || len(text) == 0
	}, patience, 20*time.Millisecond)
	require.Eventually(t, func() bool { return looks(t, b).Presence == backend.Absent }, patience, 100*time.Millisecond)
	require.Equal(t, 1, n.Connections(t))
}

func TestAnSshdThatDiesIsWaitedFor(t *testing.T) {
	t.Parallel()
	c, n := slurmtest.Shared(t), slurmtest.LogIn(t)
	o := loginOptions(t, c, n)
	b := closing(t, newBackend(t, o))
	watched := &bench{Cluster: c, backend: b, options: o, watcher: backendtest.Watch(t, b)}
	sub := backendtest.Submission(t, task("sh", "-c", "until [ -e go ]; do sleep 0.1; done"))
	known := watched.submit(t, sub)
	watched.await(t, known, "RUNNING", is(dagbridgev1.Job_RUNNING))
	n.Signal(t, syscall.SIGKILL)
	result := watched.try(t, backendtest.Submission(t, task("true")))
	require.Equal(t, backend.NotSent, result.Outcome, result.Message)
	begin := filepath.Join(o.WorkDir, slurmtest.User, sub.Job.Id, "go")
	require.NoError(t, os.WriteFile(begin, nil, 0o644))
	n.Start(t)
	watched.await(t, known, "SUCCEEDED", is(dagbridgev1.Job_SUCCEEDED))
	watched.await(t, watched.submit(t, backendtest.Submission(t, task("true"))), "SUCCEEDED", is(dagbridgev1.Job_SUCCEEDED))
}

func TestAnSshdThatHangsHoldsNothingUp(t *testing.T) {
	t.Parallel()
	c, n := slurmtest.Shared(t), slurmtest.LogIn(t)
	o := loginOptions(t, c, n)
	o.Timeout = 2 * time.Second
	b := closing(t, newBackend(t, o))
	require.Equal(t, backend.Absent, looks(t, b).Presence)
	n.Signal(t, syscall.SIGSTOP)
	began := time.Now()
	finding := looks(t, b)
	require.Equal(t, backend.Uncertain, finding.Presence)
	require.Contains(t, finding.Proof, "in time")
	// a look has four times the timeout; the keep-alive would take three times as long
	require.Less(t, time.Since(began), 20*time.Second)
	// the connection that hangs is given up, and a new one does not come about either
	require.Eventually(t, func() bool {
		finding := looks(t, b)
		require.Equal(t, backend.Uncertain, finding.Presence)
		return strings.Contains(finding.Proof, "does not let slurmtest in")
	}, patience, 100*time.Millisecond)
	n.Signal(t, syscall.SIGCONT)
	require.Eventually(t, func() bool { return looks(t, b).Presence == backend.Absent }, patience, 100*time.Millisecond)
	require.Equal(t, 2, n.Connections(t))
}
