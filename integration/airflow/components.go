package airflowtest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Kill ends "scheduler" (with the workers of its executor), "triggerer", "dag-processor" or "api-server" by SIGKILL, as a machine
// does that dies.
func (a *Airflow) Kill(t testing.TB, component string) {
	t.Helper()
	a.component(t, "kill", component)
}

// Stop ends a component as a deployment does, by SIGTERM.
func (a *Airflow) Stop(t testing.TB, component string) {
	t.Helper()
	a.component(t, "stop", component)
}

// Launch starts a component that has ended, and does not wait.
func (a *Airflow) Launch(t testing.TB, component string) {
	t.Helper()
	a.component(t, "start", component)
}

func (a *Airflow) component(t testing.TB, action, component string) {
	t.Helper()
	output, err := exec.Command(filepath.Join(a.Prefix, "component.sh"), a.Prefix, action, component).CombinedOutput()
	require.NoError(t, err, "%s %s\n%s", action, component, output)
}

// AwaitLogged waits until a component has logged some text.
func (a *Airflow) AwaitLogged(t testing.TB, component, text string) {
	t.Helper()
	Eventually(t, func() bool {
		log, err := os.ReadFile(filepath.Join(a.Prefix, "log", component+".log"))
		require.NoError(t, err)
		return bytes.Contains(log, []byte(text))
	}, "%s does not log %q", component, text)
}

// KillWorker ends by SIGKILL the processes that run a task instance: the task's own and those between it and the scheduler, as
// if a worker's machine had died.
func (ti TaskInstance) KillWorker(t testing.TB) {
	t.Helper()
	require.Positive(t, ti.PID, "%s has no process: %s", ti.TaskID, ti.State)
	session := strconv.Itoa(ti.run.a.session(t, "scheduler"))
	var doomed []int
	for pid := ti.PID; ; {
		fields := stat(t, pid)
		require.Equal(t, session, fields.session, "process %d of %s is not the scheduler's", pid, ti.TaskID)
		if strconv.Itoa(pid) == session {
			break
		}
		doomed = append(doomed, pid)
		pid = fields.parent
	}
	for i := range doomed { // from the outside in, so that nobody tells of the end of the task
		require.NoError(t, syscall.Kill(doomed[len(doomed)-1-i], syscall.SIGKILL))
	}
}

// session of a component is the process that it was started as.
func (a *Airflow) session(t testing.TB, component string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(a.Prefix, "run", component+".pid"))
	require.NoError(t, err)
	pid, err := strconv.Atoi(string(bytes.TrimSpace(text)))
	require.NoError(t, err)
	return pid
}

type process struct {
	parent  int
	session string
}

// stat is what the kernel knows of a process: after its name, which is in brackets, come state, parent, group and session.
func stat(t testing.TB, pid int) process {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(t, err)
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	parent, err := strconv.Atoi(string(fields[1]))
	require.NoError(t, err)
	return process{parent: parent, session: string(fields[3])}
}

// Eventually waits for a condition, for as long as anything in a busy Airflow may take.
func Eventually(t testing.TB, is func() bool, otherwise string, arguments ...any) {
	t.Helper()
	for end := time.Now().Add(4 * time.Minute); !is(); time.Sleep(250 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf(otherwise, arguments...)
		}
	}
}
