package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/timestamppb"

	storev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/store/v1"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server"
	"github.com/dagbridge/dagbridge/server/config"
	"github.com/dagbridge/dagbridge/server/engine"
	"github.com/dagbridge/dagbridge/server/store"
	"github.com/dagbridge/dagbridge/server/telemetry"
)

func init() {
	roles["echo"] = serveEcho
	roles["gateway"] = serveGateway
}

// theJob is what every get answers with.
func theJob() *dagbridgev1.Job {
	now := timestamppb.New(time.Date(2026, 1, 1, 0, 0, 0, 123456789, time.UTC))
	return &dagbridgev1.Job{
		Id:  "0196f3c4-8a00-7000-8000-000000000001",
		Key: &dagbridgev1.TaskKey{Deployment: "default", Orchestrator: "airflow", Workflow: "risk", Run: "manual__2026-01-01T00:00:00+00:00", Task: "train"}, TryNumber: 1, Uid: "0196f3c4",
		Owner: "airflow", Cluster: "hpc", NativeId: "123456", State: dagbridgev1.Job_SUCCEEDED, ExitCode: new(int32), CreateTime: now, SubmitTime: now, StartTime: now, EndTime: now,
		Attempts: []*dagbridgev1.Attempt{{Number: 1, Cluster: "hpc", NativeId: "123456", SubmitTime: now, StartTime: now, EndTime: now, Node: "n001", State: dagbridgev1.Job_SUCCEEDED, Token: "0196f3c4-8a00-7000-8000-000000000001.1"}},
		Logs:     &dagbridgev1.Logs{Stdout: "/shared/w/airflow/1/stdout", Stderr: "/shared/w/airflow/1/stderr"},
		Labels:   map[string]string{"team": "x"},
	}
}

// echo answers without looking anything up.
type echo struct {
	dagbridgev1.UnimplementedBridgeServiceServer
	job *dagbridgev1.Job
}

func (e echo) GetJob(context.Context, *dagbridgev1.GetJobRequest) (*dagbridgev1.GetJobResponse, error) {
	return &dagbridgev1.GetJobResponse{Job: e.job}, nil
}

func (e echo) LookupJob(context.Context, *dagbridgev1.LookupJobRequest) (*dagbridgev1.LookupJobResponse, error) {
	return &dagbridgev1.LookupJobResponse{Job: e.job}, nil
}

// serveEcho is bare grpc-go, and bare grpc-gateway in the same process as its service.
func serveEcho([]string) error {
	over, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	rest, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	service := echo{job: theJob()}
	g := grpc.NewServer()
	dagbridgev1.RegisterBridgeServiceServer(g, service)
	mux := runtime.NewServeMux()
	if err := dagbridgev1.RegisterBridgeServiceHandlerServer(context.Background(), mux, service); err != nil {
		return err
	}
	go func() { _ = g.Serve(over) }()
	go func() { _ = http.Serve(rest, mux) }()
	return announce(over.Addr().String(), rest.Addr().String())
}

// serveGateway is the gateway with a store of a hundred thousand jobs.
func serveGateway(args []string) error {
	s, err := store.Open(filepath.Join(args[0], "store.db"), store.Options{NoSync: true})
	if err != nil {
		return err
	}
	const jobs = 100_000
	for i := 0; i < jobs; i += 1000 {
		if err := s.Update(context.Background(), func(tx *store.Tx) error {
			for j := range 1000 {
				job := theJob()
				if i+j > 0 {
					job.Id = uuid.Must(uuid.NewV7()).String()
					job.Key.Task = fmt.Sprintf("task-%d", i+j)
				}
				tx.Put(&storev1.JobRecord{Job: job})
			}
			return nil
		}); err != nil {
			return err
		}
	}
	registry := prometheus.NewRegistry()
	metrics := telemetry.New(registry)
	e, err := engine.New(engine.Options{Store: s, Metrics: metrics})
	if err != nil {
		return err
	}
	doors, err := server.New(server.Options{Listen: config.Listen{GRPC: "127.0.0.1:0", HTTP: "127.0.0.1:0"}, Engine: e, Store: s, Metrics: metrics, Registry: registry})
	if err != nil {
		return err
	}
	if err := doors.Start(); err != nil {
		return err
	}
	return announce(doors.GRPCAddr(), doors.HTTPAddr())
}

// announce tells the parent where the server is, and returns when the parent is gone.
func announce(grpcAddr, httpAddr string) error {
	fmt.Println(grpcAddr, httpAddr)
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// process is a server in a process of its own.
type process struct {
	pid    int
	client dagbridgev1.BridgeServiceClient
	url    string
	http   *http.Client
}

func startProcess(b *testing.B, args ...string) *process {
	b.Helper()
	command := exec.Command(os.Args[0], args...)
	command.Stderr = os.Stderr
	stdin, err := command.StdinPipe()
	require.NoError(b, err)
	stdout, err := command.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, command.Start())
	b.Cleanup(func() {
		require.NoError(b, stdin.Close())
		require.NoError(b, command.Wait())
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(b, err)
	grpcAddr, httpAddr, _ := strings.Cut(strings.TrimSpace(line), " ")
	conn, err := grpc.NewClient(grpcAddr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, conn.Close()) })
	return &process{
		pid: command.Process.Pid, client: dagbridgev1.NewBridgeServiceClient(conn), url: "http://" + httpAddr,
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}},
	}
}

// cpu is the processor time that the process has had.
func (p *process) cpu(b *testing.B) time.Duration {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid))
	require.NoError(b, err)
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+2:]))
	user, err := strconv.Atoi(fields[11])
	require.NoError(b, err)
	system, err := strconv.Atoi(fields[12])
	require.NoError(b, err)
	return time.Duration(user+system) * time.Second / 100
}

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

const (
	// clients call at once.
	clients = 8
	// turn is how many calls one server gets before it is the other's turn.
	turn = 400
)

// calls makes n calls from several clients.
func calls(n int, call func()) {
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			for range (n + i) / clients {
				call()
			}
		})
	}
	wg.Wait()
}

// BenchmarkGet compares the processor time a server takes for a get and a look-up with that of an echo, which answers the same
// job from a variable. The two take turns.
func BenchmarkGet(b *testing.B) {
	bare, gateway := startProcess(b, "echo"), startProcess(b, "gateway", b.TempDir())
	job := theJob()
	key := job.GetKey()
	byKey := &dagbridgev1.LookupJobRequest{Orchestrator: key.GetOrchestrator(), Workflow: key.GetWorkflow(), Run: key.GetRun(), Task: key.GetTask()}
	for name, call := range map[string]func(*testing.B, *process){
		"gRPC": func(b *testing.B, p *process) {
			if _, err := p.client.GetJob(context.Background(), &dagbridgev1.GetJobRequest{Id: job.GetId()}); err != nil {
				b.Error(err)
			}
		},
		"gRPC-lookup": func(b *testing.B, p *process) {
			if _, err := p.client.LookupJob(context.Background(), byKey); err != nil {
				b.Error(err)
			}
		},
		"REST": func(b *testing.B, p *process) { p.rest(b, "/v1/jobs/"+job.GetId()) },
		"REST-lookup": func(b *testing.B, p *process) {
			p.rest(b, "/v1/lookup?orchestrator=airflow&workflow=risk&run=manual__2026-01-01T00%3A00%3A00%2B00%3A00&task=train")
		},
	} {
		b.Run(name, func(b *testing.B) {
			for _, p := range []*process{bare, gateway} {
				calls(turn, func() { call(b, p) })
			}
			bareBefore, gatewayBefore := bare.cpu(b), gateway.cpu(b)
			b.ResetTimer()
			for done := 0; done < b.N; done += turn {
				n := min(turn, b.N-done)
				calls(n, func() { call(b, bare) })
				calls(n, func() { call(b, gateway) })
			}
			b.StopTimer()
			theirs, ours := bare.cpu(b)-bareBefore, gateway.cpu(b)-gatewayBefore
			b.ReportMetric(float64(theirs.Microseconds())/float64(b.N), "echo-µs/op")
			b.ReportMetric(float64(ours.Microseconds())/float64(b.N), "gateway-µs/op")
			if theirs > 0 {
				b.ReportMetric(float64(ours)/float64(theirs), "ratio")
			}
		})
	}
}
