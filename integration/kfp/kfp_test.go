// Package kfp compares compiled pipelines with what the SDK of Kubeflow Pipelines, and KFP itself on this machine, make of them.
package kfp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/proto/jsoncodec"

	gatewaytest "github.com/dagbridge/dagbridge/integration/gateway"
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
	names := []string{"conditions-oneof", "exit-handler", "ignore-upstream-failure", "parallelfor-static"}
	if os.Getenv("DAGBRIDGE_LONG") != "" {
		names = append(names, "nested", "loops", "multi-params", "parallelfor-dynamic")
	}
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
		g.run(t, want.Succeeded, name)
		left := g.steps(t, name)
		require.NotEmpty(t, left, name)
		require.Equal(t, readable(t, want.Steps), readable(t, left), name)
	}
}

// Loops within loops are collected into one list; packages that a component asks for are there.
func TestRunsWhatKFPsLocalRunnerCannot(t *testing.T) {
	t.Parallel()
	g := serve(t, python(t))
	g.run(t, true, "nested-loops")
	require.JSONEq(t, `{"Output": 7.5}`, g.output(t, "nested-loops", "agg"))
	require.JSONEq(t, `{"Output": 1.25}`, g.output(t, "nested-loops", "for-loop-1/for-loop-3/sim/2,1"))
	g.run(t, true, "dynamic-nested")
	require.JSONEq(t, `{"Output": 2.5}`, g.output(t, "dynamic-nested", "agg-3"))
	require.JSONEq(t, `{"Output": 0}`, g.output(t, "dynamic-nested", "agg-2"), "of an empty list")
	require.JSONEq(t, `{"Output": 2.5}`, g.output(t, "dynamic-nested", "agg"))
	require.Equal(t, "SKIPPED", g.job(t, "dynamic-nested", "for-loop-7/sim-3").GetState().String())
	require.Equal(t, map[string]int32{"SUCCEEDED": 2}, g.job(t, "dynamic-nested", "for-loop-1/condition-3/say").GetCounts())
	g.run(t, true, "packages")
	require.JSONEq(t, `{"Output": "2.3.1"}`, g.output(t, "packages", "version"))
	g.run(t, true, "conditions-oneof", "--param", "side=edge", "--param", "threshold=9")
	require.JSONEq(t, `{"Output": "E"}`, g.output(t, "conditions-oneof", "say-4"))
}

var wholeNumber = regexp.MustCompile(`\b(\d+)\.0\b`)

// readable are steps in order. KFP's local runner writes whole numbers within texts as 2.0, its backend and we as 2.
func readable(t *testing.T, steps []step) []string {
	t.Helper()
	lines := make([]string, len(steps))
	for i, s := range steps {
		text, err := json.Marshal(s)
		require.NoError(t, err)
		lines[i] = wholeNumber.ReplaceAllString(string(text), "$1")
	}
	slices.Sort(lines)
	return lines
}

// gateway is one of this machine alone, for which an environment stands in for the image of Python.
type gateway struct{ *gatewaytest.Gateway }

func serve(t *testing.T, environment string) gateway {
	t.Helper()
	g := gatewaytest.NewOver(t, fmt.Sprintf("name: here\n    local: {cpus: 4, images: [{name: \"python:3.11-slim\", folder: %q}]}", environment))
	t.Cleanup(func() { g.Stop(t) })
	return gateway{g}
}

// run runs a pipeline to its end, which has to be a success or not.
func (g gateway) run(t *testing.T, succeeds bool, name string, more ...string) {
	t.Helper()
	code := 1
	if succeeds {
		code = 0
	}
	g.Dagbridge(t, code, append([]string{"run", "--wait", "--run", "monday", filepath.Join(pipelines, name, "in.yaml")}, more...)...)
}

// job is the one of a task.
func (g gateway) job(t *testing.T, name, task string) *dagbridgev1.Job {
	t.Helper()
	status, text := g.Get(t, "/v1/lookup?"+url.Values{"orchestrator": {"kfp"}, "workflow": {name}, "run": {"monday"}, "task": {task}}.Encode())
	require.Equal(t, http.StatusOK, status, text)
	answer := &dagbridgev1.LookupJobResponse{}
	require.NoError(t, jsoncodec.Unmarshal([]byte(text), answer))
	return answer.GetJob()
}

func (g gateway) output(t *testing.T, name, task string) string {
	t.Helper()
	key := strings.Split(task, "/")
	task = strings.ReplaceAll(task, "/", "%2F")
	if last := key[len(key)-1]; len(key) > 1 && strings.Trim(last, "0123456789,") == "" {
		task = strings.Join(key[:len(key)-1], "%2F") + "/" + strings.ReplaceAll(last, ",", "/")
	}
	return g.Dagbridge(t, 0, "output", "kfp/"+name+"/monday/"+task)
}

// steps are what those of a run have left, in the records that they leave for each other.
func (g gateway) steps(t *testing.T, name string) (steps []step) {
	t.Helper()
	root := filepath.Join(g.Data, "jobs", "here", "pipelines", "default", "kfp", name, "monday", "records")
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
