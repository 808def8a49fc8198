package kubernetestest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	kubernetestest "github.com/dagbridge/dagbridge/integration/kubernetes"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/server/backend/backendtest"
	"github.com/dagbridge/dagbridge/server/backend/kubernetes"
	translate "github.com/dagbridge/dagbridge/translators/kubernetes"
)

// A right that is taken away in one namespace is no outage: its jobs say what is missing and stay what they were, the others go
// on. Events, which only tell why a job waits, are done without.
func TestOneKindThatMayNotBeSeen(t *testing.T) {
	c := kubernetestest.Shared(t)
	kept, lost := c.Namespace(t), c.Namespace(t)
	grant := func(namespace string) {
		c.Kubectl(t, "", "create", "rolebinding", "gateway", "-n", namespace, "--role=gateway", "--user=plain-user")
	}
	for _, namespace := range []string{kept, lost} {
		c.Kubectl(t, "", "create", "role", "gateway", "-n", namespace, "--verb=*", "--resource=jobs.batch,pods,pods/log")
		grant(namespace)
	}
	dir := sharedDir(t)
	gateway := func() *rig {
		b, err := kubernetes.New(kubernetes.Options{
			Name: "test", Kubeconfig: c.UserKubeconfig, Namespaces: []string{kept, lost}, Site: translate.Site{Image: kubernetestest.Image},
		})
		require.NoError(t, err)
		r := &rig{cluster: c, backend: b, watcher: backendtest.Watch(t, b)}
		t.Cleanup(r.watcher.Stop)
		return r
	}
	before := gateway()
	here, there := before.submit(t, touching(dir, "here")), touching(dir, "there")
	there.Kubernetes.Namespace = lost
	unseen := before.submit(t, there)
	here.running(t)
	unseen.running(t)
	before.watcher.Stop()

	c.Kubectl(t, "", "delete", "rolebinding", "gateway", "-n", lost)
	after := gateway()
	here.rig, unseen.rig = after, after
	after.watcher.Add(here.known())
	after.watcher.Add(unseen.known())
	o := unseen.await(t, "unseen", func(o backend.Observation) bool { return o.Reason == backend.Unseen })
	require.Equal(t, dagbridgev1.Job_STATE_UNSPECIFIED, o.State)
	require.Contains(t, o.Message, `cannot list resource "jobs" in API group "batch" in the namespace "`+lost+`"`)
	here.running(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "here"), nil, 0o644))
	here.end(t, dagbridgev1.Job_SUCCEEDED)
	findings := after.backend.Find(t.Context(), []backend.Want{{Token: here.Token, Job: here.Job}, {Token: unseen.Token, Job: unseen.Job}})
	require.Equal(t, backend.Found, findings[0].Presence, "what was found is there, whatever else there may be")
	require.Equal(t, backend.Uncertain, findings[1].Presence)
	require.Contains(t, findings[1].Proof, lost)
	grant(lost)
	unseen.running(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "there"), nil, 0o644))
	unseen.end(t, dagbridgev1.Job_SUCCEEDED)
}
