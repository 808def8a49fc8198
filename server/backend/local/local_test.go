package local_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/server/backend/backendtest"
	"github.com/dagbridge/dagbridge/server/backend/local"
	"github.com/dagbridge/dagbridge/translators"
)

// patience is how long a condition is waited for.
const patience = 30 * time.Second

// TestMain makes this test's own binary the supervisor of the jobs that it submits.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "supervise" {
		os.Exit(local.Supervise(os.Args[2:]))
	}
	goleak.VerifyTestMain(m)
}

// cluster over a folder, of so many CPUs that side by side means what it says.
func cluster(t testing.TB, dir string, change ...func(*local.Options)) *local.Backend {
	t.Helper()
	o := local.Options{
		Name: "here", Dir: dir, CPUs: 64, Memory: 1 << 34,
		Supervisor: []string{os.Args[0], "supervise"}, Log: slog.New(slog.DiscardHandler),
	}
	for _, f := range change {
		f(&o)
	}
	b, err := local.New(o)
	require.NoError(t, err)
	return b
}

func TestConformance(t *testing.T) {
	dir := t.TempDir()
	backendtest.Run(t, backendtest.Fixture{
		Backend:   cluster(t, dir),
		Restart:   func(t *testing.T) backend.Backend { return cluster(t, dir) },
		Dir:       t.TempDir(),
		TimeLimit: time.Second,
		Patience:  patience,
		Resources: &dagbridgev1.Resources{Cpu: "100m", Memory: "16Mi"},
	})
}

// gateway is a local cluster that a test may stop and start again.
type gateway struct {
	t       *testing.T
	dir     string
	files   string
	change  []func(*local.Options)
	backend *local.Backend
	watcher *backendtest.Watcher
}

func start(t *testing.T, change ...func(*local.Options)) *gateway {
	g := &gateway{t: t, dir: t.TempDir(), files: t.TempDir(), change: change}
	g.open()
	t.Cleanup(g.stop)
	return g
}

func (g *gateway) open() {
	g.backend = cluster(g.t, g.dir, g.change...)
	g.watcher = backendtest.Watch(g.t, g.backend)
}

func (g *gateway) stop() {
	g.watcher.Stop()
	require.NoError(g.t, g.backend.Close())
}

// sh submits lines of sh; $0 is the folder of the test's own files. The job is cancelled at the end.
func (g *gateway) sh(lines string, change ...func(*dagbridgev1.Task)) backend.Known {
	g.t.Helper()
	task := &dagbridgev1.Task{Command: &dagbridgev1.Command{Argv: []string{"sh", "-c", lines, g.files}}}
	for _, f := range change {
		f(task)
	}
	sub := backendtest.Submission(g.t, task)
	results := g.backend.Submit(g.t.Context(), []translators.Submission{sub})
	require.Equal(g.t, backend.Submitted, results[0].Outcome, results[0].Message)
	known := backend.Known{Ref: results[0].Ref, Job: sub.Job}
	g.watcher.Add(known)
	g.t.Cleanup(func() {
		g.backend.Cancel(context.Background(), []backend.Known{known})
		g.eventually(func() bool {
			_, err := os.Stat(filepath.Join(g.dir, "queue", known.Ref.Token))
			return os.IsNotExist(err)
		}, "the job has not left the queue")
	})
	return known
}

func needs(cpu, memory string) func(*dagbridgev1.Task) {
	return func(t *dagbridgev1.Task) { t.Resources = &dagbridgev1.Resources{Cpu: cpu, Memory: memory} }
}

func (g *gateway) await(k backend.Known, what string, wanted func(backend.Observation) bool) backend.Observation {
	g.t.Helper()
	return g.watcher.Await(g.t, k.Ref, -1, patience, what, wanted)
}

func (g *gateway) state(k backend.Known, state dagbridgev1.Job_State) backend.Observation {
	g.t.Helper()
	return g.await(k, state.String(), func(o backend.Observation) bool { return o.State == state })
}

func (g *gateway) cancel(k backend.Known) {
	g.t.Helper()
	require.Equal(g.t, []error{nil}, g.backend.Cancel(g.t.Context(), []backend.Known{k}))
}

// attempt is the folder of a job's only attempt.
func (g *gateway) attempt(k backend.Known) string {
	return filepath.Dir(g.backend.Logs(k.Job, k.Ref.Token, -1).Stdout)
}

// file waits until a file of the test's is there, and reads it.
func (g *gateway) file(name string) string {
	g.t.Helper()
	path := filepath.Join(g.files, name)
	g.eventually(func() bool { _, err := os.Stat(path); return err == nil }, path+" is not there")
	text, err := os.ReadFile(path)
	require.NoError(g.t, err)
	return string(text)
}

func (g *gateway) touch(name string) {
	require.NoError(g.t, os.WriteFile(filepath.Join(g.files, name), nil, 0o600))
}

func (g *gateway) eventually(check func() bool, otherwise string) {
	g.t.Helper()
	require.Eventually(g.t, check, patience, 10*time.Millisecond, otherwise)
}

// pids in a file of the test's.
func (g *gateway) pids(name string) (list []int) {
	g.t.Helper()
	for _, word := range strings.Fields(g.file(name)) {
		pid, err := strconv.Atoi(word)
		require.NoError(g.t, err)
		list = append(list, pid)
	}
	return list
}

// alive says whether a process is there and no mere corpse.
func alive(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return false
	}
	rest := string(stat[strings.LastIndexByte(string(stat), ')')+1:])
	return !strings.HasPrefix(rest, " Z") && !strings.HasPrefix(rest, " X")
}

func (g *gateway) dead(pids ...int) {
	g.t.Helper()
	for _, pid := range pids {
		g.eventually(func() bool { return !alive(pid) }, "process "+strconv.Itoa(pid)+" is still there")
	}
}
