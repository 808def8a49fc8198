package kubernetestest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	gatewaytest "github.com/dagbridge/dagbridge/integration/gateway"
	kubernetestest "github.com/dagbridge/dagbridge/integration/kubernetes"
	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/proto/jsoncodec"
)

// overKubernetes is a Kubernetes as gatewaytest.NewOver takes it, "k8s".
func overKubernetes(c *kubernetestest.Cluster, namespace string) string {
	return fmt.Sprintf("name: k8s\n    kubernetes: {kubeconfig: %q, namespace: %s, image: %q}", c.Kubeconfig, namespace, kubernetestest.Image)
}

// mixed goes from Slurm into Kubernetes, to the gateway's machine, and back.
const mixed = `
name: mixed
tasks:
  - key: {task: count}
    cluster: hpc
    script: {text: 'echo "{\"rows\": 9007199254740993}" > "$DAGBRIDGE_OUTPUT"'}
  - key: {task: split}
    cluster: k8s
    upstream: [{task: count}]
    script: {text: "#!/bin/sh\ncat \"$DAGBRIDGE_INPUTS\"\nprintf 'seen=%s\\n' \"$(cat \"$DAGBRIDGE_INPUTS\")\" > \"$DAGBRIDGE_OUTPUT\"\n"}
  - key: {task: simulate}
    cluster: k8s
    upstream: [{task: split}]
    array: {items: [{env: {SEED: "1"}}, {env: {SEED: "2"}}, {env: {SEED: "3"}}]}
    script: {text: "#!/bin/sh\nprintf '{\"loss\": %s.50}' \"$SEED\" > \"$DAGBRIDGE_OUTPUT\"\n"}
  - key: {task: gather}
    cluster: here
    upstream: [{task: simulate}, {task: split}]
    script: {text: "#!/bin/sh\nprintf 'seen=%s\\n' \"$(cat \"$DAGBRIDGE_INPUTS\")\" > \"$DAGBRIDGE_OUTPUT\"\n"}
  - key: {task: tell}
    cluster: hpc
    upstream: [{task: gather}]
    script: {text: 'cat "$DAGBRIDGE_INPUTS"'}
`

// One workflow over three kinds of cluster: outputs flow from each to each, byte for byte.
func TestAWorkflowOverThreeClusters(t *testing.T) {
	c, slurm := kubernetestest.Shared(t), slurmtest.Start(t, slurmtest.Options{})
	g := gatewaytest.NewOver(t, gatewaytest.OverSlurm(t, slurm, "rest", slurm.WorkDir(t)), overKubernetes(c, c.Namespace(t)), gatewaytest.OverHere)
	file := filepath.Join(t.TempDir(), "mixed.yaml")
	require.NoError(t, os.WriteFile(file, []byte(mixed), 0o600))
	g.Dagbridge(t, 0, "run", "--wait", "--run", "mixed", "-f", file)
	output := func(task string) string {
		return g.Dagbridge(t, 0, "output", "cli/mixed/mixed/"+task, "seen", "-o", "json")
	}
	require.Contains(t, output("split"), `{\"count\":{\"rows\":9007199254740993}}`)
	require.Contains(t, output("gather"), `\"simulate\":[{\"loss\":1.50},{\"loss\":2.50},{\"loss\":3.50}]`)
	require.Contains(t, g.Dagbridge(t, 0, "logs", "cli/mixed/mixed/split"), "9007199254740993")
	require.Contains(t, g.Dagbridge(t, 0, "logs", "cli/mixed/mixed/tell"), "2.50")
}

// kills says how often the gateway is killed while how many jobs are submitted.
func kills() (kills, jobs int) {
	if os.Getenv("DAGBRIDGE_LONG") != "" {
		return 50, 500
	}
	return 8, 60
}

// The gateway is killed again and again while jobs are submitted and run: each program runs once, and each job is known.
func TestTheGatewayIsKilled(t *testing.T) {
	kills, count := kills()
	c := kubernetestest.Shared(t)
	dir := sharedDir(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	ns := c.Namespace(t)
	g := gatewaytest.NewOver(t, overKubernetes(c, ns))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
	defer cancel()
	var answered atomic.Int64
	callers, ctx := errgroup.WithContext(ctx)
	callers.SetLimit(8)
	done := make(chan error, 1)
	go func() {
		for i := range count {
			callers.Go(func() error {
				defer answered.Add(1)
				return post(ctx, g, i, dir)
			})
		}
		done <- callers.Wait()
	}()
	ledger := filepath.Join(dir, "ran")
	progress := func() int {
		text, _ := os.ReadFile(ledger) // there is none before the first program has run
		return int(answered.Load()) + bytes.Count(text, []byte("\n"))
	}
	for k := range kills {
		after := (2*count*9/10*k + r.IntN(2*count)) / kills
		for progress() < after && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		g.Kill()
		g.Start(t)
	}
	require.NoError(t, <-done)
	// A node of this kind starts a pod or two a second, and less on a busy machine.
	c.Within(t, time.Duration(count)*3*time.Second+3*time.Minute, "all have succeeded", func() error {
		status, text := g.Get(t, "/v1/jobs?workflow=killed&state=SUCCEEDED&pageSize=1000")
		jobs := &dagbridgev1.ListJobsResponse{}
		if err := jsoncodec.Unmarshal([]byte(text), jobs); status != http.StatusOK || err != nil {
			return fmt.Errorf("%d %s: %v", status, text, err)
		}
		if n := len(jobs.GetJobs()); n < count {
			return fmt.Errorf("%d have", n)
		}
		return nil
	})
	text, err := os.ReadFile(ledger)
	require.NoError(t, err)
	ran := map[string]int{}
	for line := range strings.Lines(string(text)) {
		ran[strings.TrimSpace(line)]++
	}
	for i := range count {
		require.Equal(t, 1, ran[fmt.Sprintf("task-%d", i)], "runs of task-%d", i)
	}
	require.Len(t, strings.Fields(c.Kubectl(t, "", "get", "jobs", "-n", ns, "-o", "name")), count, "one Job each")
}

// post submits a job until the gateway answers.
func post(ctx context.Context, g *gatewaytest.Gateway, i int, dir string) error {
	body, err := json.Marshal(map[string]any{"task": map[string]any{
		"key":       map[string]any{"orchestrator": "test", "workflow": "killed", "run": "1", "task": fmt.Sprintf("task-%d", i)},
		"uid":       fmt.Sprint(i),
		"command":   map[string]any{"argv": []string{"sh", "-c", `echo "$DAGBRIDGE_TASK" >> ` + dir + `/ran`}},
		"resources": map[string]any{"cpu": "5m", "memory": "16Mi"},
		"kubernetes": map[string]any{
			"template":     map[string]any{"spec": map[string]any{"hostNetwork": true}}, // without a network of their own pods start sooner
			"volumes":      []any{map[string]any{"name": "shared", "hostPath": map[string]any{"path": dir}}},
			"volumeMounts": []any{map[string]any{"name": "shared", "mountPath": dir}},
		},
	}})
	if err != nil {
		return err
	}
	for {
		_, rest := g.Addresses()
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+rest+"/v1/jobs", bytes.NewReader(body))
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(request)
		if err == nil {
			text, _ := io.ReadAll(answer.Body) // a body that breaks off is asked for again
			_ = answer.Body.Close()
			switch {
			case answer.StatusCode == http.StatusOK:
				return nil
			case answer.StatusCode < 500:
				return fmt.Errorf("%s: %s", answer.Status, text)
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}
