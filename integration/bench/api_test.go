package bench

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

func init() { roles["echo"] = serveEcho }

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

const (
	// clients call at once.
	clients = 8
	// turn is how many calls one server gets before it is the other's turn: many, since processor time is told in hundredths
	// of a second.
	turn = 10_000
)

// spread makes n calls from several clients at once.
func spread(n, clients int, call func(client, i int)) {
	var wg sync.WaitGroup
	for client := range clients {
		wg.Go(func() {
			for i := client; i < n; i += clients {
				call(client, i)
			}
		})
	}
	wg.Wait()
}

// BenchmarkGet compares the processor time that a gateway with a million jobs takes for a get and a look-up with that of an
// echo, which answers the same job from a variable.
func BenchmarkGet(b *testing.B) {
	bare, gateway := startProcess(b, "echo"), startProcess(b, down(b, million(b))...)
	job := theJob()
	key := job.GetKey()
	byKey := &dagbridgev1.LookupJobRequest{Orchestrator: key.GetOrchestrator(), Workflow: key.GetWorkflow(), Run: key.GetRun(), Task: key.GetTask()}
	for _, c := range []struct {
		what, than string
		call       func(*process)
	}{
		{"get over gRPC, processor time", "gRPC echo", func(p *process) {
			if _, err := p.client.GetJob(context.Background(), &dagbridgev1.GetJobRequest{Id: job.GetId()}); err != nil {
				b.Error(err)
			}
		}},
		{"look-up over gRPC, processor time", "gRPC echo", func(p *process) {
			if _, err := p.client.LookupJob(context.Background(), byKey); err != nil {
				b.Error(err)
			}
		}},
		{"get over REST, processor time", "grpc-gateway echo", func(p *process) { p.rest(b, "/v1/jobs/"+job.GetId()) }},
		{"look-up over REST, processor time", "grpc-gateway echo", func(p *process) {
			p.rest(b, "/v1/lookup?orchestrator=airflow&workflow=risk&run=manual__2026-01-01T00%3A00%3A00%2B00%3A00&task=train")
		}},
	} {
		took := func(p *process) float64 {
			before := p.cpu(b)
			spread(turn, clients, func(int, int) { c.call(p) })
			return float64((p.cpu(b) - before).Microseconds()) / turn
		}
		took(gateway)
		took(bare)
		var ours, theirs []float64
		for range *rounds {
			theirs = append(theirs, took(bare))
			ours = append(ours, took(gateway))
		}
		compare(c.what, c.than, "µs", ours, theirs, aim{atMost: 1.5})
	}
}
