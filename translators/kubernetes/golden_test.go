package kubernetes_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/dagbridge/dagbridge/integration/golden"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/proto/jsoncodec"
	"github.com/dagbridge/dagbridge/translators"
	"github.com/dagbridge/dagbridge/translators/kubernetes"
)

const (
	jobID = "01965b1e-7d2a-7c43-9f10-0242ac120002"
	token = jobID + ".1"
)

// submission of a task as the engine would make it.
func submission(task *dagbridgev1.Task) translators.Submission {
	if task.Key == nil {
		task.Key = &dagbridgev1.TaskKey{Deployment: "default", Orchestrator: "airflow", Workflow: "risk", Run: "manual__2026-01-01T00:00:00+00:00", Task: "train"}
	}
	if task.Resources == nil {
		task.Resources = &dagbridgev1.Resources{}
	}
	job := &dagbridgev1.Job{Id: jobID, Key: task.Key, TryNumber: 1, Owner: "airflow"}
	return translators.Submission{Token: token, Job: job, Task: task}
}

func command(argv ...string) *dagbridgev1.Task {
	return &dagbridgev1.Task{Command: &dagbridgev1.Command{Argv: argv}}
}

// site is a cluster that has an image.
var site = kubernetes.Site{Namespace: "ml", Image: "busybox:1"}

// TestTranslate walks the cases in testdata: out.yaml is what a person would hand to kubectl create, out.notices what the user
// is told.
func TestTranslate(t *testing.T) {
	t.Parallel()
	cases, err := filepath.Glob("testdata/*/in.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, cases)
	for _, in := range cases {
		dir := filepath.Dir(in)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			site, s := readCase(t, in)
			w, faults := kubernetes.Translate(site, s)
			require.NoError(t, faults.OrNil())
			golden.Equal(t, dir, "out.yaml", w.Text())
			golden.Equal(t, dir, "out.notices", strings.Join(append(w.Notices, ""), "\n"))
			again, _ := kubernetes.Translate(site, s)
			require.Equal(t, w.Text(), again.Text(), "the same input gives the same bytes")
			for _, o := range w.Objects {
				require.Equal(t, map[string]any{"name": w.Name, "namespace": w.Namespace}, map[string]any{
					"name": o["metadata"].(map[string]any)["name"], "namespace": o["metadata"].(map[string]any)["namespace"],
				})
			}
		})
	}
}

func readCase(t *testing.T, file string) (kubernetes.Site, translators.Submission) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	text, err = yaml.YAMLToJSON(text)
	require.NoError(t, err)
	var in struct {
		Site        kubernetes.Site
		Task        json.RawMessage
		Instances   []translators.Instance
		Inputs      []translators.Input
		MaxParallel int
		Exclude     []string
		Hold        bool
	}
	in.Site = site
	require.NoError(t, json.Unmarshal(text, &in))
	task := &dagbridgev1.Task{}
	require.NoError(t, jsoncodec.Unmarshal(in.Task, task))
	s := submission(task)
	s.Instances, s.MaxParallel, s.Inputs, s.Hold, s.ExcludeNodes = in.Instances, in.MaxParallel, in.Inputs, in.Hold, in.Exclude
	return in.Site, s
}
