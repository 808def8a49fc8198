package kubernetestest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// StepImage is the image of a Kubeflow pipeline's step that hands work over: Python, KFP's SDK and our wheel. It is made of what
// this machine has, unless it is there, and given to the node, whose pods must be told never to pull it.
func (c *Cluster) StepImage(tb testing.TB) string {
	tb.Helper()
	archive := output(tb, exec.Command(filepath.Join(source(), "testcluster", "mkpython.sh")))
	c.images(tb, "import", strings.TrimSpace(archive))
	return "localhost/dagbridge-kfp:1"
}

// GatewayImage is an image of the program alone, given to the node.
func (c *Cluster) GatewayImage(tb testing.TB, program string) string {
	tb.Helper()
	const name = "localhost/dagbridge:1"
	root, archive := tb.TempDir(), filepath.Join(tb.TempDir(), "dagbridge.tar")
	text, err := os.ReadFile(program)
	if err == nil {
		err = os.Mkdir(filepath.Join(root, "bin"), 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(root, "bin", "dagbridge"), text, 0o755) //nolint:gosec // it is to be executed
	}
	if err != nil {
		tb.Fatal(err)
	}
	output(tb, exec.Command(filepath.Join(source(), "testcluster", "mkimage.sh"), archive, name, root, "/bin", `["/bin/dagbridge"]`))
	c.images(tb, "import", archive)
	return name
}

// Tag gives an image that the node has another name, as if it had been pulled by that.
func (c *Cluster) Tag(tb testing.TB, image, name string) {
	tb.Helper()
	c.images(tb, "tag", "--force", image, name)
}

// images tells the node's containerd something of its images.
func (c *Cluster) images(tb testing.TB, args ...string) {
	tb.Helper()
	address := filepath.Join(c.Dir, "containerd", "containerd.sock")
	output(tb, exec.Command("ctr", append([]string{"-a", address, "-n", "k8s.io", "image"}, args...)...))
}

// output is what a command prints that must succeed.
func output(tb testing.TB, cmd *exec.Cmd) string {
	tb.Helper()
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		tb.Fatalf("%s: %v\n%s", cmd, err, said.String())
	}
	return string(out)
}
