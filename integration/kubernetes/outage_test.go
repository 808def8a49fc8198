package kubernetestest_test

import (
	"context"
	"fmt"
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
	"github.com/dagbridge/dagbridge/translators"
)

// These tests end the API server under everybody: they run alone.

// An API server that is killed and comes back has forgotten what watches there were and where they stood. What happens
// meanwhile is learnt all the same, and nothing ends that has not.
func TestTheAPIServerIsRestartedUnderAWatch(t *testing.T) {
	r := newRig(t)
	dir := sharedDir(t)
	live, ends := r.submit(t, touching(dir, "live")), r.submit(t, touching(dir, "ends"))
	live.running(t)
	ends.running(t)

	r.cluster.Kill(t, "kube-apiserver")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ends"), nil, 0o644))
	r.cluster.Eventually(t, "the program has ended", func() error {
		_, err := os.Stat(filepath.Join(dir, "ends-done"))
		return err
	})
	finding := r.backend.Find(t.Context(), []backend.Want{{Token: live.Token, Job: live.Job}})[0]
	require.Equal(t, backend.Uncertain, finding.Presence, finding.Proof)
	// Whoever finds a connection broken cannot say whether it was heard; that was the question before.
	result := r.backend.Submit(t.Context(), []translators.Submission{backendtest.Submission(t, sh("true"))})[0]
	require.Equal(t, backend.NotSent, result.Outcome, "nobody listens: %s", result.Message)
	r.cluster.StartAgain(t, "kube-apiserver")

	ends.end(t, dagbridgev1.Job_SUCCEEDED)
	live.running(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "live"), nil, 0o644))
	live.end(t, dagbridgev1.Job_SUCCEEDED)
}

// touching is a task that waits for a file and leaves another.
func touching(dir, name string) *dagbridgev1.Task {
	task := sh(fmt.Sprintf(`until [ -e %[1]s ]; do sleep 0.1; done; touch %[1]s-done`, filepath.Join(dir, name)))
	task.Kubernetes = &dagbridgev1.KubernetesOptions{
		Volumes:      &dagbridgev1.Json{Text: fmt.Sprintf(`[{"name": "shared", "hostPath": {"path": %q}}]`, dir)},
		VolumeMounts: &dagbridgev1.Json{Text: fmt.Sprintf(`[{"name": "shared", "mountPath": %q}]`, dir)},
	}
	return task
}

// sharedDir is seen by jobs too.
func sharedDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "dbkube-jobs-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o777)) // whoever they run as
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// plainUser lets the user without rights do in a namespace what a gateway must.
func plainUser(t *testing.T, c *kubernetestest.Cluster, namespace string) {
	t.Helper()
	c.Kubectl(t, "", "create", "rolebinding", "gateway", "-n", namespace, "--clusterrole=admin", "--user=plain-user")
}

// A storm: the API server serves one request at a time and sends all others away with 429. Each job is made once all the same.
func TestA429Storm(t *testing.T) {
	const count = 60
	c := kubernetestest.Shared(t)
	ns := c.Namespace(t)
	plainUser(t, c, ns)
	c.Kill(t, "kube-apiserver")
	c.StartAgain(t, "kube-apiserver", "--enable-priority-and-fairness=false", "--max-requests-inflight=1", "--max-mutating-requests-inflight=1")
	t.Cleanup(func() {
		c.Kill(t, "kube-apiserver")
		c.StartAgain(t, "kube-apiserver")
	})
	r := newRigAs(t, c, ns, c.UserKubeconfig)
	left := map[string]translators.Submission{}
	for range count {
		s := backendtest.Submission(t, sh("true"))
		s.Hold = true // it is about submissions alone
		left[s.Token] = s
	}
	refs := map[string]backend.NativeRef{}
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	for len(left) > 0 && ctx.Err() == nil {
		var subs []translators.Submission
		for _, s := range left {
			subs = append(subs, s)
		}
		for i, result := range r.backend.Submit(ctx, subs) {
			switch result.Outcome {
			case backend.Submitted:
				refs[subs[i].Token] = result.Ref
				delete(left, subs[i].Token)
			case backend.Limited:
				require.Positive(t, result.RetryAfter)
			default:
				require.Failf(t, "a busy API server is no refusal", "%v %s", result.Outcome, result.Message)
			}
		}
	}
	require.Empty(t, left)
	names := strings.Fields(c.Kubectl(t, "", "get", "jobs", "-n", ns, "-o", "name"))
	require.Len(t, names, count, "one object each")
}

// Credentials that expire are read again once somebody has renewed them; until then nothing is lost and nothing has ended.
func TestTheTokenExpires(t *testing.T) {
	c := kubernetestest.Shared(t)
	ns := c.Namespace(t)
	c.Kubectl(t, "", "create", "serviceaccount", "gateway", "-n", ns)
	c.Kubectl(t, "", "create", "rolebinding", "gateway", "-n", ns, "--clusterrole=admin", "--serviceaccount="+ns+":gateway")
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	write := func(token string) {
		text := c.Kubectl(t, "", "config", "view", "--raw", "--minify", "-o", "jsonpath={.clusters[0].cluster.server} {.clusters[0].cluster.certificate-authority-data}")
		server, ca, _ := strings.Cut(text, " ")
		require.NoError(t, os.WriteFile(kubeconfig+".new", fmt.Appendf(nil, `{"apiVersion": "v1", "kind": "Config", "current-context": "c",
			"clusters": [{"name": "c", "cluster": {"server": %q, "certificate-authority-data": %q}}],
			"users": [{"name": "u", "user": {"token": %q}}], "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}`, server, ca, token), 0o600))
		require.NoError(t, os.Rename(kubeconfig+".new", kubeconfig))
	}
	write(strings.TrimSpace(c.Kubectl(t, "", "create", "token", "gateway", "-n", ns, "--bound-object-kind=Secret", "--bound-object-name="+secret(t, c, ns))))
	r := newRigAs(t, c, ns, kubeconfig)
	a := r.submit(t, sh("exec sleep 86400"))
	a.running(t)
	c.Kubectl(t, "", "delete", "secret", "bound", "-n", ns) // a token ends with what it is bound to
	c.Eventually(t, "the token is none any more", func() error {
		result := r.backend.Submit(t.Context(), []translators.Submission{backendtest.Submission(t, sh("true"))})[0]
		if result.Outcome != backend.NotSent {
			return fmt.Errorf("%v %s", result.Outcome, result.Message)
		}
		return nil
	})
	require.Equal(t, backend.Uncertain, r.backend.Find(t.Context(), []backend.Want{{Token: a.Token, Job: a.Job}})[0].Presence)
	write(strings.TrimSpace(c.Kubectl(t, "", "create", "token", "gateway", "-n", ns, "--duration="+time.Hour.String())))
	r.submit(t, sh("true")).end(t, dagbridgev1.Job_SUCCEEDED)
	a.running(t)
}

func secret(t *testing.T, c *kubernetestest.Cluster, namespace string) string {
	t.Helper()
	c.Kubectl(t, "", "create", "secret", "generic", "bound", "-n", namespace)
	return "bound"
}
