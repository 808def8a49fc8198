package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/proto/jsoncodec"
	"github.com/dagbridge/dagbridge/server"
	"github.com/dagbridge/dagbridge/server/backend/local"
	"github.com/dagbridge/dagbridge/server/config"
	"github.com/dagbridge/dagbridge/server/engine"
	"github.com/dagbridge/dagbridge/server/store"
	"github.com/dagbridge/dagbridge/server/telemetry"
	"github.com/dagbridge/dagbridge/translators/graph"
)

// TestMain makes this test's own binary the supervisor of the jobs that it submits.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "supervise" {
		os.Exit(local.Supervise(os.Args[2:]))
	}
	goleak.VerifyTestMain(m)
}

// patience is how long a test waits for what is to come.
const patience = 30 * time.Second

// gateway is a whole gateway with this machine as its cluster "here".
type gateway struct {
	*server.Server
	store *store.Store
	// log is what it has warned of.
	log *bytes.Buffer
	// grpc is a client of one door, url the address of the other.
	grpc dagbridgev1.BridgeServiceClient
	url  string
}

func start(t testing.TB, change ...func(*server.Options)) *gateway {
	t.Helper()
	dir := t.TempDir()
	g := &gateway{log: &bytes.Buffer{}}
	log := slog.New(slog.NewTextHandler(g.log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	var err error
	g.store, err = store.Open(filepath.Join(dir, "store.db"), store.Options{NoSync: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, g.store.Close()) })
	here, err := local.New(local.Options{Name: "here", Dir: filepath.Join(dir, "here"), CPUs: 64, Memory: 1 << 34, Supervisor: []string{os.Args[0], "supervise"}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, here.Close()) })
	registry := prometheus.NewRegistry()
	metrics := telemetry.New(registry)
	e, err := engine.New(engine.Options{Store: g.store, Clusters: []engine.Cluster{{Name: "here", Backend: here}}, Metrics: metrics})
	require.NoError(t, err)
	e.Start()
	t.Cleanup(e.Stop)
	t.Cleanup(func() { // Its jobs write into a folder that is about to go.
		require.Eventually(t, func() bool { return e.Clusters()[0].GetLiveJobs() == 0 }, patience, 10*time.Millisecond)
	})

	o := server.Options{
		Listen: config.Listen{GRPC: "127.0.0.1:0", HTTP: "127.0.0.1:0"},
		Engine: e, Store: g.store, Metrics: metrics, Registry: registry, Log: log,
	}
	for _, f := range change {
		f(&o)
	}
	g.Server, err = server.New(o)
	require.NoError(t, err)
	require.NoError(t, g.Start())
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		require.NoError(t, g.Stop(ctx))
	})
	g.url = "http://" + g.HTTPAddr()
	conn, err := grpc.NewClient(g.GRPCAddr(), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.MaxCallSendMsgSize(128<<20), grpc.MaxCallRecvMsgSize(128<<20)))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	g.grpc = dagbridgev1.NewBridgeServiceClient(conn)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return g
}

// task is a task of the run "r" of the workflow "w" that runs a line of shell.
func task(id, line string) *dagbridgev1.Task {
	return &dagbridgev1.Task{
		Key:    &dagbridgev1.TaskKey{Orchestrator: "airflow", Workflow: "w", Run: "r", Task: id},
		Script: &dagbridgev1.Script{Text: line},
	}
}

func (g *gateway) submit(t testing.TB, task *dagbridgev1.Task, wait dagbridgev1.WaitFor_Value) *dagbridgev1.Job {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	resp, err := g.grpc.SubmitTask(ctx, &dagbridgev1.SubmitTaskRequest{Task: task, WaitFor: wait})
	require.NoError(t, err)
	return resp.GetJob()
}

// ends waits for the end of a job.
func (g *gateway) ends(t testing.TB, id string) {
	t.Helper()
	require.Eventually(t, func() bool {
		job, err := g.store.Job(id)
		return err == nil && graph.IsTerminal(job.GetState())
	}, patience, 10*time.Millisecond)
}

// get and post are REST calls; what they answer is the HTTP status and the body.
func (g *gateway) get(t testing.TB, path string) (int, string) {
	t.Helper()
	return g.do(t, http.MethodGet, path, "")
}

func (g *gateway) post(t testing.TB, path, body string) (int, string) {
	t.Helper()
	return g.do(t, http.MethodPost, path, body)
}

func (g *gateway) do(t testing.TB, method, path, body string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, g.url+path, bytes.NewReader([]byte(body)))
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { require.NoError(t, resp.Body.Close()) }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(text)
}

// read reads a message of the REST API.
func read[M proto.Message](t testing.TB, text string, m M) M {
	t.Helper()
	require.NoError(t, jsoncodec.Unmarshal([]byte(text), m), "%s", text)
	return m
}

// refusal is the body of an error.
type refusal struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Details []struct {
		Type            string `json:"@type"`
		FieldViolations []struct {
			Field       string `json:"field"`
			Description string `json:"description"`
		} `json:"fieldViolations"`
	} `json:"details"`
}

func refused(t testing.TB, text string) refusal {
	t.Helper()
	var r refusal
	require.NoError(t, json.Unmarshal([]byte(text), &r), "%s", text)
	return r
}
