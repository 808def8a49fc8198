package kubernetestest_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	kubernetestest "github.com/dagbridge/dagbridge/integration/kubernetes"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/server/backend/backendtest"
	"github.com/dagbridge/dagbridge/server/config"
	"github.com/dagbridge/dagbridge/server/deploy"
	"github.com/dagbridge/dagbridge/translators"
	"sigs.k8s.io/yaml"
)

func manifest(t *testing.T, name string) string {
	t.Helper()
	text, err := deploy.Files.ReadFile(name)
	require.NoError(t, err)
	return string(text)
}

// The API server takes the manifests, and the gateway the configuration in them.
func TestTheManifestsAreTaken(t *testing.T) {
	c := kubernetestest.Shared(t)
	c.Kubectl(t, "", "create", "namespace", "dagbridge", "--save-config") // as apply does
	t.Cleanup(func() { c.Kubectl(t, "", "delete", "namespace", "dagbridge", "--wait=false") })
	for _, name := range []string{"gateway.yaml", "rbac.yaml", "serviceaccounts.yaml"} {
		out := c.Kubectl(t, manifest(t, name), "apply", "--dry-run=server", "--validate=strict", "-n", "dagbridge", "-f", "-")
		require.NotContains(t, out, "Warning")
	}
	var replicas, strategy string
	for _, document := range strings.Split(manifest(t, "gateway.yaml"), "\n---\n") {
		var o struct {
			Kind string            `json:"kind"`
			Data map[string]string `json:"data"`
			Spec struct {
				Replicas *int                  `json:"replicas"`
				Strategy struct{ Type string } `json:"strategy"`
			} `json:"spec"`
		}
		require.NoError(t, yaml.Unmarshal([]byte(document), &o))
		switch o.Kind {
		case "ConfigMap":
			cfg, err := config.Parse("gateway.yaml", []byte(o.Data["dagbridge.yaml"]))
			require.NoError(t, err)
			require.Empty(t, cfg.Clusters[0].Kubernetes.Kubeconfig, "in-cluster")
		case "Deployment":
			replicas, strategy = fmt.Sprint(*o.Spec.Replicas), o.Spec.Strategy.Type
		}
	}
	require.Equal(t, "1 Recreate", replicas+" "+strategy, "there is never a second gateway")
}

// asPlainUser gives the plain user the rights that a manifest gives the gateway's account.
func asPlainUser(t *testing.T, manifest string) string {
	t.Helper()
	text := strings.ReplaceAll(manifest, "  - kind: ServiceAccount\n    name: dagbridge\n    namespace: dagbridge\n", "  - kind: User\n    name: plain-user\n    apiGroup: rbac.authorization.k8s.io\n")
	require.Contains(t, text, "plain-user")
	return text
}

// The rights in the manifest are enough for all that a gateway does, and they are of this namespace alone.
func TestTheRightsAreEnough(t *testing.T) {
	c := kubernetestest.Shared(t)
	ns := c.Namespace(t)
	c.Kubectl(t, asPlainUser(t, manifest(t, "rbac.yaml")), "apply", "-n", ns, "-f", "-")
	r := newRigAs(t, c, ns, c.UserKubeconfig)

	dir := sharedDir(t)
	ran := r.submit(t, sh(`echo hello; printf '{"a": 1}' > "$DAGBRIDGE_OUTPUT"`))
	held := backendtest.Submission(t, sh("true"))
	held.Hold = true
	released := r.submission(t, held)
	cancelled := r.submit(t, sh("exec sleep 86400"))
	array := r.array(t, touching(dir, "go"), 2)

	ran.end(t, dagbridgev1.Job_SUCCEEDED)
	log, _, err := r.backend.Log(t.Context(), ran.ref, ran.Job, -1, "stdout", 0)
	require.NoError(t, err)
	said, err := io.ReadAll(log)
	require.NoError(t, err)
	require.NoError(t, log.Close())
	require.Equal(t, "hello\n", string(said))
	outputs, err := r.backend.Outputs(t.Context(), ran.ref, ran.Job, -1)
	require.NoError(t, err)
	require.JSONEq(t, `{"a": 1}`, string(outputs))
	require.Equal(t, backend.Found, r.backend.Find(t.Context(), []backend.Want{{Token: ran.Token, Job: ran.Job}})[0].Presence)

	released.waits(t, "HELD")
	require.Equal(t, []error{nil}, r.backend.Alter(t.Context(), []backend.Change{{Ref: released.ref, Job: released.Job, Release: true}}))
	released.end(t, dagbridgev1.Job_SUCCEEDED)
	cancelled.running(t)
	require.Equal(t, []error{nil}, r.backend.Cancel(t.Context(), []backend.Known{cancelled.known()}))
	cancelled.end(t, dagbridgev1.Job_CANCELLED)

	array.awaitAt(t, 0, dagbridgev1.Job_RUNNING)
	array.awaitAt(t, 1, dagbridgev1.Job_RUNNING)
	require.Equal(t, []error{nil}, r.backend.Cancel(t.Context(), []backend.Known{array.known(1)}))
	array.awaitAt(t, 1, dagbridgev1.Job_CANCELLED)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o644))
	array.awaitAt(t, 0, dagbridgev1.Job_SUCCEEDED)
	require.NoError(t, r.backend.Tidy(t.Context(), func(string) bool { return true }))

	elsewhere := newRigAs(t, c, c.Namespace(t), c.UserKubeconfig)
	refused := elsewhere.backend.Submit(t.Context(), []translators.Submission{backendtest.Submission(t, sh("true"))})[0]
	require.Equal(t, backend.Refused, refused.Outcome)
	require.Contains(t, refused.Message, `User "plain-user" cannot create resource "jobs"`)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.Equal(t, backend.Uncertain, elsewhere.backend.Find(ctx, []backend.Want{{Token: held.Token, Job: held.Job}})[0].Presence, "it may not look")
}
