// Package airflowtest starts a real, private Airflow on loopback for tests: PostgreSQL, scheduler with LocalExecutor, triggerer,
// dag-processor and api-server, on free ports, with everything they write under one folder in /tmp. Its Python is the one
// that clients/python/environment.sh makes, in which the provider is installed as editable. It needs root and Debian's postgresql.
//
// A start takes most of a minute, so the tests of a package share one. It never outlives its test binary: a watchdog holds the
// other end of a pipe and ends the components, each by its session, when the binary ends, however it ends.
package airflowtest

import (
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagbridge/dagbridge/integration/loopback"
	"github.com/dagbridge/dagbridge/integration/program"
)

//go:embed start-airflow.sh stop-airflow.sh component.sh
var scripts embed.FS

// Options of an Airflow.
type Options struct {
	// Version is "3.3" or "2.11". Left out: 3.3.
	Version string
	// Dags are folders whose files become the folder of DAG files.
	Dags []string
	// Env are further settings of all components, "AIRFLOW_CONN_X=...".
	Env []string
	// Port is the first of four that nobody listens on. Left out: free ones.
	Port int
}

// Airflow is a running one.
type Airflow struct {
	// Prefix is the folder that everything is under, Version what it was started as.
	Prefix, Version string
	// URL of its REST interface and of its pages.
	URL string

	mu     sync.Mutex
	bearer string

	watchdog *loopback.Watchdog
}

// Start starts an Airflow and waits until all its components are healthy. It ends with the test, and of a test that has
// failed the components' logs are shown.
func Start(t testing.TB, o Options) *Airflow {
	t.Helper()
	if o.Version == "" {
		o.Version = "3.3"
	}
	if o.Port == 0 {
		o.Port = loopback.FreePorts()
	}
	environment := Environment(t, o.Version)
	prefix, err := os.MkdirTemp("/tmp", "dbairflow-")
	require.NoError(t, err)
	files, err := scripts.ReadDir(".")
	require.NoError(t, err)
	for _, f := range files {
		text, _ := scripts.ReadFile(f.Name())
		require.NoError(t, program.Write(filepath.Join(prefix, f.Name()), text))
	}
	for _, folder := range o.Dags {
		require.NoError(t, os.CopyFS(filepath.Join(prefix, "dags"), os.DirFS(folder)))
	}
	a := &Airflow{Prefix: prefix, Version: o.Version, URL: fmt.Sprintf("http://127.0.0.1:%d", o.Port)}
	a.watchdog, err = loopback.Watch(`"$0/stop-airflow.sh" "$0"; rm -rf "$0"`, prefix)
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			a.showLogs(t)
		}
		a.watchdog.Stop()
	})
	arguments := []string{"--base-port", fmt.Sprint(o.Port)}
	for _, setting := range o.Env {
		arguments = append(arguments, "--env", setting)
	}
	output, err := exec.Command(filepath.Join(prefix, "start-airflow.sh"), append(arguments, environment, prefix)...).CombinedOutput()
	require.NoError(t, err, "Airflow does not start\n%s", output)
	t.Logf("%s", output)
	return a
}

// Environment is the folder of the Python environment with a release of Airflow and the provider.
func Environment(tb testing.TB, version string) string {
	tb.Helper()
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	require.NoError(tb, err)
	command := exec.Command(filepath.Join(strings.TrimSpace(string(root)), "clients", "python", "environment.sh"), "airflow-"+version)
	var said strings.Builder
	command.Stderr = &said
	output, err := command.Output()
	require.NoError(tb, err, "the environment of Airflow %s cannot be made\n%s", version, &said)
	return strings.TrimSpace(string(output))
}

// showLogs shows the ends of the components' logs.
func (a *Airflow) showLogs(t testing.TB) {
	logs, _ := filepath.Glob(filepath.Join(a.Prefix, "log", "*.log"))
	for _, path := range logs {
		text, _ := os.ReadFile(path)
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		t.Logf("%s ends with:\n%s", filepath.Base(path), strings.Join(lines[max(0, len(lines)-60):], "\n"))
	}
}
