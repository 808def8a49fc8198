package kubernetestest_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	gatewaytest "github.com/dagbridge/dagbridge/integration/gateway"
	kubernetestest "github.com/dagbridge/dagbridge/integration/kubernetes"
	"github.com/dagbridge/dagbridge/integration/loopback"
)

// pushing is a program that pushes outputs of 20 KB, tries all that its token must not open, and shows the token.
const pushing = `#!/bin/sh
call() { wget -q -O /dev/null --header "Authorization: Bearer $(cat "$DAGBRIDGE_TOKEN_FILE")" --header "Content-Type: application/json" "$@" 2>/dev/null; }
big=$(head -c 20000 /dev/zero | tr '\0' x)
call --post-data "{\"outputs\": {\"big\": \"$big\", \"exact\": 9007199254740993, \"index\": \"$DAGBRIDGE_MAP_INDEX\"}}" "$DAGBRIDGE_URL/v1/jobs/$DAGBRIDGE_JOB_ID/outputs" || exit 4
call --post-data '{"outputs": {"stolen": 1}}' "$DAGBRIDGE_URL/v1/jobs/$OTHER/outputs" && exit 5
call "$DAGBRIDGE_URL/v1/jobs" && exit 6
call --post-data '{}' "$DAGBRIDGE_URL/v1/jobs/$OTHER:cancel" && exit 7
printf '{"small": 1}' > "$DAGBRIDGE_OUTPUT"
cat "$DAGBRIDGE_TOKEN_FILE"
`

// Outputs that Kubernetes does not keep are pushed, by a token that opens nothing else and is none once the pod is gone. The
// gateway has the rights of the manifests and no more.
func TestLargeOutputsArePushed(t *testing.T) {
	c := kubernetestest.Shared(t)
	ns := c.Namespace(t)
	for _, name := range []string{"rbac.yaml", "serviceaccounts.yaml"} {
		c.Kubectl(t, asPlainUser(t, manifest(t, name)), "apply", "-n", ns, "-f", "-")
	}
	template := filepath.Join(t.TempDir(), "pod.yaml") // pods here reach the gateway's loopback by their node's network alone
	require.NoError(t, os.WriteFile(template, []byte("spec: {hostNetwork: true}\n"), 0o600))
	url := fmt.Sprintf("http://127.0.0.1:%d", loopback.FreePorts())
	g := gatewaytest.NewOver(t, fmt.Sprintf("name: k8s\n    kubernetes: {kubeconfig: %q, namespace: %s, image: %q, url: %q, podTemplateFile: %q}",
		c.UserKubeconfig, ns, kubernetestest.Image, url, template))
	g.Stop(t)
	behindToken(t, g, url)
	g.Start(t)

	call := func(token, method, path string, body any) (int, string) {
		text, err := json.Marshal(body)
		require.NoError(t, err)
		request, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(string(text)))
		require.NoError(t, err)
		request.Header.Set("Authorization", "Bearer "+token)
		answer, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		defer func() { _ = answer.Body.Close() }()
		said, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		return answer.StatusCode, string(said)
	}
	type job struct{ ID, State, Reason, Message string }
	submit := func(name, script, waitFor string, more map[string]any) job {
		task := map[string]any{
			"key":    map[string]any{"orchestrator": "test", "workflow": "push", "run": "1", "task": name},
			"script": map[string]any{"text": script}, "resources": map[string]any{"cpu": "5m", "memory": "32Mi"},
		}
		for field, value := range more {
			task[field] = value
		}
		status, said := call(operator, http.MethodPost, "/v1/jobs", map[string]any{"task": task, "waitFor": waitFor})
		require.Equal(t, http.StatusOK, status, said)
		var answer struct{ Job job }
		require.NoError(t, json.Unmarshal([]byte(said), &answer))
		return answer.Job
	}
	other := submit("other", "#!/bin/sh\nexec sleep 86400\n", "SUBMITTED", nil)
	env := map[string]any{"OTHER": other.ID}
	one := submit("one", pushing, "TERMINAL", map[string]any{"env": env})
	require.Equal(t, "SUCCEEDED", one.State, "%s %s", one.Reason, one.Message)
	const path = "/v1/orchestrators/test/workflows/push/runs/1/tasks/"
	outputs := func(task string) []string {
		var all []string
		for _, name := range []string{"/job/outputs/big", "/job/outputs/exact", "/job/outputs/small"} {
			task, query, _ := strings.Cut(task, "?")
			status, value := call(operator, http.MethodGet, path+task+name+"?"+query, nil)
			require.Equal(t, http.StatusOK, status, value)
			all = append(all, value)
		}
		return all
	}
	wanted := []string{`"` + strings.Repeat("x", 20000) + `"`, "9007199254740993", "1"}
	require.Equal(t, wanted, outputs("one"), "both ways, byte for byte")

	array := submit("many", pushing, "TERMINAL", map[string]any{"env": env, "array": map[string]any{"items": []any{map[string]any{}, map[string]any{}}}})
	require.Equal(t, "SUCCEEDED", array.State, "%s %s", array.Reason, array.Message)
	for _, index := range []string{"0", "1"} {
		require.Equal(t, wanted, outputs("many?mapIndex="+index))
		_, value := call(operator, http.MethodGet, path+"many/job/outputs/index?mapIndex="+index, nil)
		require.Equal(t, `"`+index+`"`, value, "each its own")
	}
	status, said := call(operator, http.MethodGet, "/v1/jobs/"+other.ID, nil)
	require.Equal(t, http.StatusOK, status)
	require.NotContains(t, said, "stolen")

	// Whoever gets hold of the token later can do nothing with it.
	_, token := call(operator, http.MethodGet, "/v1/jobs/"+one.ID+"/logs", nil)
	require.Equal(t, 2, strings.Count(token, "."), "a JSON web token: %q", token)
	put := func() int {
		status, _ := call(token, http.MethodPost, "/v1/jobs/"+one.ID+"/outputs", map[string]any{"outputs": map[string]any{"late": 1}})
		return status
	}
	require.Contains(t, []int{http.StatusUnauthorized, http.StatusBadRequest}, put(), "its job has ended")
	c.Kubectl(t, "", "delete", "pods", "-n", ns, "-l", "dagbridge.io/job="+one.ID)
	require.Equal(t, http.StatusUnauthorized, put(), "its pod is gone")
}

// operator is the token of the gateway's own users.
const operator = "an operator's"

// behindToken changes a gateway's configuration: it serves REST at an address that stays, and asks for the operator's token.
func behindToken(t *testing.T, g *gatewaytest.Gateway, url string) {
	t.Helper()
	text, err := os.ReadFile(g.Config)
	require.NoError(t, err)
	changed := strings.Replace(string(text), `http: "127.0.0.1:0"`, fmt.Sprintf("http: %q", strings.TrimPrefix(url, "http://")), 1)
	require.NotEqual(t, string(text), changed)
	changed += "auth: {tokens: [{name: operator, sha256: 414e105a4b0ecb7ef0730cfb4137dc786294aefed85f2d14bf51891c0925947d}]}\n"
	require.NoError(t, os.WriteFile(g.Config, []byte(changed), 0o600))
}
