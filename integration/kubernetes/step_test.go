package kubernetestest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	gatewaytest "github.com/dagbridge/dagbridge/integration/gateway"
	kubernetestest "github.com/dagbridge/dagbridge/integration/kubernetes"
	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
)

// step is one of a Kubeflow pipeline, submit_task, in pods as KFP's launcher starts it: one argument is the executor's input, which
// is the same for each of its tries. What it leaves is in dir.
type step struct {
	cluster         *kubernetestest.Cluster
	namespace, dir  string
	image, run, url string
	// volume is the one with the token.
	volume  string
	command []string
}

// newStep reads the component's file.
func newStep(t *testing.T, c *kubernetestest.Cluster, namespace, url, volume string, task map[string]any) *step {
	t.Helper()
	s := &step{cluster: c, namespace: namespace, dir: sharedDir(t), image: c.StepImage(t), run: uuid.NewString(), url: url, volume: volume}
	text, err := os.ReadFile("../../clients/python/src/dagbridge/kfp/submit_task.component.yaml")
	require.NoError(t, err)
	var ir struct {
		DeploymentSpec struct {
			Executors map[string]struct {
				Container struct{ Command, Args []string }
			}
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &ir))
	artifact := func(name string) any {
		return map[string]any{"artifacts": []any{map[string]any{"name": name, "uri": filepath.Join(s.dir, name)}}}
	}
	file := func(name string) any { return map[string]any{"outputFile": filepath.Join(s.dir, name)} }
	input, err := json.Marshal(map[string]any{
		"inputs": map[string]any{"parameterValues": map[string]any{
			"workflow": "risk", "task": task, "run": s.run, "step": "submit-task", "uid": "17", "name": "train", "url": "",
		}},
		"outputs": map[string]any{
			"parameters": map[string]any{"native_id": file("native_id"), "state": file("state"), "outputs": file("outputs")},
			"artifacts":  map[string]any{"metrics": artifact("metrics"), "job": artifact("job")},
			"outputFile": filepath.Join(s.dir, "output_metadata.json"),
		},
	})
	require.NoError(t, err)
	container := ir.DeploymentSpec.Executors["exec-submit-task"].Container
	for _, word := range append(container.Command, container.Args...) {
		s.command = append(s.command, strings.ReplaceAll(word, "{{$}}", string(input)))
	}
	return s
}

// start makes the pod of one try. The pods of the test's cluster reach the gateway by the network of the node alone.
func (s *step) start(t *testing.T, pod string) {
	t.Helper()
	command, err := json.Marshal(s.command)
	require.NoError(t, err)
	s.kubectl(t, fmt.Sprintf(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": %q}, "spec": {
		"serviceAccountName": "runner", "hostNetwork": true, "restartPolicy": "Never",
		"volumes": [%s, {"name": "outputs", "hostPath": {"path": %q}}],
		"containers": [{"name": "main", "image": %q, "imagePullPolicy": "Never", "command": %s,
			"env": [{"name": "DAGBRIDGE_URL", "value": %q}],
			"volumeMounts": [{"name": "dagbridge", "mountPath": "/var/run/secrets/dagbridge"}, {"name": "outputs", "mountPath": %q}]}]}}`,
		pod, s.volume, s.dir, s.image, command, s.url, s.dir), "create", "-f", "-")
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s said:\n%s", pod, s.log(t, pod))
		}
	})
}

func (s *step) kubectl(t *testing.T, input string, args ...string) string {
	t.Helper()
	return s.cluster.Kubectl(t, input, append([]string{"-n", s.namespace}, args...)...)
}

func (s *step) log(t *testing.T, pod string) string {
	t.Helper()
	return s.kubectl(t, "", "logs", pod, "--ignore-errors")
}

// says waits until a pod has written a line; in the input, which KFP's executor shows, it is a part of one.
func (s *step) says(t *testing.T, pod, line string) {
	t.Helper()
	s.cluster.Eventually(t, pod+" says "+line, func() error {
		if phase := s.phase(t, pod); phase == "Pending" {
			return fmt.Errorf("it is pending: %s", s.kubectl(t, "", "get", "events"))
		}
		if !strings.Contains("\n"+s.log(t, pod), "\n"+line) {
			return fmt.Errorf("it has not")
		}
		return nil
	})
}

func (s *step) phase(t *testing.T, pod string) string {
	t.Helper()
	return s.kubectl(t, "", "get", "pod", pod, "-o", "jsonpath={.status.phase}")
}

// ends waits for the end of a pod, and answers with its exit code.
func (s *step) ends(t *testing.T, pod string) string {
	t.Helper()
	s.cluster.Eventually(t, pod+" ends", func() error {
		if phase := s.phase(t, pod); phase != "Succeeded" && phase != "Failed" {
			return fmt.Errorf("it is %s", phase)
		}
		return nil
	})
	return s.kubectl(t, "", "get", "pod", pod, "-o", "jsonpath={.status.containerStatuses[0].state.terminated.exitCode}")
}

// signal sends a signal to all of the step's processes, as Argo's emissary does with SIGTERM, and a node that dies with SIGKILL.
func (s *step) signal(t *testing.T, number syscall.Signal) {
	t.Helper()
	folders, err := filepath.Glob("/proc/[0-9]*")
	require.NoError(t, err)
	found := 0
	for _, folder := range folders {
		line, _ := os.ReadFile(filepath.Join(folder, "cmdline")) // it may have ended meanwhile
		if pid, err := strconv.Atoi(filepath.Base(folder)); err == nil && bytes.Contains(line, []byte(s.run)) && bytes.Contains(line, []byte("executor_main")) {
			if err := syscall.Kill(pid, number); err != syscall.ESRCH { // a container's processes go with its first
				require.NoError(t, err)
			}
			found++
		}
	}
	require.Positive(t, found)
}

func (s *step) left(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, name))
	require.NoError(t, err)
	return string(text)
}

// A step in a real pod hands its task over to a real Slurm, over TLS, with the projected token of its account; it is killed in the
// middle, and its successor goes on with the same job.
func TestAStepInAPodOntoSlurm(t *testing.T) {
	c, slurm := kubernetestest.Shared(t), slurmtest.Start(t, slurmtest.Options{})
	ns := c.Namespace(t)
	c.Kubectl(t, "", "create", "serviceaccount", "runner", "-n", ns)
	g := gatewaytest.NewSecured(t, letIn(t, c, ns), gatewaytest.OverSlurm(t, slurm, "rest", slurm.WorkDir(t)), gatewaytest.OverHere)
	giveSecret(t, c, g, ns)
	_, rest := g.Addresses()
	dir := sharedDir(t)
	script := fmt.Sprintf("echo training; until [ -e %s/go ]; do sleep 0.1; done; echo trained\n", dir) + `printf '{"auc": 0.91, "job": "%s"}' "$SLURM_JOB_ID" >"$DAGBRIDGE_OUTPUT"`
	s := newStep(t, c, ns, "https://"+rest, mounted(false), map[string]any{"cluster": "hpc", "script": map[string]any{"text": script}})

	s.start(t, "first")
	s.says(t, "first", "training\n")
	s.signal(t, syscall.SIGKILL)
	require.Equal(t, "137", s.ends(t, "first"))
	s.start(t, "second")
	s.says(t, "second", "dagbridge: An earlier try of this step has submitted train/submit-task/17, job ")
	s.says(t, "second", "training\n")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o644))
	require.Equal(t, "0", s.ends(t, "second"))
	require.Contains(t, s.log(t, "second"), "\ntrained\n")

	id := s.left(t, "native_id")
	require.Equal(t, "SUCCEEDED", s.left(t, "state"))
	require.JSONEq(t, fmt.Sprintf(`{"auc": 0.91, "job": %q}`, id), s.left(t, "outputs"))
	require.Contains(t, s.left(t, "output_metadata.json"), `"auc": 0.91`)
	require.Contains(t, s.left(t, "job"), "| SUCCEEDED | hpc | "+id+" |")
	accounted := strings.Fields(slurm.Run(t, "sacct", "-n", "-X", "--allusers", "--format=jobid"))
	require.Equal(t, []string{id}, accounted, "one native job")
	_, text := g.GetAs(t, bearer, "/v1/jobs?run="+s.run)
	require.Contains(t, text, `"owner":"system:serviceaccount:`+ns+`:runner"`)
}

// The same with a token from a Secret; a step that Kubernetes ends cancels its job.
func TestAStepThatIsEndedCancels(t *testing.T) {
	c := kubernetestest.Shared(t)
	ns := c.Namespace(t)
	c.Kubectl(t, "", "create", "serviceaccount", "runner", "-n", ns)
	g := gatewaytest.NewSecured(t, letIn(t, c, ns), gatewaytest.OverHere)
	giveSecret(t, c, g, ns)
	_, rest := g.Addresses()
	s := newStep(t, c, ns, "https://"+rest, mounted(true), map[string]any{"script": map[string]any{"text": "echo training; exec sleep 86400"}})
	s.start(t, "ended")
	s.says(t, "ended", "training\n")
	s.signal(t, syscall.SIGTERM)
	c.Eventually(t, "the job is cancelled", func() error {
		_, text := g.GetAs(t, bearer, "/v1/jobs?run="+s.run)
		if !strings.Contains(text, `"state":"CANCELLED"`) {
			return fmt.Errorf("%s", text)
		}
		return nil
	})
	require.Equal(t, "143", s.ends(t, "ended"))
}
