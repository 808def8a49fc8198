package kubernetestest

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// StepImage is the image of a Kubeflow pipeline's step that hands work over: Python, KFP's SDK and our wheel. It is made of what
// this machine has, unless it is there, and given to the node, whose pods must be told never to pull it.
func (c *Cluster) StepImage(tb testing.TB) string {
	tb.Helper()
	cmd := exec.Command(filepath.Join(source(), "testcluster", "mkpython.sh"))
	var said strings.Builder
	cmd.Stderr = &said
	archive, err := cmd.Output()
	if err != nil {
		tb.Fatalf("the image cannot be made: %v\n%s", err, said.String())
	}
	address := filepath.Join(c.Dir, "containerd", "containerd.sock")
	if out, err := exec.Command("ctr", "-a", address, "-n", "k8s.io", "image", "import", strings.TrimSpace(string(archive))).CombinedOutput(); err != nil {
		tb.Fatalf("the image cannot be imported: %v\n%s", err, out)
	}
	return "localhost/dagbridge-kfp:1"
}
