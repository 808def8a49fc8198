package server_test

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/dagbridge/dagbridge/integration/loopback"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server"
	"github.com/dagbridge/dagbridge/server/auth"
	"github.com/dagbridge/dagbridge/server/config"
)

func digest(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// send is a request with headers.
func (g *gateway) send(t testing.TB, client *http.Client, method, path, body string, headers ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, g.url+path, strings.NewReader(body))
	require.NoError(t, err)
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		}
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := client.Do(req)
	require.NoError(t, err)
	defer func() { require.NoError(t, resp.Body.Close()) }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(text)
}

// With tokens nothing but the probes answers without one, at either door; and the token's name owns the jobs.
func TestTokens(t *testing.T) {
	t.Parallel()
	guard, err := auth.New(config.Auth{Tokens: []config.Token{{Name: "airflow", SHA256: digest("s3cret")}}})
	require.NoError(t, err)
	g := start(t, func(o *server.Options) { o.Guard = guard })
	for _, path := range []string{"/v1/jobs", "/v1/clusters", "/v1/jobs/x/logs", "/openapi.json", "/metrics", "/nothing"} {
		code, text := g.get(t, path)
		require.Equal(t, http.StatusUnauthorized, code, path)
		require.Equal(t, int(codes.Unauthenticated), refused(t, text).Code)
		code, _ = g.send(t, http.DefaultClient, http.MethodGet, path, "", "Authorization", "Bearer s3cret")
		require.NotEqual(t, http.StatusUnauthorized, code, path)
	}
	code, text := g.post(t, "/v1/jobs:watch", `{"filter":{}}`)
	require.Equal(t, http.StatusUnauthorized, code, text)
	for _, path := range []string{"/healthz", "/readyz"} {
		code, _ := g.get(t, path)
		require.Equal(t, http.StatusOK, code, path)
	}
	_, err = g.grpc.GetJob(t.Context(), &dagbridgev1.GetJobRequest{Id: "x"})
	require.Equal(t, codes.Unauthenticated, status.Code(err))
	stream, err := g.grpc.ReadLogs(t.Context(), &dagbridgev1.ReadLogsRequest{Id: "x"})
	require.NoError(t, err)
	_, err = stream.Recv()
	require.Equal(t, codes.Unauthenticated, status.Code(err))

	with := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer s3cret")
	resp, err := g.grpc.SubmitTask(with, &dagbridgev1.SubmitTaskRequest{Task: task("a", "true"), WaitFor: dagbridgev1.WaitFor_TERMINAL})
	require.NoError(t, err)
	require.Equal(t, "airflow", resp.GetJob().GetOwner())
	code, text = g.send(t, http.DefaultClient, http.MethodPost, "/v1/jobs", `{"task":{"key":{"orchestrator":"o","workflow":"w","run":"r","task":"b"},"command":{"argv":["true"]}},"waitFor":"TERMINAL"}`, "Authorization", "Bearer s3cret")
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, "airflow", read(t, text, &dagbridgev1.SubmitTaskResponse{}).GetJob().GetOwner())
	code, text = g.send(t, http.DefaultClient, http.MethodGet, "/v1/jobs/x", "", "Grpc-Metadata-Authorization", "Bearer s3cret")
	require.Equal(t, http.StatusUnauthorized, code, text)
}

// Whoever reaches a gateway can run programs on it: it does not open a door to other machines without a lock.
func TestRefusesAnOpenDoor(t *testing.T) {
	t.Parallel()
	guard, err := auth.New(config.Auth{Tokens: []config.Token{{Name: "a", SHA256: digest("x")}}})
	require.NoError(t, err)
	pair := config.TLS{Cert: "c", Key: "k"}
	for name, o := range map[string]server.Options{
		"neither":         {Listen: config.Listen{GRPC: "127.0.0.1:0", HTTP: "0.0.0.0:0"}},
		"no TLS":          {Listen: config.Listen{GRPC: "192.0.2.1:0", HTTP: "127.0.0.1:0"}, Guard: guard},
		"no tokens":       {Listen: config.Listen{GRPC: "[::]:0", HTTP: "127.0.0.1:0", TLS: pair}},
		"every interface": {Listen: config.Listen{GRPC: ":7070", HTTP: "127.0.0.1:0"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := server.New(o)
			require.ErrorContains(t, err, "set listen.tls and auth, or listen on 127.0.0.1")
		})
	}
	_, err = server.New(server.Options{Listen: config.Listen{GRPC: "localhost", HTTP: "127.0.0.1:0"}})
	require.ErrorContains(t, err, "host:port")
}

// A page in a browser on the gateway's own machine cannot use a gateway without tokens.
func TestBrowsersAreKeptOut(t *testing.T) {
	t.Parallel()
	g := start(t)
	body := `{"task":{"key":{"orchestrator":"o","workflow":"w","run":"r","task":"b"},"command":{"argv":["true"]}}}`
	for name, headers := range map[string][]string{
		"a form from another site": {"Sec-Fetch-Site", "cross-site"},
		"an older browser":         {"Origin", "http://evil.example"},
		"a name that points here":  {"Host", "evil.example:7071"},
	} {
		code, text := g.send(t, http.DefaultClient, http.MethodPost, "/v1/jobs", body, headers...)
		require.Equal(t, http.StatusForbidden, code, name)
		require.Equal(t, int(codes.PermissionDenied), refused(t, text).Code)
	}
	code, text := g.send(t, http.DefaultClient, http.MethodPost, "/v1/jobs", body, "Host", "localhost:7071")
	require.Equal(t, http.StatusOK, code, text)
}

func TestPages(t *testing.T) {
	t.Parallel()
	g := start(t)
	g.submit(t, task("a", "true"), dagbridgev1.WaitFor_TERMINAL)
	code, text := g.get(t, "/openapi.json")
	require.Equal(t, http.StatusOK, code)
	var api struct {
		Paths map[string]any `json:"paths"`
	}
	require.NoError(t, json.Unmarshal([]byte(text), &api))
	for _, path := range []string{"/v1/jobs", "/v1/runs:plan", "/v1/lookup", "/v1/jobs:watch", "/v1/jobs/{id}/logs"} {
		require.Contains(t, api.Paths, path)
	}
	code, text = g.get(t, "/metrics")
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, text, `dagbridge_request_seconds_count{code="OK",method="SubmitTask"} 1`)
	require.Contains(t, text, `dagbridge_jobs_ended_total{cluster="here",state="SUCCEEDED"} 1`)
	conn, err := grpc.NewClient(g.GRPCAddr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	health, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{})
	require.NoError(t, err)
	require.Equal(t, healthpb.HealthCheckResponse_SERVING, health.GetStatus())
}

// Stop lets go of calls that hold on, and may be called again; a job goes on.
func TestStop(t *testing.T) {
	t.Parallel()
	g := start(t)
	gate := filepath.Join(t.TempDir(), "gate")
	held := make(chan error, 1)
	go func() {
		_, err := g.grpc.SubmitTask(context.Background(), &dagbridgev1.SubmitTaskRequest{
			Task: task("a", "while [ ! -e "+gate+" ]; do sleep 0.05; done"), WaitFor: dagbridgev1.WaitFor_TERMINAL,
		})
		held <- err
	}()
	var job *dagbridgev1.Job
	require.Eventually(t, func() bool {
		jobs, _, _, err := g.store.List(&dagbridgev1.JobFilter{}, 1, "")
		if err == nil && len(jobs) == 1 {
			job = jobs[0]
		}
		return job != nil
	}, patience, 10*time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, g.Stop(ctx))
	require.NoError(t, g.Stop(ctx))
	if err := <-held; err != nil {
		require.Equal(t, codes.Unavailable, status.Code(err))
	}
	_, err := net.Dial("tcp", g.HTTPAddr())
	require.Error(t, err)
	stored, err := g.store.Job(job.GetId())
	require.NoError(t, err)
	require.Nil(t, stored.GetCancelRequestTime())
	require.NoError(t, os.WriteFile(gate, nil, 0o600))
}

func TestPortInUse(t *testing.T) {
	t.Parallel()
	g := start(t)
	second, err := server.New(server.Options{Listen: config.Listen{GRPC: "127.0.0.1:0", HTTP: g.HTTPAddr()}})
	require.NoError(t, err)
	require.ErrorContains(t, second.Start(), "opening listen.http: listen tcp "+g.HTTPAddr())
}

// Both doors have TLS; a certificate that has been replaced is used for the next connection.
func TestTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files := config.TLS{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
	first := writeCertificate(t, files)
	g := start(t, func(o *server.Options) { o.Listen.TLS = files })
	g.url = "https://" + g.HTTPAddr()
	try := func(roots *x509.CertPool) error {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}}
		defer client.CloseIdleConnections()
		resp, err := client.Get(g.url + "/v1/clusters")
		if err != nil {
			return err
		}
		require.Equal(t, http.StatusOK, resp.StatusCode)
		require.Equal(t, 2, resp.ProtoMajor)
		require.NoError(t, resp.Body.Close())

		conn, err := grpc.NewClient(g.GRPCAddr(), grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: roots})))
		require.NoError(t, err)
		defer func() { require.NoError(t, conn.Close()) }()
		_, err = dagbridgev1.NewBridgeServiceClient(conn).ListClusters(t.Context(), &dagbridgev1.ListClustersRequest{})
		return err
	}
	require.NoError(t, try(first))

	require.NoError(t, os.WriteFile(files.Key, []byte("half-written"), 0o600))
	require.NoError(t, try(first), "the old one is used while the new one is not complete")
	second := writeCertificate(t, files)
	require.NoError(t, try(second))
	require.Error(t, try(first))

	_, err := server.New(server.Options{Listen: config.Listen{GRPC: "127.0.0.1:0", HTTP: "127.0.0.1:0", TLS: config.TLS{Cert: "none", Key: "none"}}})
	require.ErrorContains(t, err, "reading listen.tls: open none")
}

// writeCertificate writes a certificate of 127.0.0.1 that has signed itself.
func writeCertificate(t *testing.T, files config.TLS) *x509.CertPool {
	t.Helper()
	require.NoError(t, loopback.Certificate(files.Cert, files.Key))
	certPEM, err := os.ReadFile(files.Cert)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(certPEM))
	return roots
}
