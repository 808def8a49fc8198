package endtoend_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
)

// deadline is for how long anything is waited for.
const deadline = 2 * time.Minute

func TestMain(m *testing.M) { slurmtest.Main(m) }

// build builds the program into the cluster's folder, which goes away with the tests.
func build(t *testing.T, c *slurmtest.Cluster) string {
	t.Helper()
	path := filepath.Join(c.Prefix, "dagbridge")
	command := exec.Command("go", "build", "-o", path, "github.com/dagbridge/dagbridge/cmd/dagbridge")
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := command.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}

// gateway is one in front of a Slurm, reached as the cluster "hpc".
type gateway struct {
	binary  string
	config  string
	slurm   *slurmtest.Cluster
	workDir string

	log        bytes.Buffer
	command    *exec.Cmd
	grpc, http string
}

// newGateway starts one that reaches Slurm by "rest" or by "cli".
func newGateway(t *testing.T, c *slurmtest.Cluster, way string) *gateway {
	t.Helper()
	g := &gateway{binary: build(t, c), slurm: c, workDir: c.WorkDir(t), config: filepath.Join(t.TempDir(), "dagbridge.yaml")}
	how := fmt.Sprintf("cli: {path: %q}", c.Bin())
	if way == "rest" {
		how = fmt.Sprintf("rest: {url: %q, user: %q, tokenFile: %q}", c.URL, slurmtest.User, c.TokenFile(t))
	}
	text := fmt.Sprintf("listen: {grpc: \"127.0.0.1:0\", http: \"127.0.0.1:0\"}\ndata: %q\nclusters:\n  - name: hpc\n    slurm: {%s, workDir: %q, pollInterval: 500ms}\n",
		t.TempDir(), how, g.workDir)
	require.NoError(t, os.WriteFile(g.config, []byte(text), 0o600))
	g.start(t)
	t.Cleanup(func() {
		// Both fail when it has been stopped.
		_ = g.command.Process.Kill()
		_ = g.command.Wait()
		if t.Failed() {
			t.Logf("the gateway's log:\n%s", &g.log)
		}
	})
	return g
}

// start returns once the gateway is ready.
func (g *gateway) start(t *testing.T) {
	t.Helper()
	g.command = exec.Command(g.binary, "serve", "--config", g.config)
	g.command.Stderr = &g.log
	out, err := g.command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, g.command.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	addresses := regexp.MustCompile(`gRPC (\S+), REST (\S+), `).FindStringSubmatch(line)
	require.Len(t, addresses, 3, line)
	g.grpc, g.http = addresses[1], addresses[2]
}

func (g *gateway) stop(t *testing.T) {
	t.Helper()
	require.NoError(t, g.command.Process.Signal(syscall.SIGTERM))
	require.NoError(t, g.command.Wait())
}

// dagbridge runs a command that must end with a code, and returns what it wrote to its standard output.
func (g *gateway) dagbridge(t *testing.T, code int, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), g.binary, args...)
	command.Env = append(os.Environ(), "DAGBRIDGE_SERVER="+g.grpc)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	if err != nil && command.ProcessState == nil {
		require.NoError(t, err)
	}
	require.Equal(t, code, command.ProcessState.ExitCode(), "dagbridge %s\n%s%s", strings.Join(args, " "), stdout.String(), stderr.String())
	return stdout.String()
}

// get asks REST, and returns the status and the body.
func (g *gateway) get(t *testing.T, path string) (int, string) {
	t.Helper()
	answer, err := http.Get("http://" + g.http + path)
	require.NoError(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, string(text)
}
