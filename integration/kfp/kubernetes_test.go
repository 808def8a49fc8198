package kfp

import (
	"fmt"
	"os"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	gatewaytest "github.com/dagbridge/dagbridge/integration/gateway"
	kubernetestest "github.com/dagbridge/dagbridge/integration/kubernetes"
)

func TestMain(m *testing.M) { kubernetestest.Main(m) }

// Pipelines run on a real Kubernetes: an init container brings the launcher into the users' images.
func TestOnKubernetes(t *testing.T) {
	t.Parallel()
	c := kubernetestest.Shared(t)
	g := gateway{gatewaytest.NewOver(t, overKubernetes(t, c, sharedFolder(t)))}
	prepareImages(t, c, g)
	names := []string{"linear-ml", "parallelfor-dynamic"} // a pod takes seconds on a busy machine
	if os.Getenv("DAGBRIDGE_LONG") != "" {
		names = nil
	}
	g.runEverywhere(t, names...)
	array := g.job(t, "parallelfor-dynamic", "for-loop-1/sim")
	require.Equal(t, map[string]int32{"SUCCEEDED": 3}, array.GetCounts())
}

// overKubernetes is a Kubernetes as gatewaytest.NewOver takes it, "k8s", with a namespace of its own.
func overKubernetes(t *testing.T, c *kubernetestest.Cluster, shared string) string {
	t.Helper()
	name := "kfp-" + uuid.NewString()[:8]
	c.Kubectl(t, "", "create", "namespace", name)
	t.Cleanup(func() { c.Kubectl(t, "", "delete", "namespace", name, "--wait=false", "--ignore-not-found") })
	return fmt.Sprintf("name: k8s\n    kubernetes: {kubeconfig: %q, namespace: %s, launcher: \"localhost/dagbridge:1\", pipelines: %q}", c.Kubeconfig, name, shared)
}

// prepareImages gives the node, which can pull none, those of the pipelines, and the gateway's.
func prepareImages(t *testing.T, c *kubernetestest.Cluster, g gateway) {
	t.Helper()
	c.Tag(t, c.StepImage(t), "docker.io/library/python:3.11-slim")
	c.Tag(t, kubernetestest.Image, "docker.io/library/busybox:1")
	c.GatewayImage(t, g.Binary())
}

// sharedFolder is one that pods and jobs of Slurm share.
func sharedFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "dbkube-pipelines-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
