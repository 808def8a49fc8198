package endtoend_test

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	gatewaytest "github.com/dagbridge/dagbridge/integration/gateway"
	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/proto/jsoncodec"
)

// twoUsers is a workflow whose first task is another user's than the rest.
const twoUsers = `
name: two-users
cluster: hpc
tasks:
  - key: {task: make}
    slurm: {user: slurmtest}
    script: {text: 'echo who=$(id -un) > "$DAGBRIDGE_OUTPUT"'}
  - key: {task: read}
    upstream: [{task: make}]
    script: {text: 'echo "who=$(id -un) $(cat "$DAGBRIDGE_INPUTS")" > "$DAGBRIDGE_OUTPUT"; sleep 2'}
  - key: {task: again}
    upstream: [{task: read}]
    script: {text: 'echo "who=$(id -un) $(cat "$DAGBRIDGE_INPUTS")" > "$DAGBRIDGE_OUTPUT"'}
`

// portal is a gateway whose one token stands for slurmtest2 and may act as slurmtest.
func portal(t *testing.T) (g *gatewaytest.Gateway, tokenFile string) {
	g = gatewaytest.New(t, slurmtest.Shared(t), "cli")
	g.Stop(t)
	text, err := os.ReadFile(g.Config)
	require.NoError(t, err)
	auth := fmt.Sprintf("auth: {tokens: [{name: portal, sha256: %x, user: slurmtest2, actAs: [slurmtest]}]}\n", sha256.Sum256([]byte("secret")))
	acting := strings.Replace(string(text), "slurm: {", "slurm: {impersonate: true, ", 1)
	require.NoError(t, os.WriteFile(g.Config, []byte(auth+acting), 0o600))
	g.Start(t)
	return g, write(t, "token", "secret")
}

// ask asks REST with the token.
func ask(t *testing.T, g *gatewaytest.Gateway, method, path, body string) (int, string) {
	t.Helper()
	_, rest := g.Addresses()
	request, err := http.NewRequestWithContext(t.Context(), method, "http://"+rest+path, strings.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer secret")
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, string(text)
}

// Each task of a workflow is its user's, and what one user's leaves reaches another's through the gateway.
func TestAWorkflowOfTwoUsers(t *testing.T) {
	g, token := portal(t)
	g.Dagbridge(t, 0, "run", "--token-file", token, "--wait", "--run", "1", "-f", write(t, "two.yaml", twoUsers))
	jobs := map[string]*dagbridgev1.Job{}
	for _, task := range []string{"make", "read", "again"} {
		answer := &dagbridgev1.LookupJobResponse{}
		_, text := ask(t, g, http.MethodGet, "/v1/lookup?orchestrator=cli&workflow=two-users&run=1&task="+task, "")
		require.NoError(t, jsoncodec.Unmarshal([]byte(text), answer), text)
		jobs[task] = answer.GetJob()
		require.Equal(t, "portal", answer.GetJob().GetOwner())
		require.DirExists(t, filepath.Join(g.WorkDir, answer.GetJob().GetUser(), answer.GetJob().GetId()))
	}
	require.Equal(t, "slurmtest", jobs["make"].GetUser())
	require.Equal(t, `"slurmtest"`, jobs["make"].GetOutputs()["who"].GetText())
	require.Equal(t, "slurmtest2", jobs["read"].GetUser())
	require.Equal(t, `"slurmtest2 {\"make\":{\"who\":\"slurmtest\"}}"`, jobs["read"].GetOutputs()["who"].GetText())
	require.Contains(t, jobs["again"].GetOutputs()["who"].GetText(), `\"read\":{\"who\":\"slurmtest2`)
	require.True(t, jobs["again"].GetSubmitTime().AsTime().Before(jobs["read"].GetEndTime().AsTime()), "a user's own follow natively")
}

func TestUsersThatAreRefusedAreToldAtOnce(t *testing.T) {
	g, _ := portal(t)
	task := func(name, user string) string {
		return fmt.Sprintf(`{"key": {"task": %q}, "command": {"argv": ["true"]}, "slurm": {"user": %q}}`, name, user)
	}
	body := fmt.Sprintf(`{"run": {"orchestrator": "cli", "workflow": "w", "run": "refused"}, "cluster": "hpc", "tasks": [%s, %s, %s, %s]}`,
		task("a", "root"), task("b", "slurmtest"), task("c", "daemon"), task("d", "../x"))
	status, text := ask(t, g, http.MethodPost, "/v1/runs", body)
	require.Equal(t, http.StatusBadRequest, status, text)
	for _, field := range []string{"tasks[0].slurm.user", "tasks[2].slurm.user", "tasks[3].slurm.user"} {
		require.Contains(t, text, field)
	}
	require.NotContains(t, text, "tasks[1]")
	require.Contains(t, text, "may not act as root")
	status, _ = ask(t, g, http.MethodGet, "/v1/lookup?orchestrator=cli&workflow=w&run=refused&task=b", "")
	require.Equal(t, http.StatusNotFound, status)
}
