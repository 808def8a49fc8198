package local_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/server/backend/local"
)

// family starts a child in the program's group, one in a session of its own, and waits.
const family = `sleep 86400 & a=$!
setsid sleep 86400 & b=$!
echo "$$ $a $b" > "$0/pids.part"; mv "$0/pids.part" "$0/pids"
`

// marker is what a start marker says.
type marker struct {
	Supervisor struct {
		Boot  string
		PID   int
		Start uint64
	}
	Time time.Time
}

func (g *gateway) marker(k backend.Known) (m marker) {
	g.t.Helper()
	text, err := os.ReadFile(filepath.Join(g.attempt(k), "start"))
	require.NoError(g.t, err)
	require.NoError(g.t, json.Unmarshal(text, &m))
	return m
}

func gone(o backend.Observation) bool { return o.Gone }

func TestKilledSupervisorLeavesNothingAndNoEnd(t *testing.T) {
	t.Parallel()
	g := start(t)
	k := g.sh(family + "wait")
	pids := g.pids("pids")
	require.NoError(t, syscall.Kill(g.marker(k).Supervisor.PID, syscall.SIGKILL))
	o := g.await(k, "gone", gone)
	require.True(t, o.Started)
	require.Equal(t, dagbridgev1.Job_STATE_UNSPECIFIED, o.State)
	for _, pid := range pids {
		require.False(t, alive(pid), "nothing runs of a job that is said to be gone")
	}
}

func TestKilledSupervisorIsSeenAfterARestart(t *testing.T) {
	t.Parallel()
	g := start(t)
	k := g.sh(family + "wait")
	pids := g.pids("pids")
	g.stop()
	supervisor := g.marker(k).Supervisor.PID
	require.NoError(t, syscall.Kill(supervisor, syscall.SIGKILL))
	g.dead(supervisor)
	g.open()
	g.watcher.Add(k)
	require.True(t, g.await(k, "gone", gone).Started)
	for _, pid := range pids {
		require.False(t, alive(pid), "nothing runs of a job that is said to be gone")
	}
}

// The machine has given the supervisor's pid to somebody else.
func TestReusedPidIsLeftAlone(t *testing.T) {
	t.Parallel()
	g := start(t)
	k := g.sh("exec sleep 86400")
	g.state(k, dagbridgev1.Job_RUNNING)
	g.eventually(func() bool { _, err := os.Stat(filepath.Join(g.attempt(k), "start")); return err == nil }, "no start marker")
	g.stop()
	m := g.marker(k)
	require.NoError(t, syscall.Kill(m.Supervisor.PID, syscall.SIGKILL))
	g.dead(m.Supervisor.PID)

	// A leader of its own session, with a child in it.
	stranger := exec.Command("sh", "-c", `sleep 86400 & echo $! > "$0/child.part"; mv "$0/child.part" "$0/child"; wait`, g.files)
	stranger.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	require.NoError(t, stranger.Start())
	t.Cleanup(func() {
		require.NoError(t, syscall.Kill(-stranger.Process.Pid, syscall.SIGKILL))
		require.Error(t, stranger.Wait(), "killed")
	})
	child := g.pids("child")[0]
	m.Supervisor.PID = stranger.Process.Pid
	text, err := json.Marshal(m)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(g.attempt(k), "start"), text, 0o600))

	g.open()
	g.watcher.Add(k)
	g.cancel(k)
	require.True(t, g.await(k, "gone", gone).Started)
	g.cancel(k)
	require.True(t, alive(stranger.Process.Pid))
	require.True(t, alive(child))
}

func TestWhatAProgramLeavesBehindEndsWithIt(t *testing.T) {
	t.Parallel()
	g := start(t)
	k := g.sh(family + "exit 0")
	g.state(k, dagbridgev1.Job_SUCCEEDED)
	for _, pid := range g.pids("pids") {
		require.False(t, alive(pid))
	}
}

func TestCancelledProgramHasTimeToCleanUp(t *testing.T) {
	t.Parallel()
	g := start(t)
	// The shell dies of SIGTERM at once; what it has started takes its time, and ends well.
	k := g.sh(`sh -c 'trap "sleep 1; touch \"$0/clean\"; exit 0" TERM; touch "$0/ready"; while :; do sleep 0.1; done' "$0"`)
	g.file("ready")
	g.cancel(k)
	g.state(k, dagbridgev1.Job_CANCELLED)
	_, err := os.Stat(filepath.Join(g.files, "clean"))
	require.NoError(t, err)
}

func TestTimeLimitHoldsWithoutAGateway(t *testing.T) {
	t.Parallel()
	g := start(t)
	k := g.sh(`trap 'exit 0' TERM; touch "$0/ready"; while :; do sleep 0.1; done`, func(task *dagbridgev1.Task) {
		task.Resources = &dagbridgev1.Resources{TimeLimit: durationpb.New(2 * time.Second)}
	})
	g.file("ready")
	g.stop()
	g.eventually(func() bool { _, err := os.Stat(filepath.Join(g.attempt(k), "end")); return err == nil }, "no end marker")
	g.open()
	g.watcher.Add(k)
	o := g.state(k, dagbridgev1.Job_FAILED)
	require.Equal(t, "TIMEOUT", o.Reason)
	require.Equal(t, "the program ran longer than its time limit of 2s", o.Message)
	require.GreaterOrEqual(t, o.EndTime.Sub(o.StartTime), 2*time.Second)
}

// A machine that shuts down sends SIGTERM to everybody; nobody has cancelled the job.
func TestSupervisorHeedsNoStraySignal(t *testing.T) {
	t.Parallel()
	g := start(t)
	k := g.sh(`touch "$0/ready"; until [ -e "$0/go" ]; do sleep 0.1; done`)
	g.file("ready")
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT} {
		require.NoError(t, syscall.Kill(g.marker(k).Supervisor.PID, sig))
	}
	g.touch("go")
	g.state(k, dagbridgev1.Job_SUCCEEDED)
}

func TestSecondSupervisorStartsNothing(t *testing.T) {
	t.Parallel()
	g := start(t)
	k := g.sh(`echo ran >> "$0/runs"; until [ -e "$0/go" ]; do sleep 0.1; done`)
	g.file("runs")
	second := exec.Command(os.Args[0], "supervise", filepath.Join(g.attempt(k), "spec"))
	text, err := second.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(text), "the job has a supervisor already")
	g.touch("go")
	g.state(k, dagbridgev1.Job_SUCCEEDED)
	require.Equal(t, "ran\n", g.file("runs"))
}

func TestSupervisorNeedsItsSpec(t *testing.T) {
	t.Parallel()
	require.Equal(t, 2, local.Supervise(nil))
	require.Equal(t, 2, local.Supervise([]string{"a", "b"}))
}

func TestEndsAreToldAsSentences(t *testing.T) {
	t.Parallel()
	g := start(t)
	for _, c := range []struct {
		lines, dir, reason, message string
		exitCode, signal            *int32
	}{
		{lines: "exit 3", message: "the program ended with exit code 3", exitCode: new(int32(3))},
		{lines: "kill -SEGV $$", message: "the program was killed by signal 11 (SIGSEGV)", exitCode: new(int32(139)), signal: new(int32(11))},
		{lines: "exec /no/such/program", message: "the program ended with exit code 127", exitCode: new(int32(127))},
		{lines: "true", dir: "/no/such/folder", reason: "WORKING_DIRECTORY", message: "the working directory /no/such/folder is not there: make it, or name another"},
	} {
		k := g.sh(c.lines, func(task *dagbridgev1.Task) { task.WorkingDirectory = c.dir })
		o := g.state(k, dagbridgev1.Job_FAILED)
		require.Equal(t, c.reason, o.Reason)
		require.Equal(t, c.message, o.Message)
		require.Equal(t, c.exitCode, o.ExitCode)
		require.Equal(t, c.signal, o.Signal)
	}
}

func TestProgramThatCannotStartSaysSoInItsLog(t *testing.T) {
	t.Parallel()
	g := start(t)
	k := g.sh("", func(task *dagbridgev1.Task) { task.Command.Argv = []string{"no-such-program"} })
	o := g.state(k, dagbridgev1.Job_FAILED)
	require.Equal(t, "NOT_STARTED", o.Reason)
	stderr, err := os.ReadFile(g.backend.Logs(k.Job, k.Ref.Token, -1).Stderr)
	require.NoError(t, err)
	require.Equal(t, "dagbridge: "+o.Message+"\n", string(stderr))

	k = g.sh("", func(task *dagbridgev1.Task) { task.Command.Argv = []string{g.files} }) // a folder
	require.EqualValues(t, 126, *g.state(k, dagbridgev1.Job_FAILED).ExitCode)

	k = g.sh("", func(task *dagbridgev1.Task) { // more than a kernel takes altogether
		for range 40 {
			task.Command.Argv = append(task.Command.Argv, strings.Repeat("x", 100_000))
		}
	})
	require.Contains(t, g.state(k, dagbridgev1.Job_FAILED).Message, "argument list too long")
}

// A file where the folder should be stands for a disk on which nothing can be written just now.
func TestEndIsWrittenDownWhenItCanBe(t *testing.T) {
	t.Parallel()
	g := start(t)
	k := g.sh(`touch "$0/ready"; until [ -e "$0/go" ]; do sleep 0.1; done`)
	g.file("ready")
	attempt := g.attempt(k)
	require.NoError(t, os.Rename(attempt, attempt+".away"))
	require.NoError(t, os.WriteFile(attempt, nil, 0o600))
	g.touch("go")
	g.eventually(func() bool {
		text, err := os.ReadFile(filepath.Join(attempt+".away", "supervisor"))
		return err == nil && strings.Contains(string(text), "the end cannot be written down yet")
	}, "it has not tried")
	require.NoError(t, os.Remove(attempt))
	require.NoError(t, os.Rename(attempt+".away", attempt))
	g.state(k, dagbridgev1.Job_SUCCEEDED)
}
