package kubernetestest_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	gatewaytest "github.com/dagbridge/dagbridge/integration/gateway"
	kubernetestest "github.com/dagbridge/dagbridge/integration/kubernetes"
)

// bearer is a token that the gateway itself knows, under the name "test".
const bearer = "a-secret-of-the-tests"

// letIn is the gateway's auth: the token, and one account. It asks as the plain user, who gets the right from the manifest.
func letIn(t *testing.T, c *kubernetestest.Cluster, namespace string) string {
	t.Helper()
	text := strings.ReplaceAll(manifest(t, "serviceaccounts.yaml"), "  - kind: ServiceAccount\n    name: dagbridge\n    namespace: dagbridge\n", "  - kind: User\n    name: plain-user\n    apiGroup: rbac.authorization.k8s.io\n")
	require.Contains(t, text, "plain-user")
	c.Kubectl(t, text, "apply", "-f", "-")
	t.Cleanup(func() { c.Kubectl(t, text, "delete", "-f", "-", "--ignore-not-found") })
	digest := sha256.Sum256([]byte(bearer))
	return fmt.Sprintf("{tokens: [{name: test, sha256: %s}], serviceAccounts: {kubeconfig: %q, allow: [{namespace: %s, name: runner}]}}",
		hex.EncodeToString(digest[:]), c.UserKubeconfig, namespace)
}

// ask lists jobs with a token: the status, and the sentence of a refusal.
func ask(t *testing.T, g *gatewaytest.Gateway, token string) (int, string) {
	t.Helper()
	status, text := g.GetAs(t, token, "/v1/jobs")
	var refusal struct{ Message string }
	require.NoError(t, json.Unmarshal([]byte(text), &refusal))
	return status, refusal.Message
}

// Tokens of service accounts, as the API server makes them: who is let in, who is not and why, and what an API server that is
// gone means.
func TestTokensOfServiceAccounts(t *testing.T) {
	c := kubernetestest.Shared(t)
	ns := c.Namespace(t)
	for _, account := range []string{"runner", "other"} {
		c.Kubectl(t, "", "create", "serviceaccount", account, "-n", ns)
	}
	token := func(account string, more ...string) string {
		return strings.TrimSpace(c.Kubectl(t, "", append([]string{"create", "token", account, "-n", ns}, more...)...))
	}
	g := gatewaytest.NewSecured(t, letIn(t, c, ns), gatewaytest.OverHere)
	for name, want := range map[string]struct {
		token  string
		status int
		says   string
	}{
		"the account's, for this gateway":        {token("runner", "--audience", "dagbridge"), http.StatusOK, ""},
		"for this gateway and another":           {token("runner", "--audience", "other", "--audience", "dagbridge"), http.StatusOK, ""},
		"for another gateway":                    {token("runner", "--audience", "other"), http.StatusUnauthorized, `not for the audience "dagbridge"`},
		"for the API server":                     {token("runner"), http.StatusUnauthorized, `not for the audience "dagbridge"`},
		"another account's":                      {token("other", "--audience", "dagbridge"), http.StatusForbidden, "system:serviceaccount:" + ns + ":other may not use this gateway"},
		"the namespace's default":                {token("default", "--audience", "dagbridge"), http.StatusForbidden, ":default may not"},
		"one that somebody has changed":          {token("runner", "--audience", "dagbridge") + "x", http.StatusUnauthorized, "does not accept this token"},
		"the gateway's own kind":                 {bearer, http.StatusOK, ""},
		"what is no token of either":             {"guessed", http.StatusUnauthorized, "does not know this token"},
		"what looks like one and is not even so": {"a.b.c", http.StatusUnauthorized, "does not accept this token"},
	} {
		status, says := ask(t, g, want.token)
		require.Equal(t, want.status, status, "%s: %s", name, says)
		require.Contains(t, says, want.says, name)
	}

	gone := token("runner", "--audience", "dagbridge")
	c.Kubectl(t, "", "delete", "serviceaccount", "runner", "-n", ns)
	c.Eventually(t, "the API server has forgotten the account", func() error {
		if status, says := ask(t, g, gone); status != http.StatusUnauthorized {
			return fmt.Errorf("%d %s", status, says)
		}
		return nil
	})
	c.Kubectl(t, "", "create", "serviceaccount", "runner", "-n", ns)
	again := token("runner", "--audience", "dagbridge")
	c.Kill(t, "kube-apiserver")
	status, says := ask(t, g, again)
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, says, "cannot be asked of its Kubernetes API server")
	status, _ = ask(t, g, bearer)
	require.Equal(t, http.StatusOK, status, "who comes with a token of the gateway's does not need it")
	c.StartAgain(t, "kube-apiserver")
	status, says = ask(t, g, again)
	require.Equal(t, http.StatusOK, status, says)
}

// mounted is the volume that a step finds its token and the gateway's authority in: a Secret, or a projected token beside it.
func mounted(secret bool) string {
	if secret {
		return `{"name": "dagbridge", "secret": {"secretName": "dagbridge"}}`
	}
	return `{"name": "dagbridge", "projected": {"sources": [
		{"serviceAccountToken": {"audience": "dagbridge", "expirationSeconds": 600, "path": "token"}},
		{"secret": {"name": "dagbridge", "items": [{"key": "ca.crt", "path": "ca.crt"}]}}]}}`
}

// giveSecret makes the Secret with the gateway's token and its authority.
func giveSecret(t *testing.T, c *kubernetestest.Cluster, g *gatewaytest.Gateway, namespace string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte(bearer), 0o600))
	c.Kubectl(t, "", "create", "secret", "generic", "dagbridge", "-n", namespace, "--from-file=token="+file, "--from-file=ca.crt="+g.Authority)
}
