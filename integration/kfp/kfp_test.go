// Package kfp compares compiled pipelines with what the SDK of Kubeflow Pipelines, and KFP itself on this machine, make of them.
package kfp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

const pipelines = "../../translators/kfp/testdata"

// python is the folder of an environment with KFP's SDK.
func python(t *testing.T) string {
	t.Helper()
	environment := exec.Command("../../clients/python/environment.sh", "kfp")
	environment.Stderr = t.Output()
	folder, err := environment.Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(folder))
}

// The pipelines that the translator is tested with are what the SDK compiles, but for its comment at the top, whose order changes.
func TestTheSDKCompilesTheSame(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	compile := exec.Command(filepath.Join(python(t), "bin/python"), filepath.Join(pipelines, "pipelines.py"), out)
	text, err := compile.CombinedOutput()
	require.NoError(t, err, "%s", text)
	compiled, err := filepath.Glob(filepath.Join(out, "*/in.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, compiled)
	for _, file := range compiled {
		name := filepath.Base(filepath.Dir(file))
		require.Equal(t, withoutComments(t, filepath.Join(pipelines, name, "in.yaml")), withoutComments(t, file), name)
	}
}

func withoutComments(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(string(text), "")
}

// step is what one has left: its parameters, and the texts of its artifacts.
type step struct {
	Parameters map[string]any
	Artifacts  map[string]string
}

// UnmarshalJSON reads what oracle.py writes.
func (s *step) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[]any{&s.Parameters, &s.Artifacts})
}

type answer struct {
	Succeeded bool
	Steps     []step
}

// The pipelines of lightweight components come to the same ends here and in KFP's own local runner, and their steps leave the same.
// Nested loops are left out: it gives their steps no items. Of a failure that a task ignores it says that the pipeline has failed;
// here only what nothing ignores fails it.
func TestRunsAsKFPDoes(t *testing.T) {
	t.Parallel()
	environment := python(t)
	names := []string{"conditions-oneof", "exit-handler", "ignore-upstream-failure"}
	arguments := []string{"oracle.py", t.TempDir()}
	for _, name := range names {
		arguments = append(arguments, filepath.Join(pipelines, name, "in.yaml"))
	}
	oracle := exec.Command(filepath.Join(environment, "bin/python"), arguments...)
	oracle.Env = append(os.Environ(), "PATH="+filepath.Join(environment, "bin")+":"+os.Getenv("PATH"))
	var log bytes.Buffer
	oracle.Stderr = &log
	said, err := oracle.Output()
	require.NoError(t, err, "%s", &log)
	var answers map[string]answer
	require.NoError(t, json.Unmarshal(said, &answers))

	g := serve(t, environment)
	for _, name := range names {
		want := answers[filepath.Join(pipelines, name, "in.yaml")]
		if name == "ignore-upstream-failure" {
			require.False(t, want.Succeeded)
			want.Succeeded = true
		}
		got := answer{Succeeded: g.run(t, name), Steps: g.steps(t, name)}
		require.NotEmpty(t, got.Steps, name)
		require.Equal(t, readable(t, want), readable(t, got), name)
	}
}

// Loops within loops are collected into one list; packages that a component asks for are there.
func TestRunsWhatKFPsLocalRunnerCannot(t *testing.T) {
	t.Parallel()
	g := serve(t, python(t))
	require.True(t, g.run(t, "nested-loops"))
	require.JSONEq(t, `{"Output": 7.5}`, g.output(t, "nested-loops", "agg"))
	require.JSONEq(t, `{"Output": 1.25}`, g.output(t, "nested-loops", "for-loop-1/for-loop-3/sim/2,1"))
	require.True(t, g.run(t, "packages"))
	require.JSONEq(t, `{"Output": "2.3.1"}`, g.output(t, "packages", "version"))
	require.True(t, g.run(t, "conditions-oneof", "--param", "side=edge", "--param", "threshold=9"))
	require.JSONEq(t, `{"Output": "E"}`, g.output(t, "conditions-oneof", "say-4"))
}

var wholeNumber = regexp.MustCompile(`\b(\d+)\.0\b`)

// readable is an answer with its steps in order. KFP's local runner writes whole numbers within texts as 2.0, its backend and we as 2.
func readable(t *testing.T, a answer) []string {
	t.Helper()
	lines := make([]string, len(a.Steps))
	for i, s := range a.Steps {
		text, err := json.Marshal(s)
		require.NoError(t, err)
		lines[i] = wholeNumber.ReplaceAllString(string(text), "$1")
	}
	slices.Sort(lines)
	return append(lines, fmt.Sprint("succeeded: ", a.Succeeded))
}

// gateway is one of this machine alone, for which an environment stands in for the image of Python.
type gateway struct{ binary, data, address string }

var readyLine = regexp.MustCompile(`gRPC (\S+), REST `)

func serve(t *testing.T, environment string) *gateway {
	t.Helper()
	folder := t.TempDir()
	g := &gateway{binary: filepath.Join(folder, "dagbridge"), data: filepath.Join(folder, "data")}
	text, err := exec.Command("go", "build", "-o", g.binary, "github.com/dagbridge/dagbridge/cmd/dagbridge").CombinedOutput()
	require.NoError(t, err, "%s", text)
	config := filepath.Join(folder, "dagbridge.yaml")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil,
		"listen: {grpc: \"127.0.0.1:0\", http: \"127.0.0.1:0\"}\ndata: %q\nclusters: [{name: here, local: {cpus: 4, images: [{name: \"python:3.11-slim\", folder: %q}]}}]\n",
		g.data, environment), 0o600))
	command := exec.Command(g.binary, "serve", "--config", config)
	out, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		require.NoError(t, command.Process.Signal(syscall.SIGTERM))
		require.NoError(t, command.Wait())
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	found := readyLine.FindStringSubmatch(line)
	require.NotNil(t, found, line)
	g.address = found[1]
	return g
}

func (g *gateway) command(arguments ...string) *exec.Cmd {
	command := exec.Command(g.binary, arguments...)
	command.Env = append(os.Environ(), "DAGBRIDGE_SERVER="+g.address)
	return command
}

// run runs a pipeline to its end, and says whether it has succeeded.
func (g *gateway) run(t *testing.T, name string, more ...string) bool {
	t.Helper()
	text, err := g.command(append([]string{"run", "--wait", "--run", "monday", filepath.Join(pipelines, name, "in.yaml")}, more...)...).CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		require.Equal(t, 1, exit.ExitCode(), "%s", text)
		return false
	}
	require.NoError(t, err, "%s", text)
	return true
}

func (g *gateway) output(t *testing.T, name, task string) string {
	t.Helper()
	key := strings.Split(task, "/")
	task = strings.ReplaceAll(task, "/", "%2F")
	if last := key[len(key)-1]; len(key) > 1 && strings.Trim(last, "0123456789,") == "" {
		task = strings.Join(key[:len(key)-1], "%2F") + "/" + strings.ReplaceAll(last, ",", "/")
	}
	text, err := g.command("output", "kfp/"+name+"/monday/"+task).CombinedOutput()
	require.NoError(t, err, "%s", text)
	return string(text)
}

// steps are what those of a run have left, in the records that they leave for each other.
func (g *gateway) steps(t *testing.T, name string) (steps []step) {
	t.Helper()
	root := filepath.Join(g.data, "jobs", "here", "pipelines", "default", "kfp", name, "monday", "records")
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "record" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var record struct {
			Parameters map[string]any
			Artifacts  map[string][]struct{ URI string }
		}
		if err := json.Unmarshal(text, &record); err != nil {
			return err
		}
		s := step{Parameters: map[string]any{}, Artifacts: map[string]string{}}
		for key, value := range record.Parameters {
			s.Parameters[key] = value
		}
		for key, list := range record.Artifacts {
			text, err := os.ReadFile(list[0].URI)
			if err != nil {
				return err
			}
			s.Artifacts[key] = string(text)
		}
		if len(s.Parameters)+len(s.Artifacts) > 0 { // else it judged a condition
			steps = append(steps, s)
		}
		return nil
	}))
	return steps
}
