package gatewaytest

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dagbridge/dagbridge/integration/loopback"
)

// NewSecured is NewOver behind TLS, for callers that auth lets in, which is YAML ("{tokens: [...]}"). Authority is the file with who
// has signed its certificate, which is for 127.0.0.1.
func NewSecured(t testing.TB, auth string, clusters ...string) *Gateway {
	t.Helper()
	g := &Gateway{User: "root", auth: auth}
	dir := t.TempDir()
	g.Authority, g.key = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	require.NoError(t, loopback.Certificate(g.Authority, g.key))
	g.serve(t, t.TempDir(), 0, 0, clusters)
	return g
}

// GetAs asks a secured gateway over REST with a bearer token, and answers with the status and the text.
func (g *Gateway) GetAs(t testing.TB, token, path string) (int, string) {
	t.Helper()
	authority, err := os.ReadFile(g.Authority)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(authority))
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	defer transport.CloseIdleConnections()
	_, rest := g.Addresses()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+rest+path, nil)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+token)
	answer, err := (&http.Client{Transport: transport, Timeout: time.Minute}).Do(request)
	require.NoError(t, err)
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	return answer.StatusCode, string(text)
}
