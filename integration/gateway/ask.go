package gatewaytest

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Dagbridge runs a command that must end with a code, and returns what it wrote to its standard output.
func (g *Gateway) Dagbridge(t testing.TB, code int, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), g.binary, args...)
	grpc, _ := g.Addresses()
	command.Env = append(os.Environ(), "DAGBRIDGE_SERVER="+grpc)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	if err != nil && command.ProcessState == nil {
		require.NoError(t, err)
	}
	require.Equal(t, code, command.ProcessState.ExitCode(), "dagbridge %s\n%s%s", strings.Join(args, " "), stdout.String(), stderr.String())
	return stdout.String()
}

// Get asks REST, and returns the status and the body.
func (g *Gateway) Get(t testing.TB, path string) (int, string) {
	t.Helper()
	_, rest := g.Addresses()
	answer, err := http.Get("http://" + rest + path)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, string(text)
}
