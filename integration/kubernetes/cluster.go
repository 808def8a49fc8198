// Package kubernetestest starts a real, private Kubernetes on loopback for tests: etcd, the API server, its controllers and
// scheduler, and a node with containerd and a real kubelet. All but containerd are one program, which is built from
// Kubernetes' own modules (testcluster, a module of its own, so that the product's stays clean) and kept in the user's cache:
// building it takes ten minutes, once. It needs root, as a kubelet does.
//
// There is one cluster with a node at a time on a machine: it has a network bridge and a control group. Whoever comes second
// waits. A cluster never outlives its test binary: a watchdog holds the other end of a pipe and stops it, by recorded pids,
// when the binary ends, however it ends. A test binary that uses Shared calls Main from its TestMain.
package kubernetestest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"github.com/dagbridge/dagbridge/integration/loopback"
)

// Image that the node has, busybox; its pods must be told never to pull it.
const Image = "localhost/busybox:1"

// Cluster is a running Kubernetes.
type Cluster struct {
	// Dir is the folder that everything is under.
	Dir string
	// Kubeconfig is the administrator's.
	Kubeconfig string
	// UserKubeconfig is of somebody who has no rights until a test gives some.
	UserKubeconfig string

	binary   string
	lock     *os.File
	watchdog *loopback.Watchdog
}

var shared struct {
	sync.Once
	cluster *Cluster
	err     error
}

// Shared is the cluster that all tests of a binary share, started at the first call.
func Shared(tb testing.TB) *Cluster {
	tb.Helper()
	shared.Do(func() { shared.cluster, shared.err = start() })
	if shared.err != nil {
		tb.Fatal(shared.err)
	}
	return shared.cluster
}

// Main runs the tests of a binary and then ends the shared cluster. It is what TestMain calls.
func Main(m *testing.M) { os.Exit(Run(m)) }

// Run is Main for a TestMain that has more to do; it returns the exit code.
func Run(m *testing.M) int {
	code := m.Run()
	if shared.cluster != nil {
		shared.cluster.stop()
	}
	return code
}

// Kubectl runs kubectl as the administrator, with a text as its input.
func (c *Cluster) Kubectl(tb testing.TB, input string, args ...string) string {
	tb.Helper()
	cmd := exec.Command(c.binary, append([]string{"kubectl"}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig)
	if input != "" {
		cmd.Stdin = strings.NewReader(input)
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		tb.Fatalf("kubectl %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// Namespace makes a namespace, which goes away after the test with all that is in it.
func (c *Cluster) Namespace(tb testing.TB) string {
	tb.Helper()
	name := "test-" + uuid.NewString()[:8]
	c.Kubectl(tb, "", "create", "namespace", name)
	tb.Cleanup(func() { c.Kubectl(tb, "", "delete", "namespace", name, "--wait=false", "--ignore-not-found") })
	c.Eventually(tb, "the namespace has its service account", func() error {
		if out := c.Kubectl(tb, "", "get", "serviceaccounts", "-n", name, "-o", "name"); !strings.Contains(out, "/default") {
			return fmt.Errorf("there is %q", out)
		}
		return nil
	})
	return name
}

// source is the folder of this file, where the scripts are.
func source() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(file)
}

// built is the path of a program that a script makes unless it is there.
func built(script string, args ...string) (string, error) {
	out, err := exec.Command(filepath.Join(source(), script), args...).Output()
	if err != nil {
		return "", fmt.Errorf("%s %v: %w", script, args, said(err))
	}
	return strings.TrimSpace(string(out)), nil
}

// said is an error of a command with what it wrote; nil when there is none.
func said(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	return err
}

func start() (*Cluster, error) {
	binary, err := built(filepath.Join("testcluster", "build.sh"))
	if err != nil {
		return nil, err
	}
	// sockets' paths are limited to 108 bytes, so a test's own temporary folder is too deep
	dir, err := os.MkdirTemp("/tmp", "dbkube-")
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, err
	}
	c := &Cluster{Dir: dir, Kubeconfig: filepath.Join(dir, "kubeconfig"), UserKubeconfig: filepath.Join(dir, "pki", "user.kubeconfig"), binary: binary}
	if c.lock, err = os.OpenFile(filepath.Join(os.TempDir(), "dbkube.lock"), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return nil, err
	}
	if err := unix.Flock(int(c.lock.Fd()), unix.LOCK_EX); err != nil {
		return nil, err
	}
	if c.watchdog, err = loopback.Watch(`KT_DIR="$1" "$0/stop-kube.sh"; rm -rf "$1"`, source(), dir); err != nil {
		return nil, err
	}
	cmd := exec.Command(filepath.Join(source(), "start-kube.sh"))
	cmd.Env = append(os.Environ(), c.env()...)
	if out, err := cmd.CombinedOutput(); err != nil {
		c.stop()
		return nil, fmt.Errorf("Kubernetes does not start: %w\n%s", err, out)
	}
	return c, nil
}

func (c *Cluster) env() []string {
	return []string{"KT_DIR=" + c.Dir, "KT_BIN=" + c.binary, fmt.Sprintf("KT_PORT=%d", loopback.FreePorts()), "NOFSYNC=1"}
}

func (c *Cluster) stop() {
	c.watchdog.Stop()
	_ = c.lock.Close()
}
