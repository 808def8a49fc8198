package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// process is a server in a process of its own.
type process struct {
	pid      int
	grpcAddr string
	client   dagbridgev1.BridgeServiceClient
	url      string
	http     *http.Client
	// stop asks for the end and waits for it; kill does not ask.
	stop, kill func()
}

// announce tells the parent where the server is, and returns when the parent is gone or asks for the end.
func announce(grpcAddr, httpAddr string) error {
	fmt.Println(grpcAddr, httpAddr)
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// startProcess starts a role, and returns when it has announced itself.
func startProcess(b *testing.B, args ...string) *process {
	b.Helper()
	command := exec.Command(os.Args[0], args...)
	command.Stderr = os.Stderr
	if *profile != "" {
		command.Env = append(os.Environ(), profileFolder+"="+*profile)
	}
	stdin, err := command.StdinPipe()
	require.NoError(b, err)
	stdout, err := command.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, command.Start())
	stopped := false
	stop := func() {
		if !stopped {
			stopped = true
			require.NoError(b, stdin.Close())
			require.NoError(b, command.Wait())
		}
	}
	b.Cleanup(stop)
	kill := func() {
		stopped = true
		require.NoError(b, command.Process.Kill())
		_ = command.Wait() // it was killed
	}
	text, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(b, err)
	grpcAddr, httpAddr, _ := strings.Cut(strings.TrimSpace(text), " ")
	return &process{
		pid: command.Process.Pid, grpcAddr: grpcAddr, client: dial(b, grpcAddr), url: "http://" + httpAddr,
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}, stop: stop, kill: kill,
	}
}

// dial makes a client with a connection of its own.
func dial(b *testing.B, address string) dagbridgev1.BridgeServiceClient {
	b.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, conn.Close()) })
	return dagbridgev1.NewBridgeServiceClient(conn)
}

// cpu is the processor time that the process has had.
func (p *process) cpu(b *testing.B) time.Duration { return cpu(b, p.pid) }

func cpu(b *testing.B, pid int) time.Duration {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(b, err)
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+2:]))
	user, err := strconv.Atoi(fields[11])
	require.NoError(b, err)
	system, err := strconv.Atoi(fields[12])
	require.NoError(b, err)
	return time.Duration(user+system) * time.Second / 100
}

// rest asks over REST.
func (p *process) rest(b *testing.B, path string) {
	resp, err := p.http.Get(p.url + path)
	if err != nil {
		b.Error(err)
		return
	}
	defer func() { _ = resp.Body.Close() }()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		b.Errorf("%s: %s %v", path, resp.Status, err)
	}
}

// post sends a JSON document, and returns the answer.
func (p *process) post(b *testing.B, path string, body []byte) []byte {
	b.Helper()
	resp, err := p.http.Post(p.url+path, "application/json", bytes.NewReader(body))
	require.NoError(b, err)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(b, err)
	require.Equal(b, http.StatusOK, resp.StatusCode, "%.1000s", text)
	return text
}

// live is how many jobs of the gateway's only cluster have not ended for it.
func (p *process) live(b *testing.B) int32 {
	clusters, err := p.client.ListClusters(b.Context(), &dagbridgev1.ListClustersRequest{})
	require.NoError(b, err)
	require.Len(b, clusters.GetClusters(), 1)
	return clusters.GetClusters()[0].GetLiveJobs()
}

// metric is the value of one of the process's own metrics, named with its labels; 0 until there is one.
func (p *process) metric(b *testing.B, name string) float64 {
	b.Helper()
	resp, err := http.Get(p.url + "/metrics")
	require.NoError(b, err)
	defer func() { _ = resp.Body.Close() }()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			n, err := strconv.ParseFloat(value, 64)
			require.NoError(b, err)
			return n
		}
	}
	return 0
}
