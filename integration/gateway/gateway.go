// Package gatewaytest runs the program as people do: the binary, as a gateway in front of real clusters, and its commands.
package gatewaytest

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
)

// Gateway is one in front of a Slurm, which it knows as the cluster "hpc", and of this machine, "here"; or of what NewOver is told. Its process may be ended and started again, on the
// same data; the addresses are others then, unless it was made by NewAt.
type Gateway struct {
	// Slurm that is behind it; nil where it is not New's.
	Slurm *slurmtest.Cluster
	// Config is the path of its configuration, Data its folder of data, WorkDir the cluster's workDir.
	Config, Data, WorkDir string
	// User that the jobs in Slurm belong to.
	User string
	// Authority is the file with who has signed its certificate; empty where it is not NewSecured's.
	Authority string

	key, auth string
	binary    string
	log       bytes.Buffer

	mu      sync.Mutex
	current *process
}

// process is one life of a gateway.
type process struct {
	command *exec.Cmd
	// ready is closed once the addresses are known, or the process has ended without any.
	ready      chan struct{}
	grpc, http string
}

// New starts a gateway that reaches Slurm by "rest" or by "cli", and waits until it is ready. More is said of Slurm in YAML, as
// "limits: {...}". It ends with the test.
func New(t testing.TB, c *slurmtest.Cluster, way string, more ...string) *Gateway {
	t.Helper()
	return start(t, c, way, 0, 0, more)
}

// NewAt is New at addresses that stay: a port, which nobody listens on, for gRPC, and the next one for REST.
func NewAt(t testing.TB, c *slurmtest.Cluster, way string, port int, more ...string) *Gateway {
	t.Helper()
	return start(t, c, way, port, port+1, more)
}

// NewOver starts a gateway over any clusters, said in YAML as elements of a list, and waits until it is ready. It ends with the test.
func NewOver(t testing.TB, clusters ...string) *Gateway {
	t.Helper()
	g := &Gateway{User: "root"}
	g.serve(t, t.TempDir(), 0, 0, clusters)
	return g
}

// OverSlurm is a Slurm as NewOver takes it, "hpc", reached by "rest" or by "cli".
func OverSlurm(t testing.TB, c *slurmtest.Cluster, way, workDir string, more ...string) string {
	t.Helper()
	how := fmt.Sprintf("cli: {path: %q}", c.Bin())
	if way == "rest" {
		how = fmt.Sprintf("rest: {url: %q, user: %q, tokenFile: %q}", c.URL, slurmtest.User, c.TokenFile(t))
	}
	how = strings.Join(append([]string{how}, more...), ", ")
	return fmt.Sprintf("name: hpc\n    slurm: {%s, workDir: %q, pollInterval: 500ms}", how, workDir)
}

// OverHere is this machine as NewOver takes it, "here".
const OverHere = "name: here\n    local: {}"

func start(t testing.TB, c *slurmtest.Cluster, way string, grpc, http int, more []string) *Gateway {
	t.Helper()
	g := &Gateway{Slurm: c, WorkDir: c.WorkDir(t), User: "root"}
	if way == "rest" {
		g.User = slurmtest.User
	}
	g.serve(t, c.Prefix, grpc, http, []string{OverSlurm(t, c, way, g.WorkDir, more...), OverHere})
	return g
}

// serve builds the program into a folder, writes its configuration and starts it.
func (g *Gateway) serve(t testing.TB, dir string, grpc, http int, clusters []string) {
	t.Helper()
	g.binary, g.Config, g.Data = build(t, dir), filepath.Join(t.TempDir(), "dagbridge.yaml"), t.TempDir()
	secured := ""
	if g.Authority != "" {
		secured = fmt.Sprintf(", tls: {cert: %q, key: %q}", g.Authority, g.key)
	}
	text := fmt.Sprintf("listen: {grpc: \"127.0.0.1:%d\", http: \"127.0.0.1:%d\"%s}\ndata: %q\nlostAfter: 5s\n", grpc, http, secured, g.Data)
	if g.auth != "" {
		text += "auth: " + g.auth + "\n"
	}
	text += "clusters:\n"
	for _, cluster := range clusters {
		text += "  - " + cluster + "\n"
	}
	require.NoError(t, os.WriteFile(g.Config, []byte(text), 0o600))
	t.Cleanup(func() {
		g.Kill()
		if t.Failed() {
			t.Logf("the gateway's log:\n%s", &g.log)
		}
	})
	g.Start(t)
}

// Binary is the program's path.
func (g *Gateway) Binary() string { return g.binary }

// build builds the program into a folder, which goes away with the tests.
func build(t testing.TB, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "dagbridge")
	command := exec.Command("go", "build", "-o", path, "github.com/dagbridge/dagbridge/cmd/dagbridge")
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := command.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}

// Start starts the gateway's process and waits until it is ready.
func (g *Gateway) Start(t testing.TB) {
	t.Helper()
	g.Launch(t)
	grpc, _ := g.Addresses()
	require.NotEmpty(t, grpc, "the gateway does not start")
}

var readyLine = regexp.MustCompile(`gRPC (\S+), REST (\S+), `)

// Launch starts the gateway's process and does not wait.
func (g *Gateway) Launch(t testing.TB) {
	t.Helper()
	p := &process{command: exec.Command(g.binary, "serve", "--config", g.Config), ready: make(chan struct{})}
	p.command.Stderr = &g.log
	out, err := p.command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.command.Start())
	go func() {
		defer close(p.ready)
		line, _ := bufio.NewReader(out).ReadString('\n') // of a process that ends before it is ready there is none
		if found := readyLine.FindStringSubmatch(line); found != nil {
			p.grpc, p.http = found[1], found[2]
		}
	}()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.current = p
}

// Addresses are where the gateway's present process answers gRPC and REST, once it is ready; empty when it ends before.
func (g *Gateway) Addresses() (grpc, http string) {
	g.mu.Lock()
	p := g.current
	g.mu.Unlock()
	<-p.ready
	return p.grpc, p.http
}

// Stop ends the process the way systemd does.
func (g *Gateway) Stop(t testing.TB) {
	t.Helper()
	require.NoError(t, g.current.command.Process.Signal(syscall.SIGTERM))
	<-g.current.ready
	require.NoError(t, g.current.command.Wait())
}

// Kill ends the process by SIGKILL, at whatever it is, and waits until it is gone. Of one that has ended it does nothing.
func (g *Gateway) Kill() {
	if g.current == nil {
		return
	}
	_ = g.current.command.Process.Kill() // fails when it has ended
	<-g.current.ready
	_ = g.current.command.Wait() // tells of the kill
}
